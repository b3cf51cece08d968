// Rank 0 swaps many numbers of rank 1, which waits in a barrier meanwhile, and waits for the end of all of them at once. Says how many
// microseconds that took.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

enum { kNumbers = 2000, kRounds = 10 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int *const numbers = calloc(kNumbers, sizeof *numbers), *const old = calloc(kNumbers, sizeof *old);
  MPI_Win win;
  MPI_Win_create(numbers, kNumbers * sizeof *numbers, sizeof *numbers, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  double took = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int next = round + 1;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    if (rank == 0) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
      for (int i = 0; i < kNumbers; ++i) MPI_Compare_and_swap(&next, &round, &old[i], MPI_INT, 1, i, win);
      MPI_Win_unlock(1, win);
    }
    took += seconds_now() - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < kNumbers; ++i) CHECK(old[i] == round);
  }
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  for (int i = 0; rank == 1 && i < kNumbers; ++i) CHECK(numbers[i] == kRounds);
  MPI_Win_unlock(rank, win);
  if (rank == 0) printf("us %.0f\n", took * 1e6);
  MPI_Win_free(&win);
  MPI_Finalize();
  return check_failures != 0;
}
