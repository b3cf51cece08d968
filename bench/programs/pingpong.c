/* Ping-pong between ranks 0 and 1: half a round trip in microseconds by message size, the median of batches.
 *
 * usage: pingpong [LARGEST_BYTES] [BATCHES] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int largest = argc > 1 ? atoi(argv[1]) : 4 << 20, batches = argc > 2 ? atoi(argv[2]) : 41;
  char* buffer = malloc((size_t)largest);
  double* times = malloc(sizeof(double) * (size_t)batches);
  memset(buffer, rank, (size_t)largest);
  for (int bytes = 8; bytes <= largest; bytes = bytes < largest && bytes * 8 > largest ? largest : bytes * 8) {
    const int repeats = bytes <= 4096 ? 500 : bytes <= 65536 ? 100 : 10;
    for (int b = -2; b < batches; ++b) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < repeats && rank < 2; ++i) {
        if (rank == 0) {
          MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
          MPI_Recv(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
          MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
      }
      if (b >= 0) times[b] = (MPI_Wtime() - start) / repeats / 2 * 1e6;
    }
    qsort(times, (size_t)batches, sizeof(double), ascending);
    if (rank == 0) printf("bytes %d us %.4f\n", bytes, times[batches / 2]);
  }
  free(buffer);
  free(times);
  MPI_Finalize();
  return 0;
}
