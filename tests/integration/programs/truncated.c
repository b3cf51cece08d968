// Messages that are longer than the buffers that they are received in: which error handlers hear of them, and what the calls return.
// usage: truncated copy|all    `copy`: that of the communicator alone is the program's own, all others would end it
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kSent = 40, kTaken = 4, kTag = 3 };

static MPI_Comm copy;

static void handler(MPI_Comm *comm, int *error, ...) {
  int class, same;
  MPI_Error_class(*error, &class);
  MPI_Comm_compare(*comm, MPI_COMM_WORLD, &same);
  const char *of = *comm == MPI_COMM_WORLD ? "the world" : *comm == copy ? "the copy" : "itself";
  printf("handler of %s: %s\n", of, class == MPI_ERR_TRUNCATE ? "truncated" : class == MPI_ERR_IN_STATUS ? "in status" : "another");
}

static void tell(const char *call, int result, MPI_Request request) {
  int class;
  MPI_Error_class(result, &class);
  const char *what = result == MPI_SUCCESS ? "success" : class == MPI_ERR_TRUNCATE ? "truncated" : class == MPI_ERR_IN_STATUS ? "in status" : "another";
  printf("%s: %s, %s\n", call, what, request == MPI_REQUEST_NULL ? "over" : "not over");
}

static void receive(int way, char *in) {
  MPI_Status status[1];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message;
  int which;
  switch (way) {
    case 0: tell("recv", MPI_Recv(in, kTaken, MPI_CHAR, 0, kTag, copy, status), request); break;
    case 1: tell("sendrecv", MPI_Sendrecv(in + kTaken, 1, MPI_CHAR, 0, kTag, in, kTaken, MPI_CHAR, 0, kTag, copy, status), request); break;
    case 2:
      MPI_Irecv(in, kTaken, MPI_CHAR, 0, kTag, copy, &request);
      tell("wait", MPI_Wait(&request, status), request);
      break;
    case 3:
      MPI_Irecv(in, kTaken, MPI_CHAR, 0, kTag, copy, &request);
      tell("waitall", MPI_Waitall(1, &request, status), request);
      break;
    case 4:
      MPI_Irecv(in, kTaken, MPI_CHAR, 0, kTag, copy, &request);
      tell("waitany", MPI_Waitany(1, &request, &which, status), request);
      break;
    default:
      MPI_Mprobe(0, kTag, copy, &message, status);
      tell("mrecv", MPI_Mrecv(in, kTaken, MPI_CHAR, &message, status), request);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int ways = argc > 1 && strcmp(argv[1], "all") == 0 ? 6 : 2;
  int rank;
  char bytes[kSent] = "";
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  MPI_Errhandler own;
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(copy, own);
  if (ways > 2) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
  }
  MPI_Errhandler_free(&own);
  for (int way = 0; way < ways; ++way) {
    MPI_Barrier(copy);
    if (rank == 0) {
      MPI_Send(bytes, kSent, MPI_CHAR, 1, kTag, copy);
      if (way == 1) MPI_Recv(bytes, 1, MPI_CHAR, 1, kTag, copy, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      receive(way, bytes);
    }
  }
  MPI_Comm_free(&copy);
  MPI_Finalize();
  return 0;
}
