// Generalized requests: their callbacks are called exactly once, whichever way the request completes.
#include "subject.h"

static int queried, freed;

static int query(void *state, MPI_Status *status) {
  queried++;
  MPI_Status_set_elements(status, MPI_INT, *(int *)state);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

static int release(void *state) {
  (void)state;
  freed++;
  return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
  (void)state, (void)complete;
  return MPI_SUCCESS;
}

// Completed before it is waited for, by this thread: MPI_THREAD_SINGLE allows no other.
SUBJECT(grequest, 1) {
  int elements = 6, count = -1, rank, flag = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Request request[2];
  MPI_Status status, both[2];
  queried = freed = 0;
  MPI_Grequest_start(query, release, cancel, &elements, &request[0]);
  MPI_Test(&request[0], &flag, &status);
  CHECK(!flag);
  MPI_Grequest_complete(request[0]);
  MPI_Wait(&request[0], &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 6 && queried == 1 && freed == 1);
  MPI_Grequest_start(query, release, cancel, &elements, &request[0]);
  int in = -1, out = rank;
  MPI_Irecv(&in, 1, MPI_INT, rank, 4, comm, &request[1]);
  MPI_Grequest_complete(request[0]);
  MPI_Send(&out, 1, MPI_INT, rank, 4, comm);
  MPI_Waitall(2, request, both);
  MPI_Get_count(&both[0], MPI_INT, &count);
  CHECK(count == 6 && queried == 2 && freed == 2 && in == rank);
}
