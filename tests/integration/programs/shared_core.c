/* All ranks on the same core: ten steps of the same work, a barrier after each. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>

int main(int argc, char **argv) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set); /* where it is not allowed the ranks share what there is */
  MPI_Init(&argc, &argv);
  volatile double x = 0;
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 5000000; ++i) x += 1.0 / (i + 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
