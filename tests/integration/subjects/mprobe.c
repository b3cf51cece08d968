// Matched probes: the message a probe has taken is received by its handle and by no one else.
#include "subject.h"

SUBJECT(mprobe, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  MPI_Request sends[4], receive;
  int out[4], in = -1;
  for (int i = 0; i < 4; ++i) {
    out[i] = rank * 10 + i;
    MPI_Isend(&out[i], 1, MPI_INT, next, 5, comm, &sends[i]);
  }
  MPI_Message first, second;
  MPI_Status status;
  int flag = 0;
  MPI_Mprobe(last, 5, comm, &first, &status);
  CHECK(status.MPI_SOURCE == last && status.MPI_TAG == 5);
  while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &second, &status);
  MPI_Recv(&in, 1, MPI_INT, last, 5, comm, &status);
  CHECK(in == last * 10 + 2);
  MPI_Mrecv(&in, 1, MPI_INT, &second, &status);
  CHECK(in == last * 10 + 1 && second == MPI_MESSAGE_NULL && status.MPI_SOURCE == last);
  MPI_Imrecv(&in, 1, MPI_INT, &first, &receive);
  MPI_Wait(&receive, &status);
  CHECK(in == last * 10 && first == MPI_MESSAGE_NULL && status.MPI_TAG == 5);
  MPI_Recv(&in, 1, MPI_INT, last, 5, comm, &status);
  CHECK(in == last * 10 + 3);
  MPI_Waitall(4, sends, MPI_STATUSES_IGNORE);
  MPI_Message none;
  MPI_Mprobe(MPI_PROC_NULL, 5, comm, &none, &status);
  CHECK(none == MPI_MESSAGE_NO_PROC);
  MPI_Mrecv(&in, 1, MPI_INT, &none, &status);
  CHECK(none == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL);
}
