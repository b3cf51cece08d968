// A PMPI tool that waits in MPI_Init for all ranks, by calls of its own.
#define _GNU_SOURCE
#include <mpi.h>
#include <unistd.h>

int MPI_Init(int *argc, char ***argv) {
  const int result = PMPI_Init(argc, argv);
  for (int i = 0; i < 5; ++i) {
    usleep(20000);
    PMPI_Barrier(MPI_COMM_WORLD);
  }
  return result;
}
