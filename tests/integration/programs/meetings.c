/* Ranks come to collective calls one after the other, milliseconds apart, each time another one last. In all of MPI_COMM_WORLD, and in
 * the two halves of it. Before they come they sleep, so that those who wait have the cores.
 *
 * usage: meetings ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kApartUs = 2000, kMostRanks = 64 };

static void expect(int right, const char* call) {
  if (right) return;
  printf("%s: wrong\n", call);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void come(MPI_Comm comm, int round) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  usleep((useconds_t)(kApartUs * ((rank + round) % size)));
}

static void meet(MPI_Comm comm, int round) {
  int rank, size, sum = 0, mine[kMostRanks], theirs[kMostRanks];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int value = rank + round;
  switch (round % 4) {
    case 0:
      MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
      expect(sum == size * (size - 1) / 2 + size * round, "MPI_Allreduce");
      break;
    case 1:
      MPI_Allgather(&value, 1, MPI_INT, theirs, 1, MPI_INT, comm);
      for (int i = 0; i < size; ++i) expect(theirs[i] == i + round, "MPI_Allgather");
      break;
    case 2:
      for (int i = 0; i < size; ++i) mine[i] = 100 * rank + i;
      MPI_Alltoall(mine, 1, MPI_INT, theirs, 1, MPI_INT, comm);
      for (int i = 0; i < size; ++i) expect(theirs[i] == 100 * i + rank, "MPI_Alltoall");
      break;
    default:
      MPI_Barrier(comm);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = argc > 1 ? atoi(argv[1]) : 8;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int round = 0; round < rounds; ++round) {
    come(MPI_COMM_WORLD, round);
    meet(MPI_COMM_WORLD, round);
    come(half, round);
    meet(half, round + 1);
  }
  MPI_Comm_free(&half);
  if (rank == 0) printf("met\n");
  MPI_Finalize();
  return 0;
}
