// A type that the MPI library refuses, on a communicator whose errors are returned: those of all others end the program.
#include "check.h"

#include <mpi.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const MPI_Datatype bad = (MPI_Datatype)0x12345;
  int value = 0, error;
  MPI_Error_class(MPI_Send(&value, 1, bad, 0, 0, comm), &error);
  CHECK(error == MPI_ERR_TYPE);
  MPI_Error_class(MPI_Sendrecv(&value, 1, bad, 0, 0, &value, 1, bad, 0, 0, comm, MPI_STATUS_IGNORE), &error);
  CHECK(error == MPI_ERR_TYPE);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  puts("refused");
  return check_failures != 0;
}
