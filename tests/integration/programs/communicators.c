// Many communicators at a time, and many one after the other; a call on each.
// usage: communicators AT_A_TIME IN_TURN
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

static void look(MPI_Comm comm) {
  int flag = 1;
  CHECK(MPI_Iprobe(0, 1, comm, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag == 0);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int many = argc == 3 ? atoi(argv[1]) : 0, in_turn = argc == 3 ? atoi(argv[2]) : 0;
  MPI_Comm *const comms = malloc(((size_t)many + 1) * sizeof *comms);
  for (int i = 0; i < many; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
    look(comms[i]);
  }
  for (int i = 0; i < many; ++i) MPI_Comm_free(&comms[i]);
  for (int i = 0; i < in_turn; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &comms[0]);
    look(comms[0]);
    MPI_Comm_free(&comms[0]);
  }
  free(comms);
  MPI_Finalize();
  return check_failures != 0;
}
