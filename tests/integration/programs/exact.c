// A known number of calls, which grows with the rank, then every rank says by a file that it is done and stays.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, flag, got = -1, sum;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 3) return 2;
  for (int i = 0; i < 3; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 1000 + rank; ++i) MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  for (int i = 0; i < atoi(argv[2]) + rank; ++i) {
    MPI_Sendrecv(&i, 1, MPI_INT, rank, 0, &got, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == i);
  }
  char name[4096];
  snprintf(name, sizeof name, "%s/done-%d", argv[1], rank);
  FILE *done = fopen(name, "w");
  CHECK(done != NULL && fclose(done) == 0);
  for (;;) pause();
}
