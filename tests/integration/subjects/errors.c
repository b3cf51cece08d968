// Error handlers that return: same class, same status, same number of calls of the handler.
#include "subject.h"

#include <string.h>

static int handled;
static MPI_Comm handled_comm;

static void on_error(MPI_Comm *comm, int *code, ...) {
  (void)code;
  handled++;
  handled_comm = *comm;
}

static int class_of(int code) {
  int c = -1;
  MPI_Error_class(code, &c);
  return c;
}

static void truncation(MPI_Comm comm, int rank) {
  int in[4] = {-1, -1, -1, -1}, out[4] = {1, 2, 3, 4};
  MPI_Status status;
  memset(&status, 0, sizeof status);
  if (rank == 0) {
    for (int i = 0; i < 4; ++i) MPI_Send(out, 4, MPI_INT, 1, i, comm);
    return;
  }
  MPI_Request request[2];
  MPI_Status both[2];
  CHECK(class_of(MPI_Recv(in, 2, MPI_INT, 0, 0, comm, &status)) == MPI_ERR_TRUNCATE);
  CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 0);
  MPI_Irecv(in, 2, MPI_INT, 0, 1, comm, &request[0]);
  CHECK(class_of(MPI_Wait(&request[0], &status)) == MPI_ERR_TRUNCATE);
  CHECK(status.MPI_TAG == 1);
  MPI_Irecv(in, 2, MPI_INT, 0, 2, comm, &request[0]);
  MPI_Irecv(in, 4, MPI_INT, 0, 3, comm, &request[1]);
  CHECK(class_of(MPI_Waitall(2, request, both)) == MPI_ERR_IN_STATUS);
  CHECK(class_of(both[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
  CHECK(both[1].MPI_ERROR == MPI_SUCCESS || class_of(both[1].MPI_ERROR) == MPI_ERR_PENDING);
  if (both[1].MPI_ERROR != MPI_SUCCESS) MPI_Wait(&request[1], MPI_STATUS_IGNORE);
  CHECK(in[3] == 4);
}

static void bad_arguments(MPI_Comm comm, int size) {
  int value = 0;
  note_int(class_of(MPI_Send(&value, 1, MPI_INT, size + 3, 0, comm)) == MPI_ERR_RANK);
  note_int(class_of(MPI_Recv(&value, 1, MPI_INT, size + 3, 0, comm, MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
  note_int(class_of(MPI_Send(&value, -1, MPI_INT, 0, 0, comm)) == MPI_ERR_COUNT);
  note_int(class_of(MPI_Send(&value, 1, MPI_INT, 0, -5, comm)) == MPI_ERR_TAG);
  note_int(class_of(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, comm)) == MPI_ERR_TYPE);
  note_int(class_of(MPI_Bcast(&value, 1, MPI_INT, size + 3, comm)) == MPI_ERR_ROOT);
  note_int(class_of(MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_OP_NULL, comm)) == MPI_ERR_OP);
  note_int(class_of(MPI_Probe(size + 3, 0, comm, MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
  MPI_Request none = MPI_REQUEST_NULL;
  note_int(class_of(MPI_Start(&none)) == MPI_ERR_REQUEST);
}

SUBJECT(errors, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  // Errors that belong to no communicator go to the world's handler, or since MPI 4 to that of MPI_COMM_SELF.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (rank < 2) truncation(comm, rank);
  bad_arguments(comm, size);

  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  handled = 0;
  int value = 0;
  note_int(class_of(MPI_Send(&value, 1, MPI_INT, size + 3, 0, comm)));
  CHECK(handled == 1 && handled_comm == comm);
  note_int(class_of(MPI_Recv(&value, 1, MPI_INT, size + 3, 0, comm, MPI_STATUS_IGNORE)));
  CHECK(handled == 2);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);

  // After the errors the communicator still works.
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size * (size - 1) / 2);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}
