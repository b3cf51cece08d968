/* All ranks on the same core, each waiting for another in a loop of tests. Prints how many tests a wait of rank 0 took. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set); /* where it is not allowed the ranks share what there is */
  MPI_Init(&argc, &argv);
  const int waits = argc > 1 ? atoi(argv[1]) : 1000;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long tests = 0;
  for (int i = 0; i < waits; ++i) {
    int got = -1, done = 0;
    MPI_Request both[2];
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&i, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &both[1]);
    while (!done) {
      MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
      ++tests;
    }
    if (got != i) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) printf("%.1f\n", (double)tests / waits);
  MPI_Finalize();
  return 0;
}
