// Non-blocking collectives on the way while messages and blocking collectives go by.
#include "subject.h"

#include <stdlib.h>

SUBJECT(icoll, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm other;
  MPI_Comm_dup(comm, &other);
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  int *all = malloc((size_t)size * sizeof *all), *swapped = malloc((size_t)size * sizeof *swapped), *mine = malloc((size_t)size * sizeof *mine);
  for (int i = 0; i < size; ++i) mine[i] = rank * 10 + i;
  for (int round = 0; round < 5; ++round) {
    MPI_Request request[5];
    int sum = 0, token = rank == 0 ? round + 1 : -1, value = rank, got = -1, here = -1;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &request[0]);
    MPI_Ibcast(&token, 1, MPI_INT, 0, comm, &request[1]);
    MPI_Iallgather(&value, 1, MPI_INT, all, 1, MPI_INT, comm, &request[2]);
    MPI_Ialltoall(mine, 1, MPI_INT, swapped, 1, MPI_INT, comm, &request[3]);
    MPI_Ibarrier(comm, &request[4]);
    if (rank == round % size) compute(0.002);
    MPI_Sendrecv(&value, 1, MPI_INT, next, round, &got, 1, MPI_INT, last, round, comm, MPI_STATUS_IGNORE);
    MPI_Allreduce(&value, &here, 1, MPI_INT, MPI_MAX, other);
    CHECK(got == last && here == size - 1);
    if (round % 2) {
      MPI_Waitall(5, request, MPI_STATUSES_IGNORE);
    } else {
      for (int left = 5; left > 0; --left) {
        int index;
        MPI_Waitany(5, request, &index, MPI_STATUS_IGNORE);
      }
    }
    CHECK(sum == size * (size - 1) / 2 && token == round + 1);
    for (int i = 0; i < size; ++i) CHECK(all[i] == i && swapped[i] == i * 10 + rank);
  }
  MPI_Comm copy;
  MPI_Request request;
  MPI_Comm_idup(comm, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int compared;
  MPI_Comm_compare(comm, copy, &compared);
  CHECK(compared == MPI_CONGRUENT);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&other);
  free(all), free(swapped), free(mine);
}
