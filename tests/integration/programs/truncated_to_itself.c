// Messages that a rank sends to itself and that are longer than the buffers that they are received in, where the error handler of the
// communicator alone is the program's own, and all others would end it.
#include <mpi.h>
#include <stdio.h>

enum { kSent = 40, kTaken = 4, kTag = 3 };

static int heard;

static void handler(MPI_Comm *comm, int *error, ...) { heard += comm != NULL && *error != MPI_SUCCESS; }

static void receive(MPI_Comm comm, int source) {
  char out[kSent] = "", in[kTaken];
  MPI_Request request;
  MPI_Isend(out, kSent, MPI_CHAR, 0, kTag, comm, &request);
  const int result = MPI_Recv(in, kTaken, MPI_CHAR, source, kTag, comm, MPI_STATUS_IGNORE);
  printf("from %s: %s, handler called %d times\n", source == 0 ? "itself" : "anyone", result == MPI_SUCCESS ? "success" : "an error", heard);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm copy;
  MPI_Errhandler own;
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(copy, own);
  receive(copy, 0);
  receive(copy, MPI_ANY_SOURCE);
  MPI_Errhandler_free(&own);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  return 0;
}
