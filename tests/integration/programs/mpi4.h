// Open MPI 5 calls itself MPI 3 and has what came with MPI 4, but for large counts.
#pragma once

#include <mpi.h>

#define HAS_MPI4 (MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5)
