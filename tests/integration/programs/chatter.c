/* Neighbours exchange a number again and again, argv[1] times, or without end. Prints the sum on rank 0.
   With argv[2] no file may grow beyond as many bytes once MPI has started, which itself needs some. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(int argc, char **argv) {
  int rank, size;
  long long sum = 0;
  const long turns = argc > 1 ? atol(argv[1]) : -1;
  MPI_Init(&argc, &argv);
  struct rlimit limit;
  if (argc > 2 && getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    limit.rlim_cur = (rlim_t)atol(argv[2]);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long i = 0; i != turns; ++i) {
    int out = rank + (int)(i % 7), in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, (int)(i % 13), &in, 1, MPI_INT, (rank + size - 1) % size, (int)(i % 13),
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += in;
  }
  if (rank == 0) printf("sum %lld\n", sum);
  MPI_Finalize();
  return 0;
}
