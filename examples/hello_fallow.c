/* Hints from an application to Fallow. Nothing is linked, and without Fallow the hints do nothing. */
#include <fallow/fallow.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fallow_begin_latency_critical(); /* waits spin from here, for a peer that must not be kept waiting */
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  fallow_end_latency_critical();
  if (rank == 0) printf("the ranks add up to %d, %s Fallow\n", sum, fallow_is_active() ? "with" : "without");
  return MPI_Finalize();
}
