// Messages of no bytes and to no one, null requests and empty statuses.
#include "subject.h"

#include <string.h>

static void to_no_one(MPI_Comm comm) {
  int value = 5, flag = 0, count = -1;
  MPI_Status status;
  MPI_Request request;
  MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
  MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(value == 5 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0);
  MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &value, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &request);
  MPI_Wait(&request, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Probe(MPI_PROC_NULL, 1, comm, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Iprobe(MPI_PROC_NULL, 1, comm, &flag, &status);
  CHECK(flag && status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
}

static int is_empty(const MPI_Status *status) {
  int count = -1, cancelled = 1;
  MPI_Get_count(status, MPI_INT, &count);
  MPI_Test_cancelled(status, &cancelled);
  return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

static void null_requests(void) {
  MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status, all[3];
  int flag = 0, index = -1, indices[3], count = -1;
  MPI_Wait(&none[0], &status);
  CHECK(is_empty(&status));
  MPI_Test(&none[0], &flag, &status);
  CHECK(flag && is_empty(&status));
  MPI_Waitany(3, none, &index, &status);
  CHECK(index == MPI_UNDEFINED && is_empty(&status));
  MPI_Testany(3, none, &index, &flag, &status);
  CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
  MPI_Waitsome(3, none, &count, indices, all);
  CHECK(count == MPI_UNDEFINED);
  MPI_Testsome(3, none, &count, indices, all);
  CHECK(count == MPI_UNDEFINED);
  MPI_Waitall(3, none, all);
  CHECK(is_empty(&all[0]) && is_empty(&all[2]));
  MPI_Waitall(0, none, MPI_STATUSES_IGNORE);
  MPI_Testall(0, none, &flag, MPI_STATUSES_IGNORE);
  CHECK(flag);
}

SUBJECT(empty, 2) {
  int rank, size, none = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  to_no_one(comm);
  null_requests();
  MPI_Status status;
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  MPI_Sendrecv(NULL, 0, MPI_INT, next, 4, NULL, 0, MPI_INT, last, 4, comm, &status);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 0 && status.MPI_SOURCE == last);
  MPI_Bcast(NULL, 0, MPI_INT, 0, comm);
  MPI_Reduce(&none, &none, 0, MPI_INT, MPI_SUM, 0, comm);
  MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, comm);
  MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm);
  MPI_Barrier(MPI_COMM_SELF);
  // A blocking receive leaves the error field of its status alone; so must what carries it out.
  memset(&status, 0x5a, sizeof status);
  const int before = status.MPI_ERROR;
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 6, &none, 1, MPI_INT, last, 6, comm, &status);
  note_int(status.MPI_ERROR == before);
  memset(&status, 0x5a, sizeof status);
  MPI_Request request;
  MPI_Isend(&rank, 1, MPI_INT, next, 7, comm, &request);
  MPI_Recv(&none, 1, MPI_INT, last, 7, comm, &status);
  note_int(status.MPI_ERROR == before);
  memset(&status, 0x5a, sizeof status);
  MPI_Wait(&request, &status);
  note_int(status.MPI_ERROR == before);
}
