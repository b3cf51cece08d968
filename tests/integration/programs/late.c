// One rank is late for each of many collective calls that take several messages; all check what they get.
// usage: late ROUNDS LATE_US
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

enum { LONG = 8192 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rounds = argc == 3 ? atoi(argv[1]) : 0;
  const double late = argc == 3 ? atof(argv[2]) * 1e-6 : 0;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *const out = calloc((size_t)size, LONG * sizeof(double)), *const in = calloc((size_t)size, LONG * sizeof(double));
  int *const counts = malloc((size_t)size * sizeof(int)), *const begins = malloc((size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) {
    counts[i] = LONG;
    begins[i] = i * LONG;
  }
  unsigned random = 1;
  for (int round = 0; round < rounds; ++round) {
    random = random * 1103515245u + 12345u;  // the same on every rank
    if ((int)((random >> 16) % (unsigned)size) == rank) compute(late);
    for (int i = 0; i < size; ++i) out[i * LONG + round % LONG] = rank * 1000.0 + i + round;
    CHECK(MPI_Alltoallv(out, counts, begins, MPI_DOUBLE, in, counts, begins, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < size; ++i) CHECK(in[i * LONG + round % LONG] == i * 1000.0 + rank + round);
  }
  free(out);
  free(in);
  free(counts);
  free(begins);
  MPI_Finalize();
  return check_failures != 0;
}
