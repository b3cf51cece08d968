// Rank 0 looks at memory that it shares with the others, again and again, while they wait for its message.
// usage: shared_flag SECONDS
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 2);
  const double seconds = argc == 2 ? atof(argv[1]) : 0;
  int rank, size, number = 7, *flag;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win window;
  MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &flag, &window);
  MPI_Win_lock_all(0, window);
  if (rank == 0) *flag = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (const double end = seconds_now() + seconds; rank == 0 && seconds_now() < end && *(volatile int *)flag == 0;) MPI_Win_sync(window);
  for (int i = 1; rank == 0 && i < size; ++i) MPI_Send(&number, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
  if (rank != 0) MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return check_failures != 0 || number != 7;
}
