/* Rank 0 starts another rank and talks to it, and then comes late to each barrier of those that were there before. Prints the median time
 * from its coming until the last has left, in microseconds.
 *
 * usage: meetings_after_spawn ROUNDS */
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { kLateUs = 20000, kMostRounds = 1000 };

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Comm parent, child;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
    MPI_Barrier(child);
    MPI_Comm_disconnect(&child);
  }
  const int rounds = argc > 1 && atoi(argv[1]) < kMostRounds ? atoi(argv[1]) : 8;
  double took[kMostRounds];
  for (int round = 0; round < rounds; ++round) {
    double mine[2] = {0, 0}, times[2];  // when the last has come, and has left
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) usleep(kLateUs);
    mine[0] = seconds_now();
    MPI_Barrier(MPI_COMM_WORLD);
    mine[1] = seconds_now();
    MPI_Allreduce(mine, times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    took[round] = times[1] - times[0];
  }
  qsort(took, (size_t)rounds, sizeof took[0], by_size);
  if (rank == 0) printf("%.0f\n", took[rounds / 2] * 1e6);
  MPI_Finalize();
  return check_failures != 0;
}
