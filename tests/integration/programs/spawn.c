// A program that starts more of itself and talks to it.
#include "check.h"

#include <mpi.h>
#include <string.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size, sum = 0;
  MPI_Comm parent, children, all;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    char *arguments[] = {"child", NULL};
    int errors[2];
    MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, errors);
    int value = 100 + rank, got = -1;
    if (rank == 0) {
      MPI_Send(&value, 1, MPI_INT, 1, 4, children);
      MPI_Recv(&got, 1, MPI_INT, 1, 4, children, MPI_STATUS_IGNORE);
      CHECK(got == 101);
    }
    MPI_Intercomm_merge(children, 0, &all);
  } else {
    children = parent;
    CHECK(argc == 2 && strcmp(argv[1], "child") == 0);
    int value = -1;
    if (rank == 1) {
      MPI_Recv(&value, 1, MPI_INT, 0, 4, children, MPI_STATUS_IGNORE);
      value++;
      compute(0.005);
      MPI_Send(&value, 1, MPI_INT, 0, 4, children);
    }
    MPI_Intercomm_merge(children, 1, &all);
  }
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == 4);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&children);
  MPI_Finalize();
  if (parent == MPI_COMM_NULL && rank == 0) printf("%d together\n", sum);
  return check_failures != 0;
}
