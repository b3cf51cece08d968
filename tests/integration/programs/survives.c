/* What programs call that go on after a rank has failed: the others agree, and leave the communicator behind. Rank 0 comes late.
 * "kill": the last rank kills itself in the middle, of which the library has to tell the others. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static MPI_Comm left_of(MPI_Comm comm) {
  MPI_Comm rest = MPI_COMM_NULL;
  MPIX_Comm_revoke(comm);
  CHECK(MPIX_Comm_shrink(comm, &rest) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  return rest;
}

int main(int argc, char** argv) {
  const int kills = argc > 1 && strcmp(argv[1], "kill") == 0;
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 20; ++i) {
    int flag = rank == 1 ? 5 : 7;
    if (rank == 0) usleep(20000);
    CHECK(MPIX_Comm_agree(comm, &flag) == MPI_SUCCESS && flag == 5);
  }
  if (kills && rank == size - 1) raise(SIGKILL);
  int left = size;
  for (int i = 0; i < 200; ++i) {
    if (rank == 0 && i % 10 == 0) usleep(2000);
    const int one = 1;
    if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS) {
      CHECK(sum == left);
      continue;
    }
    CHECK(kills && left == size);
    comm = left_of(comm);
    MPI_Comm_size(comm, &left);
    CHECK(left == size - 1);
    i = 0;
  }
  if (!kills) {
    comm = left_of(comm);
    MPI_Comm_size(comm, &left);
    CHECK(left == size);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
  }
  if (rank == 0) printf("%d left of %d\n", left, size);
  MPI_Finalize();
  return 0;
}
