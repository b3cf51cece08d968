// Handles that come back: types of 1 to 20 bytes and communicators of one rank and of all, each freed before the next is
// made; and calls on 40 communicators from one place. Two ranks.
#include "check.h"

#include <mpi.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  char out[64] = "", in[64];
  for (int size = 1; size <= 20; ++size) {
    MPI_Datatype type;
    MPI_Type_contiguous(size, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_Bcast(out, 1, type, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Type_free(&type);
  }
  for (int i = 0; i < 10; ++i) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? 0 : -i, &comm);
    CHECK(MPI_Alltoall(out, 10, MPI_CHAR, in, 10, MPI_CHAR, comm) == MPI_SUCCESS);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    CHECK(MPI_Alltoall(out, 10, MPI_CHAR, in, 10, MPI_CHAR, comm) == MPI_SUCCESS);
    MPI_Comm_free(&comm);
  }
  for (int i = 0; i < 40; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return check_failures != 0;
}
