/* All ranks on the same core: ten steps of the same work, a barrier after each. Each rank writes to argv[1]/RANK what its
   steps took by the kernel's two clocks, a line a step: CPU time and wall time in nanoseconds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { STEPS = 10 };

static long long ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set); /* where it is not allowed the ranks share what there is */
  MPI_Init(&argc, &argv);
  volatile double x = 0;
  long long cpu[STEPS], wall[STEPS];
  for (int step = 0; step < STEPS; ++step) {
    const long long wall_from = ns(CLOCK_MONOTONIC), cpu_from = ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 5000000; ++i) x += 1.0 / (i + 1);
    cpu[step] = ns(CLOCK_THREAD_CPUTIME_ID) - cpu_from;
    wall[step] = ns(CLOCK_MONOTONIC) - wall_from;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char name[4096];
  snprintf(name, sizeof name, "%s/%d", argc > 1 ? argv[1] : ".", rank);
  FILE *file = fopen(name, "w");
  if (file == NULL) return 2;
  for (int step = 0; step < STEPS; ++step) fprintf(file, "%lld %lld\n", cpu[step], wall[step]);
  if (fclose(file) != 0) return 2;
  MPI_Finalize();
  return 0;
}
