// The many ways in which a program ends; the first argument says which.
#include "check.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
  (void)key, (void)value, (void)extra;
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);  // inside MPI_Finalize, on MPI_COMM_SELF
  printf("attribute deleted, sum %d\n", sum);
  return MPI_SUCCESS;
}

static void late(void) {
  int finalized = -1, initialized = -1;
  MPI_Finalized(&finalized);
  MPI_Initialized(&initialized);
  printf("at exit: initialized %d finalized %d\n", initialized, finalized);
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  int flag = -1, major, minor;
  MPI_Initialized(&flag);  // allowed before MPI_Init
  MPI_Get_version(&major, &minor);
  if (strcmp(way, "never") == 0) return 9;
  if (strcmp(way, "atexit") == 0) atexit(late);
  int rank, size, sum = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("sum %d\n", sum);
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(way, "abort") == 0) {
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 42);
    MPI_Recv(&sum, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // for ever
  }
  if (strcmp(way, "exit7") == 0) exit(7);
  if (strcmp(way, "_exit8") == 0) _exit(8);
  if (strcmp(way, "exit0") == 0) exit(0);
  if (strcmp(way, "crash") == 0) {
    if (rank == 0) raise(SIGSEGV);
    MPI_Recv(&sum, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strcmp(way, "fatal") == 0) {
    if (rank == 0) MPI_Send(&sum, 1, MPI_INT, size + 9, 0, MPI_COMM_WORLD);
    MPI_Recv(&sum, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strcmp(way, "delete") == 0) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  }
  MPI_Finalize();
  MPI_Finalized(&flag);  // allowed after MPI_Finalize
  printf("finalized %d\n", flag);
  if (strcmp(way, "return3") == 0) return 3;
  if (strcmp(way, "busy") == 0) compute(0.2);  // goes on for a while after MPI is over
  return check_failures != 0;
}
