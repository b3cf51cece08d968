// Collective calls of many steps, over and over: a rank that is asleep holds up each step. Rank 0 says what a round of them lasts.
// usage: steps FILE ROUNDS
#include "check.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rounds = argc == 3 ? atoi(argv[2]) : 0;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  CHECK(MPI_File_set_size(file, (MPI_Offset)size * 64) == MPI_SUCCESS);
  static double all[8192], sum[8192];
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) {
    char out[64], in[64];
    for (int i = 0; i < 64; ++i) out[i] = (char)(rank + round + i);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)rank * 64, out, 64, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_File_read_at_all(file, (MPI_Offset)rank * 64, in, 64, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < 64; ++i) CHECK(in[i] == out[i]);
    all[round % 8192] = rank;
    CHECK(MPI_Allreduce(all, sum, 8192, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum[round % 8192] == size * (size - 1) / 2);
    MPI_Comm copy;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS);
  }
  const double seconds = MPI_Wtime() - start;
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  if (rank == 0) printf("ms a round %.6f\n", seconds * 1e3 / rounds);
  MPI_Finalize();
  return check_failures != 0;
}
