// Two ranks sum up 2 MB again and again, rank 0 late each time: it computes, or tests for something else. Says how many microseconds
// a sum takes from when it comes.   usage: long_sums ROUNDS PAUSE_MS reduce|waited|tested
#include "check.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 500000 };

static int mine[NUMBERS], sum[NUMBERS];

/// For so long; in `tested` it looks for a message that comes when the round is over.
static void be_late(double seconds, MPI_Request *other) {
  for (const double end = seconds_now() + seconds; seconds_now() < end;) {
    int found = 0;
    if (*other != MPI_REQUEST_NULL) CHECK(MPI_Test(other, &found, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(!found);
  }
}

static void meet(const char *how, int rank) {
  if (strcmp(how, "reduce") == 0) {
    CHECK(MPI_Reduce(mine, sum, NUMBERS, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    return;
  }
  MPI_Request request;
  int over = 0;
  CHECK(MPI_Iallreduce(mine, sum, NUMBERS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  while (rank == 0 && strcmp(how, "tested") == 0 && !over) CHECK(MPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 4);
  const int rounds = argc == 4 ? atoi(argv[1]) : 0;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < NUMBERS; ++i) mine[i] = i % 1000 + rank;
  double took = 0;
  for (int round = 0; round < rounds; ++round) {
    char over = 'x';
    MPI_Request other = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      if (strcmp(argv[3], "tested") == 0) MPI_Irecv(&over, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &other);
      be_late(atof(argv[2]) * 1e-3, &other);
    }
    const double begin = seconds_now();
    meet(argv[3], rank);
    MPI_Barrier(MPI_COMM_WORLD);
    took += seconds_now() - begin;
    if (rank == 1 && strcmp(argv[3], "tested") == 0) MPI_Send(&over, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    for (int i = 0; i < NUMBERS && rank == 0; ++i) CHECK(sum[i] == 2 * (i % 1000) + 1);
  }
  if (rank == 0) printf("%.1f\n", took / rounds * 1e6);
  MPI_Finalize();
  return check_failures != 0;
}
