// Rank 0 sends to the last rank, which waits for it, by a request that it made before it had to do with others: with more of them
// than are remembered. All others rest meanwhile.
// usage: prepared ROUNDS PAUSE_US
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

enum { kComms = 4 };

static void rest(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

// On each of the communicators rank 0 sends to all but the last.
static void meet_others(int rank, int last, MPI_Comm *comms) {
  for (int i = 0; i < kComms; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int to = 1; to < last; ++to) {
      if (rank == 0) MPI_Send(NULL, 0, MPI_INT, to, 1, comms[i]);
      if (rank == to) MPI_Recv(NULL, 0, MPI_INT, 0, 1, comms[i], MPI_STATUS_IGNORE);
    }
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rounds = argc == 3 ? atoi(argv[1]) : 0;
  const double pause = argc == 3 ? atof(argv[2]) * 1e-6 : 0;
  int rank, size, value = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int last = size - 1;
  MPI_Request prepared = MPI_REQUEST_NULL;
  MPI_Comm comms[kComms];
  if (rank == 0) MPI_Send_init(&value, 1, MPI_INT, last, 0, MPI_COMM_WORLD, &prepared);
  if (rank == last) MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &prepared);
  meet_others(rank, last, comms);
  for (int round = 0; round < rounds && (rank == 0 || rank == last); ++round) {
    if (rank == 0) rest(pause);
    value = rank == 0 ? round : -1;
    MPI_Start(&prepared);
    MPI_Wait(&prepared, MPI_STATUS_IGNORE);
    CHECK(value == round);
  }
  if (rank != 0 && rank != last) rest(rounds * pause);
  if (prepared != MPI_REQUEST_NULL) MPI_Request_free(&prepared);
  for (int i = 0; i < kComms; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return check_failures != 0;
}
