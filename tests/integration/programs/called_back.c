// Ten times 10 ms of computation between calls, and 40 ms in a callback that makes calls itself. Says how long that took in all.
#include "check.h"

#include <mpi.h>

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  for (int i = 0, flag; i < 2; ++i) {
    compute(0.02);
    MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  }
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  const double begin = seconds_now();
  MPI_Init(&argc, &argv);
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
  for (int i = 0; i < 10; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_set_attr(copy, key, NULL);
    compute(0.01);
    MPI_Comm_free(&copy);
  }
  MPI_Finalize();
  printf("seconds %.6f\n", seconds_now() - begin);
  return check_failures != 0;
}
