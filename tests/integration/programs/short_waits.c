// Rank 0 asks rank 1 time and again, and has its answer at once; then it is killed, by itself.
//
// usage: short_waits ROUNDS
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, word = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < atoi(argv[1]); ++round) {
    if (rank == 0) {
      MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) raise(SIGKILL);
  MPI_Finalize();
  return 0;
}
