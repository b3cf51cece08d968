/* The same call again and again, for counting instructions.   usage: one_call iprobe|self_message|allreduce TIMES */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* what = argc > 1 ? argv[1] : "iprobe";
  const int times = argc > 2 ? atoi(argv[2]) : 1000;
  for (int i = 0; i < times; ++i) {
    if (strcmp(what, "iprobe") == 0) {
      int flag;
      MPI_Iprobe(0, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    } else if (strcmp(what, "self_message") == 0) {
      char in, out = (char)i;
      MPI_Request request;
      MPI_Irecv(&in, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
      MPI_Send(&out, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      double in = i, out;
      MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    }
  }
  MPI_Finalize();
  return 0;
}
