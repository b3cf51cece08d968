// Rank 0 tests for messages again and again, while the others wait for its own.   usage: polls_for_work SECONDS
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 2);
  const double seconds = argc == 2 ? atof(argv[1]) : 0;
  int rank, size, number = 7, done = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Request answer;
    MPI_Irecv(&done, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, &answer);
    for (const double end = seconds_now() + seconds; seconds_now() < end;) {
      int found = 1;
      MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      CHECK(!found);
      MPI_Test(&answer, &found, MPI_STATUS_IGNORE);
      CHECK(!found);
    }
    for (int i = 1; i < size; ++i) MPI_Send(&number, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    MPI_Wait(&answer, MPI_STATUS_IGNORE);
    CHECK(done == 7);
  } else {
    MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == size - 1) MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return check_failures != 0 || number != 7;
}
