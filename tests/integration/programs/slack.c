// Rank 0 computes and sends, rank 1 waits for it. With an argument rank 0 waits for an answer, longer than such a wait
// is left unseen: then rank 1 has no slack, and each of its delays is rank 0's as well.
#include "check.h"

#include <mpi.h>

enum { ROUNDS = 150 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int answered = argc > 1;
  for (int round = 0; round < ROUNDS; ++round) {
    int got = -1;
    if (rank == 0) {
      compute(0.003);
      MPI_Send(&round, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      if (answered) MPI_Recv(&got, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (answered) compute(0.0001);
      if (answered) MPI_Send(&round, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    CHECK(got == round || (rank == 0 && !answered));
  }
  MPI_Finalize();
  return check_failures != 0;
}
