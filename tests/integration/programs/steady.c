// Exchanges and computes for some seconds, or until there is a file of the name given; rank 0 says when all have begun,
// and makes a file of the second name given.
// For tests that end it from outside.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const double seconds = argc > 1 ? atof(argv[1]) : 0.05;
  int rank, size, sum = 0, go_on = 1, rounds = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double end = seconds_now() + seconds;
  while (go_on) {
    int got = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(got == (rank + size - 1) % size && sum == size * (size - 1) / 2);
    if (rank == 0 && rounds++ == 5) {
      puts("begun");
      fflush(stdout);
      FILE *begun = argc > 3 ? fopen(argv[3], "w") : NULL;
      CHECK(argc <= 3 || (begun != NULL && fclose(begun) == 0));
    }
    if (rank == 0) compute(0.002);
    go_on = (seconds_now() < end && (argc < 3 || access(argv[2], F_OK) != 0)) || rounds < 7;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  if (rank == 0) printf("sum %d\n", sum);
  return check_failures != 0;
}
