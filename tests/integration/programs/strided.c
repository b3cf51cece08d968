// Rank 0 adds numbers to a column of a matrix of rank 1, which waits in a fence meanwhile. Says how many microseconds that took.
// A library may take a step of the target for each element.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

enum { kRows = 50000, kStride = 2 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int *const numbers = calloc(kRows * kStride, sizeof *numbers);
  for (int i = 0; i < kRows; ++i) numbers[i] = i;
  MPI_Datatype column;
  MPI_Type_vector(kRows, 1, kStride, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Win win;
  MPI_Win_create(numbers, kRows * kStride * sizeof *numbers, sizeof *numbers, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  int *const added = calloc(kRows, sizeof *added);
  for (int i = 0; i < kRows; ++i) added[i] = 3 * i;
  MPI_Win_fence(0, win);
  const double begin = seconds_now();
  if (rank == 0) MPI_Accumulate(added, kRows, MPI_INT, 1, 0, 1, column, MPI_SUM, win);
  MPI_Win_fence(0, win);
  const double end = seconds_now();
  if (rank == 1) {
    for (int i = 0; i < kRows; ++i) CHECK(numbers[kStride * i] == (kStride * i < kRows ? kStride * i : 0) + 3 * i);
  }
  if (rank == 0) printf("us %.0f\n", (end - begin) * 1e6);
  MPI_Win_free(&win);
  MPI_Type_free(&column);
  MPI_Finalize();
  return check_failures != 0;
}
