// Calls with arguments that the MPI library refuses, where an error handler of the program's own hears of it and returns, and one
// exchange of messages that it carries out.
#include "check.h"

#include <mpi.h>

static int heard;

static void hear(MPI_Comm *comm, int *error, ...) { heard += comm != NULL && *error != MPI_SUCCESS; }

int main(int argc, char **argv) {
  enum { kBadTag = -77, kBadCount = -1, kRefused = 6 };
  MPI_Init(&argc, &argv);
  int rank, in = -1;
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  const int other = 1 - rank;
  MPI_Recv(&in, 1, MPI_INT, other, kBadTag, comm, MPI_STATUS_IGNORE);
  MPI_Recv(&in, kBadCount, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
  MPI_Send(&rank, kBadCount, MPI_INT, other, 0, comm);
  MPI_Send(&rank, 1, MPI_DATATYPE_NULL, other, 0, comm);
  MPI_Irecv(&in, kBadCount, MPI_INT, other, 0, comm, &request);
  MPI_Bcast(&in, kBadCount, MPI_INT, 0, comm);
  CHECK(heard == kRefused);
  MPI_Sendrecv(&rank, 1, MPI_INT, other, 0, &in, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
  CHECK(in == other);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return check_failures != 0;
}
