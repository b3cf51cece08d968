// Each of 200 communicators is freed after 20 calls, and its callback makes one more.
#include <mpi.h>
#include <stddef.h>

enum { kComms = 200, kCallsBefore = 20 };

__attribute__((noinline)) static void look(void) {
  int found;
  MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  look();
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int key;
  MPI_Comm copies[kComms];
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
  for (int i = 0; i < kComms; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &copies[i]);
    MPI_Comm_set_attr(copies[i], key, NULL);
  }
  for (int i = 0; i < kComms; ++i) {
    for (int k = 0; k < kCallsBefore; ++k) look();
    MPI_Comm_free(&copies[i]);
  }
  MPI_Finalize();
  return 0;
}
