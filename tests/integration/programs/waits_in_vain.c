// Rank 0 makes the file BEGUN and receives from the last rank, which sends nothing and calls nothing.
//   waits_in_vain BEGUN
#include "check.h"

#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size, value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    FILE *begun = fopen(argv[argc - 1], "w");
    CHECK(begun != NULL && fclose(begun) == 0);
    MPI_Recv(&value, 1, MPI_INT, size - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  while (rank != 0) pause();
  MPI_Finalize();
  return 0;
}
