// Two ranks that are neighbours in a graph, and in no way that an algorithm for all ranks would go, wait for each other in turn.
// The others rest meanwhile. Rank 0 says by how many microseconds the rounds last longer than the pauses.
// usage: across ROUNDS PAUSE_US
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

static void rest(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rounds = argc == 3 ? atoi(argv[1]) : 0;
  const double pause = argc == 3 ? atof(argv[2]) * 1e-6 : 0;
  int rank, size, weight = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int half = size / 2, other = (rank + half) % size;
  MPI_Comm pairs;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, &weight, 1, &other, &weight, MPI_INFO_NULL, 0, &pairs);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = seconds_now();
  if (rank % half != 0) rest(rounds * pause);
  for (int round = 0; round < rounds && rank % half == 0; ++round) {
    if ((rank == 0) == (round % 2 == 0)) rest(pause);
    int got = -1;
    CHECK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, pairs) == MPI_SUCCESS && got == other);
  }
  if (rank == 0) printf("us a round %.1f\n", ((seconds_now() - begin) / rounds - pause) * 1e6);
  MPI_Comm_free(&pairs);
  MPI_Finalize();
  return check_failures != 0;
}
