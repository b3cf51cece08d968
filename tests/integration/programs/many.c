// More ranks than cores: collectives, a ring, and everyone with everyone.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 1 ? atoi(argv[1]) : 2;
  int *out = malloc((size_t)size * sizeof *out), *in = malloc((size_t)size * sizeof *in);
  MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
  for (int round = 0; round < rounds; ++round) {
    long mine = rank + round, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long)size * (size - 1) / 2 + (long)size * round);
    for (int i = 0; i < size; ++i) out[i] = rank * size + i + round;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; ++i) CHECK(in[i] == i * size + rank + round);
    int token = rank, got = -1;
    MPI_Sendrecv(&token, 1, MPI_INT, (rank + 1) % size, round, &got, 1, MPI_INT, (rank + size - 1) % size, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == (rank + size - 1) % size);
    for (int i = 0; i < size; ++i) {
      MPI_Irecv(&in[i], 1, MPI_INT, i, 100 + round, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < size; ++i) MPI_Isend(&out[i], 1, MPI_INT, i, 100 + round, MPI_COMM_WORLD, &requests[size + i]);
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; ++i) CHECK(in[i] == i * size + rank + round);
    MPI_Bcast(&token, 1, MPI_INT, round % size, MPI_COMM_WORLD);
    CHECK(token == round % size);
  }
  // A pass around the ring: everyone but one waits.
  int token = 0;
  if (rank == 0) {
    MPI_Send(&token, 1, MPI_INT, 1 % size, 9, MPI_COMM_WORLD);
    MPI_Recv(&token, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(token == size - 1);
  } else {
    MPI_Recv(&token, 1, MPI_INT, rank - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token++;
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  free(out), free(in), free(requests);
  MPI_Finalize();
  if (rank == 0) printf("%d ranks done\n", size);
  return check_failures != 0;
}
