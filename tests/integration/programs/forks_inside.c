/* A callback that forks in each call that the library refuses; the child returns from that call, and ends.
 *
 * usage: forks_inside TIMES */
#include <mpi.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 7 };

static int is_child;

static void refused(MPI_Comm* comm, int* code, ...) {
  int status = 1;
  (void)comm;
  (void)code;
  const pid_t child = fork();
  is_child = child == 0;
  if (!is_child && (waitpid(child, &status, 0) != child || status != 0)) MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char** argv) {
  MPI_Errhandler handler;
  MPI_Comm comm;
  int found;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_errhandler(refused, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  const int times = atoi(argv[1]);
  for (int i = 0; i < times; ++i) {
    MPI_Send(&i, 1, MPI_INT, NOBODY, 0, comm);
    if (is_child) _exit(0);
    for (int look = 0; look < i % 3; ++look) MPI_Iprobe(0, 0, comm, &found, MPI_STATUS_IGNORE);
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
