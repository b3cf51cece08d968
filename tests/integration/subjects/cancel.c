// A cancelled receive takes no message, says so in its status, and completes whichever way it is waited for.
#include "subject.h"

static void cancel_one(MPI_Comm comm, int way) {
  int value = -1, flag = 0, cancelled = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&value, 1, MPI_INT, 0, 900 + way, comm, &request);
  MPI_Cancel(&request);
  if (way == 0) {
    MPI_Wait(&request, &status);
  } else if (way == 1) {
    while (!flag) MPI_Test(&request, &flag, &status);
  } else if (way == 2) {
    int index;
    MPI_Waitany(1, &request, &index, &status);
    CHECK(index == 0);
  } else {
    MPI_Waitall(1, &request, &status);
  }
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled && request == MPI_REQUEST_NULL && value == -1);
}

SUBJECT(cancel, 2) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  for (int way = 0; way < 4; ++way) cancel_one(comm, way);

  // The message that a cancelled receive would have taken goes to the next one.
  if (rank == 1) {
    int first = -1, second = -1, cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&first, 1, MPI_INT, 0, 7, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    MPI_Send(&first, 0, MPI_INT, 0, 8, comm);
    MPI_Recv(&second, 1, MPI_INT, 0, 7, comm, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(!cancelled && first == -1 && second == 4711);
  } else if (rank == 0) {
    int value = 4711;
    MPI_Recv(NULL, 0, MPI_INT, 1, 8, comm, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 1, 7, comm);
  }

  // A request freed while active still delivers.
  if (rank == 0) {
    MPI_Request request;
    static int value = 12;
    MPI_Isend(&value, 1, MPI_INT, 1, 9, comm, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
  } else if (rank == 1) {
    int value = 0;
    MPI_Recv(&value, 1, MPI_INT, 0, 9, comm, MPI_STATUS_IGNORE);
    CHECK(value == 12);
  }
}
