/* A program that goes on after a rank has failed: all agree, rank 0 late, then the last rank kills itself, and the others, of which
 * the library has to tell that, leave the communicator behind. */
#include "check.h"

#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

static MPI_Comm left_of(MPI_Comm comm) {
  MPI_Comm rest = MPI_COMM_NULL;
  MPIX_Comm_revoke(comm);
  CHECK(MPIX_Comm_shrink(comm, &rest) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  return rest;
}

int main(int argc, char** argv) {
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
  if (rank == size - 1) raise(SIGKILL);
  int left = size;
  for (int i = 0; i < 200; ++i) {
    if (rank == 0 && i % 10 == 0) usleep(2000);
    const int one = 1;
    if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS) {
      CHECK(sum == left);
      continue;
    }
    CHECK(left == size);
    comm = left_of(comm);
    MPI_Comm_size(comm, &left);
    CHECK(left == size - 1);
    i = 0;
  }
  if (rank == 0) printf("%d left of %d\n", left, size);
  MPI_Finalize();
  return check_failures != 0;
}
