// A PMPI tool that gets at the library's own functions through a handle, not by their PMPI names. With -DFINDS the library that
// does so for it; a tool that is one library does both.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>

void *of_the_library(const char *name);

#if defined FINDS || defined WHOLE
#include "open_mpi.h"

void *of_the_library(const char *name) { return dlsym(opened_mpi(), name); }
#endif

#ifndef FINDS
static int barriers;

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return ((__typeof__(MPI_Barrier) *)of_the_library("MPI_Barrier"))(comm);
}

int MPI_Finalize(void) {
  if (barriers == 0) abort();
  return ((__typeof__(MPI_Finalize) *)of_the_library("MPI_Finalize"))();
}
#endif
