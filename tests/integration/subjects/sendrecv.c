// A Sendrecv may meet a Recv and a Send of the other side, and a ring of Sendrecvs must turn.
#include "subject.h"

#include <stdlib.h>
#include <string.h>

static void fill(int *data, int n, int seed) {
  for (int i = 0; i < n; ++i) data[i] = seed * 1000003 + i;
}

static void pair(MPI_Comm comm, int rank, int n) {
  int *out = malloc((size_t)n * sizeof *out + 1), *in = malloc((size_t)n * sizeof *in + 1);
  fill(out, n, rank);
  MPI_Status status;
  if (rank == 0) {
    MPI_Sendrecv(out, n, MPI_INT, 1, 1, in, n, MPI_INT, 1, 2, comm, &status);
  } else {
    MPI_Recv(in, n, MPI_INT, 0, 1, comm, &status);
    MPI_Send(out, n, MPI_INT, 0, 2, comm);
  }
  CHECK(status.MPI_SOURCE == 1 - rank && status.MPI_TAG == 1 + (rank == 0));
  int count;
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == n);
  fill(out, n, 1 - rank);
  CHECK(memcmp(in, out, (size_t)n * sizeof *in) == 0);
  free(in);
  free(out);
}

static void ring(MPI_Comm comm, int rank, int size) {
  long value = rank, got = -1;
  for (int step = 0; step < size; ++step) {
    MPI_Sendrecv(&value, 1, MPI_LONG, (rank + 1) % size, step, &got, 1, MPI_LONG, (rank + size - 1) % size, step, comm, MPI_STATUS_IGNORE);
    value = got;
  }
  CHECK(value == rank);
  MPI_Sendrecv_replace(&value, 1, MPI_LONG, (rank + 1) % size, 77, (rank + size - 1) % size, 77, comm, MPI_STATUS_IGNORE);
  CHECK(value == (rank + size - 1) % size);
}

// All but rank 0 are late; rank 0 has sent to each of them before it waits for any.
static void star(MPI_Comm comm, int rank, int size) {
  if (rank != 0) {
    compute(0.002);
    long value = rank;
    MPI_Sendrecv_replace(&value, 1, MPI_LONG, 0, 5, 0, 5, comm, MPI_STATUS_IGNORE);
    CHECK(value == 100 + rank);
    return;
  }
  for (int peer = size - 1; peer > 0; --peer) {
    long value = 100 + peer, got;
    MPI_Sendrecv(&value, 1, MPI_LONG, peer, 5, &got, 1, MPI_LONG, peer, 5, comm, MPI_STATUS_IGNORE);
    CHECK(got == peer);
  }
}

SUBJECT(sendrecv, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (rank < 2) {
    const int counts[] = {0, 1, 1000, 20000, 300000};  // eager to rendezvous on every family
    for (int i = 0; i < 5; ++i) pair(comm, rank, counts[i]);
  }
  ring(comm, rank, size);
  star(comm, rank, size);
  // Both directions to oneself.
  long mine = rank, back = -1;
  MPI_Sendrecv(&mine, 1, MPI_LONG, rank, 3, &back, 1, MPI_LONG, rank, 3, comm, MPI_STATUS_IGNORE);
  CHECK(back == rank);
}
