// Rank 0 sends to the last rank, which waits for it, by a request that it made before it had to do with others: with more
// of them than are remembered. All others rest meanwhile.
// With `parts` it sends a part of one message each time.
// usage: prepared ROUNDS PAUSE_US [parts]
#include "check.h"

#include "mpi4.h"
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

// Each round starts the request, or is a part of what it sends.
static void send_again(int rounds, double pause, int parts, int rank, int *value, MPI_Request *prepared) {
  if (parts) MPI_Start(prepared);
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) rest(pause);
#if HAS_MPI4
    if (parts && rank == 0) MPI_Pready(round, *prepared);
#endif
    if (parts) continue;
    *value = rank == 0 ? round : -1;
    MPI_Start(prepared);
    MPI_Wait(prepared, MPI_STATUS_IGNORE);
    CHECK(*value == round);
  }
  if (parts) MPI_Wait(prepared, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc >= 3);
  const int rounds = argc >= 3 ? atoi(argv[1]) : 0, parts = argc > 3;
  const double pause = argc >= 3 ? atof(argv[2]) * 1e-6 : 0;
  int rank, size, value = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int last = size - 1;
  MPI_Request prepared = MPI_REQUEST_NULL;
  MPI_Comm comms[kComms];
  char *const bytes = calloc((size_t)rounds + 1, 1);
#if HAS_MPI4
  if (parts && rank == 0) MPI_Psend_init(bytes, rounds, 1, MPI_CHAR, last, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &prepared);
  if (parts && rank == last) MPI_Precv_init(bytes, rounds, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &prepared);
#endif
  if (!parts && rank == 0) MPI_Send_init(&value, 1, MPI_INT, last, 0, MPI_COMM_WORLD, &prepared);
  if (!parts && rank == last) MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &prepared);
  meet_others(rank, last, comms);
  if (rank == 0 || rank == last) send_again(rounds, pause, parts, rank, &value, &prepared);
  if (rank != 0 && rank != last) rest(rounds * pause);
  if (prepared != MPI_REQUEST_NULL) MPI_Request_free(&prepared);
  for (int i = 0; i < kComms; ++i) MPI_Comm_free(&comms[i]);
  free(bytes);
  MPI_Finalize();
  return check_failures != 0;
}
