// Rank 0 computes for a while, then reads from rank 1, again and again, while that waits in a barrier. Some libraries answer in
// the code of rank 1.
// usage: served ROUNDS PAUSE_US
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rounds = argc == 3 ? atoi(argv[1]) : 0;
  const double pause = argc == 3 ? atof(argv[2]) * 1e-6 : 0;
  int rank, got = 0, *const mine = calloc(16, sizeof(int));
  MPI_Win window;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  *mine = 42 + rank;
  MPI_Win_create(mine, 16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < rounds; ++i) {
    compute(pause);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    MPI_Win_unlock(1, window);
    CHECK(got == 43);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
  free(mine);
  MPI_Finalize();
  return check_failures != 0;
}
