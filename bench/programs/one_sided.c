/* Short one-sided calls one after the other, each rank to itself, so that no rank holds up another: an addition, a look, and the flushes
 * that end them, as global arrays make them. Prints the seconds taken.
 *
 * usage: one_sided ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUES = 16, CALLS = 4 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long rounds = argc > 1 ? atol(argv[1]) : 1000000;
  double *mine, ones[VALUES], there[VALUES];
  int rank;
  MPI_Win win;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_allocate(sizeof ones, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < VALUES; ++i) {
    mine[i] = 0;
    ones[i] = 1;
  }
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (long i = 0; i < rounds; ++i) {
    MPI_Accumulate(ones, VALUES, MPI_DOUBLE, rank, 0, VALUES, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush_local(rank, win);
    MPI_Get(there, VALUES, MPI_DOUBLE, rank, 0, VALUES, MPI_DOUBLE, win);
    MPI_Win_flush(rank, win);
  }
  const double seconds = MPI_Wtime() - began;
  if (rank == 0) printf("seconds %.6f\ncalls %ld\n", seconds, CALLS * rounds);
  const int wrong = there[VALUES - 1] != (double)rounds;
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return wrong;
}
