/* Probes with some work in between; each that names a rank that there is not is left by an error handler that jumps.
 *
 * usage: leaves_tests PROBES */
#include <mpi.h>
#include <setjmp.h>
#include <stdlib.h>

#include "check.h"

enum { EVERY = 1000 };

static jmp_buf loop;
static volatile unsigned work;

static void leave(MPI_Comm *comm, int *error, ...) {
  (void)comm, (void)error;
  longjmp(loop, 1);
}

int main(int argc, char **argv) {
  volatile long i, left = 0;
  MPI_Errhandler handler;
  MPI_Init(&argc, &argv);
  const long probes = atol(argv[1]);
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (i = 1; i <= probes; ++i) {
    int found;
    if (setjmp(loop) != 0) {
      ++left;
      continue;
    }
    MPI_Iprobe(i % EVERY == 0 ? 77 : 0, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    for (int k = 0; k < 200; ++k) work = work * 1664525u + 1013904223u;
  }
  CHECK(left == probes / EVERY);
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return check_failures != 0;
}
