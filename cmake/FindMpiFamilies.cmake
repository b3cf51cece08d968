# find_mpi_families(): which MPIs are here. Sets FALLOW_FAMILIES and, for each, FALLOW_<family>_{INCLUDE,HEADER,NUMBER,LIBRARY}.
# Each include directory can be given as a cache variable.

set(FALLOW_MPIABI_PREFIX "" CACHE PATH "Prefix of an MPI with the MPI 5 standard ABI (mpi_abi.h); empty: looked for")

function(find_mpi_families)
  set(found)
  # Open MPI: its compiler wrapper knows where the headers are.
  find_program(FALLOW_MPICC_OPENMPI NAMES mpicc.openmpi opal_wrapper mpicc)
  if(FALLOW_MPICC_OPENMPI)
    execute_process(COMMAND ${FALLOW_MPICC_OPENMPI} --showme:incdirs OUTPUT_VARIABLE dirs ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    separate_arguments(dirs)
    find_path(FALLOW_openmpi_INCLUDE_DIR mpi.h HINTS ${dirs} NO_DEFAULT_PATH)
    find_library(FALLOW_openmpi_LIB NAMES libmpi.so.40 HINTS ${FALLOW_openmpi_INCLUDE_DIR}/../lib ${FALLOW_openmpi_INCLUDE_DIR}/../..)
    if(FALLOW_openmpi_INCLUDE_DIR AND FALLOW_openmpi_LIB)
      list(APPEND found openmpi)
      set(FALLOW_openmpi_INCLUDE ${FALLOW_openmpi_INCLUDE_DIR} PARENT_SCOPE)
      set(FALLOW_openmpi_HEADER mpi.h PARENT_SCOPE)
      set(FALLOW_openmpi_NUMBER 1 PARENT_SCOPE)
      set(FALLOW_openmpi_LIBRARY ${FALLOW_openmpi_LIB} PARENT_SCOPE)  # its handles are addresses of objects inside it
    endif()
  endif()
  # MPICH and its ABI relatives.
  find_program(FALLOW_MPICC_MPICH NAMES mpicc.mpich)
  if(FALLOW_MPICC_MPICH)
    execute_process(COMMAND ${FALLOW_MPICC_MPICH} -compile_info OUTPUT_VARIABLE line ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX MATCH "-I([^ ]+)" ignored "${line}")
    find_path(FALLOW_mpich_INCLUDE_DIR mpi.h HINTS ${CMAKE_MATCH_1} NO_DEFAULT_PATH)
  endif()
  # The MPI 5 ABI: from the prefix given, the virtual environment in use, or the one in the checkout.
  find_path(FALLOW_mpiabi_INCLUDE_DIR mpi_abi.h
            HINTS ${FALLOW_MPIABI_PREFIX}/include $ENV{VIRTUAL_ENV}/include ${PROJECT_SOURCE_DIR}/.venv/include)
  foreach(family mpich mpiabi)
    if(FALLOW_${family}_INCLUDE_DIR)
      list(APPEND found ${family})
      set(FALLOW_${family}_INCLUDE ${FALLOW_${family}_INCLUDE_DIR} PARENT_SCOPE)
      set(FALLOW_${family}_LIBRARY "" PARENT_SCOPE)
    endif()
  endforeach()
  set(FALLOW_mpich_HEADER mpi.h PARENT_SCOPE)
  set(FALLOW_mpich_NUMBER 2 PARENT_SCOPE)
  set(FALLOW_mpiabi_HEADER mpi_abi.h PARENT_SCOPE)
  set(FALLOW_mpiabi_NUMBER 3 PARENT_SCOPE)
  if(NOT found)
    message(FATAL_ERROR "No MPI found: install libopenmpi-dev or libmpich-dev (Debian), or the Python package mpich")
  endif()
  message(STATUS "MPI families: ${found}")
  set(FALLOW_FAMILIES ${found} PARENT_SCOPE)
endfunction()
