/* What a network's model needs, measured between ranks 0 and 1: half a round trip of 8 bytes, the time of a byte of a long
 * message (the slope from 1 to 4 MiB), alone and while as much comes back, the time of a core for sending a short message and
 * for receiving one that is there or yet to come, and the time of each in a stream of them. Medians of batches. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 21, STREAM = 500, SINGLE = 301, LONG = 4 << 20 };

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int n) {
  qsort(values, (size_t)n, sizeof *values, ascending);
  return values[n / 2];
}

static double half_round_trip_us(int rank, char* buffer, int bytes, int repeats, int batches) {
  double times[BATCHES];
  for (int b = 0; b < batches; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < repeats; ++i) {
      if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      if (rank < 2) MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    times[b] = (MPI_Wtime() - start) / repeats / 2 * 1e6;
  }
  return median(times, batches);
}

static double exchange_us(int rank, char* out, char* in, int bytes, int repeats, int batches) {
  double times[BATCHES];
  for (int b = 0; b < batches; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < repeats && rank < 2; ++i)
      MPI_Sendrecv(out, bytes, MPI_CHAR, 1 - rank, 0, in, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    times[b] = (MPI_Wtime() - start) / repeats * 1e6;
  }
  return median(times, batches);
}

static double stream_us(int rank, char* buffer) {
  double times[BATCHES];
  for (int b = 0; b < BATCHES; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < STREAM; ++i) {
      if (rank == 0) MPI_Send(buffer, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      if (rank == 1) MPI_Recv(buffer, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    times[b] = (MPI_Wtime() - start) / STREAM * 1e6;
  }
  return median(times, BATCHES);
}

static void pass_us(double us) {
  const double end = MPI_Wtime() + us * 1e-6;
  while (MPI_Wtime() < end) {
  }
}

/* What rank 0 takes to send a message, and rank 1 to receive it when it has long been there, or to say that it will. */
static double core_us(int rank, char* buffer, int early) {
  double times[SINGLE];
  for (int i = 0; i < SINGLE; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    pass_us((rank == 0) == (early == 0) ? 40 : 100);  // ranks leave a barrier some microseconds apart
    const double start = MPI_Wtime();
    if (rank == 0) MPI_Send(buffer, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    if (rank == 1 && early) MPI_Irecv(buffer, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    if (rank == 1 && !early) MPI_Recv(buffer, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    times[i] = (MPI_Wtime() - start) * 1e6;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0) pass_us(100);
  }
  return median(times, SINGLE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *buffer = malloc(LONG), *other = malloc(LONG);
  memset(buffer, rank, LONG);
  memset(other, rank, LONG);
  const double small = half_round_trip_us(rank, buffer, 8, 200, BATCHES);
  const double one = half_round_trip_us(rank, buffer, 1 << 20, 2, 9);
  const double four = half_round_trip_us(rank, buffer, LONG, 2, 5);
  const double both_one = exchange_us(rank, buffer, other, 1 << 20, 2, 9), both_four = exchange_us(rank, buffer, other, LONG, 2, 5);
  const double stream = stream_us(rank, buffer);
  const double core = core_us(rank, buffer, 0), early = core_us(rank, buffer, 1);
  double send = core;
  MPI_Bcast(&send, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 1)
    printf("half_us %.3f ns_per_byte %.5f message_us %.3f exchanged_ns_per_byte %.5f send_us %.3f receive_us %.3f early_us %.3f\n", small,
           (four - one) * 1e3 / (3 << 20), stream, (both_four - both_one) * 1e3 / (3 << 20), send, core, early);
  free(buffer);
  free(other);
  MPI_Finalize();
  return 0;
}
