// A communicator is freed a second time: its error handler is called for that as often as the library does.
#include "check.h"

#include <mpi.h>

static int calls;
static void handler(MPI_Comm *comm, int *error, ...) { calls += comm != NULL && *error != MPI_SUCCESS; }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Errhandler counts;
  MPI_Comm_create_errhandler(handler, &counts);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, counts);
  MPI_Comm comm, gone;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  gone = comm;
  MPI_Comm_free(&comm);
  const int error = MPI_Comm_free(&gone);
  printf("error %d, handler called %d times\n", error != MPI_SUCCESS, calls);
  MPI_Finalize();
  return 0;
}
