/* An imbalanced program: in every step rank 0 computes for WAIT microseconds longer than the others, which wait
 * for it in the way that PATTERN says. Prints the run time, and the CPU time of all ranks together.
 *
 * usage: imbalance PATTERN WAIT_US STEPS [COMMON_US] [JITTER_PERCENT] [cpu]
 * PATTERN: recv | allreduce | waitall | testall | barrier | seldom | phases
 *
 * seldom: an exchange, for which only one time in SELDOM has to be waited; the processors are busy otherwise.
 * phases: one function sums from one place in the code, three times a step; the first sum, which follows an exchange,
 * has to wait for 14/15 of WAIT, the two others for 1/30 each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SELDOM = 1024 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static clockid_t work_clock = CLOCK_MONOTONIC;

static double worked_us(void) {
  struct timespec t;
  clock_gettime(work_clock, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Work of a fixed time on the wall: what a neighbour on the machine takes away does not lengthen it. With "cpu", of the processor's. */
static void compute(double us) {
  const double end = worked_us() + us;
  while (worked_us() < end) {
  }
}

static double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static volatile long sums;

static __attribute__((noinline)) void add_up(double* local, double* sum) {
  MPI_Allreduce(local, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ++sums; /* else the call would be a jump, and come from where this function is called */
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) {
    fprintf(stderr, "usage: imbalance recv|allreduce|waitall|testall|barrier|seldom|phases WAIT_US STEPS [COMMON_US] [JITTER_PERCENT] [cpu]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* pattern = argv[1];
  const double wait = atof(argv[2]), common = argc > 4 ? atof(argv[4]) : 20, jitter = argc > 5 ? atof(argv[5]) / 100 : 0;
  const int steps = atoi(argv[3]);
  if (argc > 6 && strcmp(argv[6], "cpu") == 0) work_clock = CLOCK_THREAD_CPUTIME_ID;
  srand(1234 + rank);
  double local = 1, sum = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_us(), cpu_start = cpu_s();
  double longer = 0; /* all that rank 0 computes longer than the others */
  for (int step = 0; step < steps; ++step) {
    const int seldom = strcmp(pattern, "seldom") == 0;
    const double noise = 1 + jitter * (2.0 * rand() / RAND_MAX - 1), late = seldom && step % SELDOM != SELDOM - 1 ? 0 : wait * noise;
    longer += late;
    if (strcmp(pattern, "phases") == 0) {
      MPI_Sendrecv(&local, 1, MPI_DOUBLE, (rank + 1) % size, 2, &sum, 1, MPI_DOUBLE, (rank + size - 1) % size, 2, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      compute(common / 3 + (rank == 0 ? late * 14 / 15 : 0));
      add_up(&local, &sum);
      for (int i = 0; i < 2; ++i) {
        compute(common / 3 + (rank == 0 ? late / 30 : 0));
        add_up(&local, &sum);
      }
      continue;
    }
    compute(common + (rank == 0 ? late : 0));
    if (seldom) {
      MPI_Sendrecv(&local, 1, MPI_DOUBLE, (rank + 1) % size, 2, &sum, 1, MPI_DOUBLE, (rank + size - 1) % size, 2, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    } else if (strcmp(pattern, "recv") == 0) {
      if (rank == 0) {
        for (int p = 1; p < size; ++p) MPI_Send(&local, 1, MPI_DOUBLE, p, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(&sum, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    } else if (strcmp(pattern, "waitall") == 0 || strcmp(pattern, "testall") == 0) {
      MPI_Request r[2];
      double in;
      const int right = (rank + 1) % size, left = (rank + size - 1) % size;
      MPI_Irecv(&in, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &r[0]);
      MPI_Isend(&local, 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &r[1]);
      if (strcmp(pattern, "waitall") == 0) {
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
      } else {
        for (int done = 0; !done;) MPI_Testall(2, r, &done, MPI_STATUSES_IGNORE);
      }
    } else if (strcmp(pattern, "barrier") == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Allreduce(&local, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = (now_us() - start) * 1e-6;
  double cpu = cpu_s() - cpu_start, all = 0;
  MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("seconds %.6f cpu_s %.6f computing_s %.6f\n", seconds, all, 1e-6 * (longer + steps * common * size));
  MPI_Finalize();
  return 0;
}
