// The family's mpi.h; CMake names the header.
#pragma once

#include FALLOW_MPI_HEADER
