// The four send modes keep their meaning: a synchronous send ends only once its receive has begun.
#include "subject.h"

#include <stdlib.h>

static void synchronous(MPI_Comm comm, int rank) {
  int value = 3, flag = 1;
  MPI_Request request;
  if (rank == 0) {
    MPI_Issend(&value, 1, MPI_INT, 1, 1, comm, &request);
    for (int i = 0; i < 50; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      CHECK(!flag);
    }
    MPI_Send(NULL, 0, MPI_INT, 1, 2, comm);  // only now may the other side receive it
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ssend(&value, 1, MPI_INT, 1, 3, comm);
  } else {
    MPI_Recv(NULL, 0, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
    compute(0.003);
    MPI_Recv(&value, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
  }
}

static void ready(MPI_Comm comm, int rank) {
  int in = -1, out = 8;
  MPI_Request request;
  if (rank == 1) {
    MPI_Irecv(&in, 1, MPI_INT, 0, 4, comm, &request);
    MPI_Send(NULL, 0, MPI_INT, 0, 5, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == 8);
  } else {
    MPI_Recv(NULL, 0, MPI_INT, 1, 5, comm, MPI_STATUS_IGNORE);
    MPI_Rsend(&out, 1, MPI_INT, 1, 4, comm);
  }
}

// Both send first: legal, because the buffer was attached for it.
static void buffered(MPI_Comm comm, int rank) {
  enum { n = 50000 };
  const int space = 3 * (n * (int)sizeof(int) + MPI_BSEND_OVERHEAD);
  int *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in), size;
  void *buffer = malloc((size_t)space), *detached;
  for (int i = 0; i < n; ++i) out[i] = rank + i;
  MPI_Buffer_attach(buffer, space);
  MPI_Bsend(out, n, MPI_INT, 1 - rank, 6, comm);
  MPI_Request request;
  MPI_Ibsend(out, n, MPI_INT, 1 - rank, 7, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  out[0] = -9;  // a buffered send has its copy
  for (int tag = 6; tag < 8; ++tag) {
    MPI_Recv(in, n, MPI_INT, 1 - rank, tag, comm, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1 - rank && in[n - 1] == 1 - rank + n - 1);
  }
  MPI_Buffer_detach(&detached, &size);
  CHECK(detached == buffer && size == space);
  free(buffer), free(out), free(in);
}

SUBJECT(sends, 2) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank > 1) return;
  synchronous(comm, rank);
  ready(comm, rank);
  buffered(comm, rank);
}
