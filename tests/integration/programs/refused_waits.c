// Blocking calls that the MPI library refuses, where an error handler of the program's own hears of it and returns: each returns, says
// what it says to the handler once, and leaves nothing behind.
#include "check.h"

#include <mpi.h>

enum { kNobody = 99, kUntouched = -77 };

static int heard;

static void hear(MPI_Comm *comm, int *error, ...) { heard += comm != NULL && *error != MPI_SUCCESS; }

static MPI_Status untouched(void) {
  MPI_Status status;
  status.MPI_SOURCE = kUntouched;
  return status;
}

static void told(const char *call, const MPI_Status *status) {
  printf("%s: handler called %d times, status %s\n", call, heard, status->MPI_SOURCE == kUntouched ? "untouched" : "set");
  heard = 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  static int out[1000], in[1000];
  int found = 0;
  MPI_Message message;
  MPI_Status status = untouched();
  MPI_Ssend(out, 1000, MPI_INT, kNobody, 0, comm);
  told("MPI_Ssend", &status);
  MPI_Send(out, 1000, MPI_INT, kNobody, 0, comm);
  told("MPI_Send", &status);
  MPI_Recv(in, 1000, MPI_INT, kNobody, 0, comm, &status);
  told("MPI_Recv", &status);
  status = untouched();
  MPI_Sendrecv(out, 1000, MPI_INT, kNobody, 0, in, 1000, MPI_INT, 0, 0, comm, &status);
  told("MPI_Sendrecv to nobody", &status);
  status = untouched();
  MPI_Sendrecv(out, 1, MPI_INT, 0, 0, in, 1000, MPI_INT, kNobody, 0, comm, &status);
  told("MPI_Sendrecv from nobody", &status);
  status = untouched();
  MPI_Probe(kNobody, 0, comm, &status);
  told("MPI_Probe", &status);
  status = untouched();
  MPI_Mprobe(kNobody, 0, comm, &message, &status);
  told("MPI_Mprobe", &status);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, MPI_STATUS_IGNORE);
  CHECK(!found);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return check_failures != 0;
}
