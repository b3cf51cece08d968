// Ranks end the program by MPI_Abort in a callback of the MPI library: an error handler, as most of those do, or an operation.
// usage: aborts_inside handler|operation
#include "check.h"

#include <mpi.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 100 };

static void handle(MPI_Comm *comm, int *error, ...) {
  (void)error;
  MPI_Abort(*comm, 42);
}

static void operate(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)in, (void)inout, (void)count, (void)type;
  MPI_Abort(MPI_COMM_WORLD, 42);
}

int main(int argc, char **argv) {
  int rank, size, one = 1, sum;
  MPI_Errhandler handler;
  MPI_Op operation;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < CALLS; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && argc > 1 && strcmp(argv[1], "handler") == 0) {
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Send(&one, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  } else if (argc > 1 && strcmp(argv[1], "operation") == 0) {
    MPI_Op_create(operate, 1, &operation);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, operation, MPI_COMM_WORLD);
  }
  for (;;) pause();
}
