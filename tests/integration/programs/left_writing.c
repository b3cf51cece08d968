// A signal comes while a part of the trace is written, and its handler ends the process.
// usage: left_writing calls|communicators
#define _GNU_SOURCE
#include "check.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t armed;  // it comes in the write that is as many away

// In the place of libc's: the call by which traces are written.
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  char name[64], path[4096] = "";
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (armed && readlink(name, path, sizeof path - 1) > 0 && strstr(path, ".ftr") != NULL && --armed == 0) raise(SIGUSR1);
  return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

static void on_signal(int s) {
  (void)s;
  exit(5);
}

int main(int argc, char **argv) {
  signal(SIGUSR1, on_signal);
  MPI_Init(&argc, &argv);
  int rank, value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int naming = argc > 1 && strcmp(argv[1], "communicators") == 0;
  armed = naming ? 10 : 1;
  for (int i = 0; i < 50 && naming; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_free(&copy);
  }
  for (int i = 0; i < 2000; ++i) MPI_Sendrecv(&rank, 1, MPI_INT, rank, 7, &value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  armed = 0;
  MPI_Finalize();
  return check_failures != 0;
}
