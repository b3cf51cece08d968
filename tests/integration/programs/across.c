// Two ranks that are neighbours in a graph, and in no way that an algorithm for all ranks would go, wait for each other in turn.
// The others rest meanwhile. Rank 0 says by how many microseconds the rounds last longer than the pauses.
// With `persistent` they exchange by requests that were made before they had to do with all others.
// usage: across ROUNDS PAUSE_US [persistent]
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

static void rest(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

static void meet_all_but(int other, int rank, int size) {
  for (int away = 1; away < size; ++away) {
    const int to = (rank + away) % size, from = (rank - away + size) % size;
    if (to == other) continue;
    MPI_Sendrecv(NULL, 0, MPI_INT, to, 1, NULL, 0, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc >= 3);
  const int rounds = argc >= 3 ? atoi(argv[1]) : 0;
  const double pause = argc >= 3 ? atof(argv[2]) * 1e-6 : 0;
  const int persistent = argc > 3;
  int rank, size, weight = 1, got = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int half = size / 2, other = (rank + half) % size;
  MPI_Comm pairs;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, &weight, 1, &other, &weight, MPI_INFO_NULL, 0, &pairs);
  MPI_Request prepared[2];
  MPI_Status statuses[2];
  CHECK(MPI_Recv_init(&got, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &prepared[0]) == MPI_SUCCESS);
  CHECK(MPI_Send_init(&rank, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &prepared[1]) == MPI_SUCCESS);
  meet_all_but(other, rank, size);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = seconds_now();
  if (rank % half != 0) rest(rounds * pause);
  for (int round = 0; round < rounds && rank % half == 0; ++round) {
    if ((rank == 0) == (round % 2 == 0)) rest(pause);
    got = -1;
    if (persistent) {
      CHECK(MPI_Startall(2, prepared) == MPI_SUCCESS && MPI_Waitall(2, prepared, statuses) == MPI_SUCCESS);
    } else {
      CHECK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, pairs) == MPI_SUCCESS);
    }
    CHECK(got == other);
  }
  if (rank == 0) printf("us a round %.1f\n", ((seconds_now() - begin) / rounds - pause) * 1e6);
  MPI_Request_free(&prepared[0]);
  MPI_Request_free(&prepared[1]);
  MPI_Comm_free(&pairs);
  MPI_Finalize();
  return check_failures != 0;
}
