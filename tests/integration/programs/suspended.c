// Rank 1 receives what rank 0 sends each millisecond. Once, rank 0 stops it for a while in which the message comes, as a batch system
// does that suspends a job.
#include "check.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void send_each_millisecond(int rank, int times) {
  for (int i = 0; i < times; ++i) {
    int got = i;
    if (rank == 0) compute(1e-3);
    if (rank == 0) MPI_Send(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == i);
  }
}

static void stop_once(int rank) {
  int pid = (int)getpid();
  if (rank == 1) {
    MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Recv(&pid, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  compute(20e-3);  // it sleeps by now
  CHECK(kill(pid, SIGSTOP) == 0);
  compute(1e-3);
  MPI_Send(&pid, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  compute(0.5);
  CHECK(kill(pid, SIGCONT) == 0);
}

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  send_each_millisecond(rank, 300);
  stop_once(rank);
  send_each_millisecond(rank, atoi(argv[1]));
  MPI_Finalize();
  return check_failures != 0;
}
