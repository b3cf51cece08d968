// Makes 50 calls and is killed in MPI_Finalize, as launchers do with those that are not through it when another rank has failed.
#include <mpi.h>
#include <signal.h>
#include <stddef.h>

static int end(MPI_Comm comm, int key, void *value, void *state) {
  (void)comm, (void)key, (void)value, (void)state;
  raise(SIGKILL);
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  int key;
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 50; ++i) MPI_Barrier(MPI_COMM_SELF);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Finalize();
  return 0;
}
