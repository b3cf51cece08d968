// Waits of milliseconds leave errno as it was: what Fallow asks the system for meanwhile is not the program's.
#include "check.h"

#include <errno.h>
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 20; ++round) {
    int word = 0;
    if (rank == 1) {
      usleep(3000);
      MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (rank == 0) {
      errno = EDOM;
      MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(errno == EDOM);
    }
  }
  MPI_Finalize();
  return check_failures != 0;
}
