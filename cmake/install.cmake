# Where things go. The preloaded library finds the runtimes beside itself, so they always lie together.
#   component fallow_python  what the wheel takes: everything under fallow/
#   component fallow         cmake --install: libraries, header, CMake package, pkg-config file
if(NOT FALLOW_RUNTIME)
  return()
endif()
include(CMakePackageConfigHelpers)

set(runtime_targets fallow-preload)
set(coverage)
foreach(family ${FALLOW_FAMILIES})
  list(APPEND runtime_targets fallow-rt-${family})
  list(APPEND coverage ${PROJECT_BINARY_DIR}/src/pmpi/${family}/coverage-${family}.json)
endforeach()
file(GLOB platforms ${PROJECT_SOURCE_DIR}/platforms/*.toml)

install(TARGETS ${runtime_targets} LIBRARY DESTINATION fallow/lib COMPONENT fallow_python EXCLUDE_FROM_ALL)
install(FILES ${coverage} DESTINATION fallow/lib COMPONENT fallow_python EXCLUDE_FROM_ALL)
install(FILES ${platforms} DESTINATION fallow/platforms COMPONENT fallow_python EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/include/fallow/fallow.h DESTINATION fallow/include/fallow COMPONENT fallow_python EXCLUDE_FROM_ALL)

set(runtime_dir ${CMAKE_INSTALL_LIBDIR}/fallow)
install(TARGETS ${runtime_targets} LIBRARY DESTINATION ${runtime_dir} COMPONENT fallow)
install(FILES ${coverage} DESTINATION ${runtime_dir} COMPONENT fallow)
install(FILES ${platforms} DESTINATION ${CMAKE_INSTALL_DATADIR}/fallow/platforms COMPONENT fallow)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fallow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT fallow)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT fallow)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fallow)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fallow-config.cmake.in ${PROJECT_BINARY_DIR}/fallow-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR runtime_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fallow-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fallow-config.cmake ${PROJECT_BINARY_DIR}/fallow-config-version.cmake
        DESTINATION ${package_dir} COMPONENT fallow)
include(${PROJECT_SOURCE_DIR}/cmake/pkg_config.cmake)
install(FILES ${PROJECT_BINARY_DIR}/fallow.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT fallow)
