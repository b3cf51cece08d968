// One rank is late for each of many calls that take several messages; all check what they get. Or rank 0 is late every time for
// the message that the next rank waits for, always as late or, if irregular, from nothing to twice that.
// usage: late ROUNDS LATE_US collective|exchange|message|irregular
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 8192, EXCHANGED = 131072 };

/// Every rank sends to all others; the values come from rank, addressee and round.
static void collective(int rank, int size, int round, double *out, double *in, const int *counts, const int *begins) {
  for (int i = 0; i < size; ++i) out[i * LONG + round % LONG] = rank * 1000.0 + i + round;
  CHECK(MPI_Alltoallv(out, counts, begins, MPI_DOUBLE, in, counts, begins, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int i = 0; i < size; ++i) CHECK(in[i * LONG + round % LONG] == i * 1000.0 + rank + round);
}

/// Every rank sends a megabyte to the next: the receiver has to fetch it.
static void exchange(int rank, int size, int round, double *out, double *in) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  out[round % EXCHANGED] = rank * 1000.0 + round;
  CHECK(MPI_Sendrecv(out, EXCHANGED, MPI_DOUBLE, next, 1, in, EXCHANGED, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(in[round % EXCHANGED] == before * 1000.0 + round);
}

/// Rank 0 sends a number to rank 1.
static void message(int rank, int round) {
  int number = round;
  if (rank == 0) CHECK(MPI_Send(&number, 1, MPI_INT, 1, 2, MPI_COMM_WORLD) == MPI_SUCCESS);
  if (rank == 1) CHECK(MPI_Recv(&number, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(number == round);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 4);
  const int rounds = argc == 4 ? atoi(argv[1]) : 0;
  const double late = argc == 4 ? atof(argv[2]) * 1e-6 : 0;
  const int exchanges = argc == 4 && strcmp(argv[3], "exchange") == 0, irregular = argc == 4 && strcmp(argv[3], "irregular") == 0;
  const int messages = irregular || (argc == 4 && strcmp(argv[3], "message") == 0);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t room = (size_t)size * LONG > EXCHANGED ? (size_t)size * LONG : EXCHANGED;
  double *const out = calloc(room, sizeof(double)), *const in = calloc(room, sizeof(double));
  int *const counts = malloc((size_t)size * sizeof(int)), *const begins = malloc((size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) {
    counts[i] = LONG;
    begins[i] = i * LONG;
  }
  unsigned random = 1;
  for (int round = 0; round < rounds; ++round) {
    random = random * 1103515245u + 12345u;  // the same on every rank
    if ((messages ? 0 : (int)((random >> 16) % (unsigned)size)) == rank) compute(irregular ? late * (random >> 16) / 32768.0 : late);
    if (messages) {
      message(rank, round);
    } else if (exchanges) {
      exchange(rank, size, round, out, in);
    } else {
      collective(rank, size, round, out, in, counts, begins);
    }
  }
  free(out);
  free(in);
  free(counts);
  free(begins);
  MPI_Finalize();
  return check_failures != 0;
}
