// Ranks take turns at computing for a little more than a millisecond, and wait for each other: in a sum, in MPI_Waitall, or in a loop of tests.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static volatile double result;

static void work(double steps) {  // without a system call, as programs do
  double x = result;
  for (double i = 0; i < steps; ++i) x = x * 0.999 + 1;
  result = x;
}

/// Steps of work() that take a microsecond of the processor's time.
static double steps_per_us(void) {
  const double start = cpu_seconds(), many = 1e6;
  work(many);
  return many / (1e6 * (cpu_seconds() - start));
}

static void exchange(int rank, int size, int turn, int tests) {
  int got[2] = {-1, -1};
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Request r[4];
  MPI_Irecv(&got[0], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &r[0]);
  MPI_Irecv(&got[1], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &r[1]);
  MPI_Isend(&turn, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &r[2]);
  MPI_Isend(&turn, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &r[3]);
  int done = 0;
  while (tests && !done) MPI_Testall(4, r, &done, MPI_STATUSES_IGNORE);
  if (!tests) MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  CHECK(got[0] == turn && got[1] == turn);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const char *how = argv[1];
  const int turns = atoi(argv[2]);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double us = steps_per_us();
  for (int turn = 0; turn < turns; ++turn) {
    work(us * (turn % size == rank ? 1200 : 200));
    int sum = 0;
    if (strcmp(how, "sum") == 0) {
      MPI_Allreduce(&turn, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      CHECK(sum == size * turn);
    } else {
      exchange(rank, size, turn, strcmp(how, "tests") == 0);
    }
  }
  MPI_Finalize();
  return check_failures != 0;
}
