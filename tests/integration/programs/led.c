// Where the names of MPI functions lead once MPI has been started, and that calls made that way are what others are.
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

static void* lead(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  Dl_info there;
  CHECK(function != NULL && dladdr(function, &there) != 0);
  const char* slash = strrchr(there.dli_fname, '/');
  printf("%s %s\n", name, slash ? slash + 1 : there.dli_fname);
  return function;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  lead("MPI_Init");
  int (*iprobe)(int, int, MPI_Comm, int*, MPI_Status*) = lead("MPI_Iprobe");
  int (*profiling)(int, int, MPI_Comm, int*, MPI_Status*) = lead("PMPI_Iprobe");
  int flag;
  for (int i = 0; i < 10; ++i) CHECK(iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
  for (int i = 0; i < 20; ++i) CHECK(profiling(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
  for (int i = 0; i < 40; ++i) CHECK(MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
  MPI_Finalize();
  return check_failures != 0;
}
