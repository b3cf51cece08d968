// Rank 0 reads standard input to its end; everybody adds up a share of it.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size, bytes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char *text = calloc(1 << 20, 1);
  if (rank == 0) {
    for (ssize_t n; (n = read(0, text + bytes, (1 << 20) - (size_t)bytes)) > 0;) bytes += (int)n;
  }
  MPI_Bcast(&bytes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(text, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  unsigned long sum = 0, total = 0;
  for (int i = rank; i < bytes; i += size) sum += (unsigned long)(unsigned char)text[i] * (unsigned long)(i + 1);
  MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d bytes, sum %lu\n", bytes, total);
  MPI_Finalize();
  free(text);
  return 0;
}
