/* Short messages between ranks 0 and 1 that are started and waited for: many to one side with an answer at the end, as message rates are measured,
 * and one each way at a time; and the latter in one call. Nanoseconds of each message or exchange, the medians of batches.
 *
 * usage: message_rate [BYTES] [BATCHES] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 64, LARGEST = 4096, REPEATS = 100, EXCHANGES = 1000 };

static int rank, bytes;
static char buffers[WINDOW][LARGEST];
static MPI_Request requests[WINDOW];

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double window(void) {
  int answer = 0;
  const double start = MPI_Wtime();
  for (int i = 0; i < REPEATS; ++i) {
    if (rank == 0) {
      for (int w = 0; w < WINDOW; ++w) MPI_Isend(buffers[w], bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[w]);
      MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
      MPI_Recv(&answer, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (int w = 0; w < WINDOW; ++w) MPI_Irecv(buffers[w], bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[w]);
      MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
      MPI_Send(&answer, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / REPEATS / WINDOW;
}

static double exchange(void) {
  const double start = MPI_Wtime();
  for (int i = 0; i < EXCHANGES; ++i) {
    MPI_Irecv(buffers[0], bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(buffers[1], bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  return (MPI_Wtime() - start) / EXCHANGES;
}

static double exchange_in_one_call(void) {
  const double start = MPI_Wtime();
  for (int i = 0; i < EXCHANGES; ++i) {
    MPI_Sendrecv(buffers[1], bytes, MPI_CHAR, 1 - rank, 0, buffers[0], bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return (MPI_Wtime() - start) / EXCHANGES;
}

static double median(double (*measure)(void), int batches) {
  double* times = malloc(sizeof *times * (size_t)batches);
  for (int b = -2; b < batches; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double time = measure();
    if (b >= 0) times[b] = time;
  }
  qsort(times, (size_t)batches, sizeof *times, ascending);
  const double middle = times[batches / 2];
  free(times);
  return middle;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bytes = argc > 1 ? atoi(argv[1]) : 8;
  const int batches = argc > 2 ? atoi(argv[2]) : 41;
  const double each = median(window, batches), both = median(exchange, batches);
  const double at_once = median(exchange_in_one_call, batches);
  if (rank == 0) printf("message %.1f\nexchange %.1f\nsendrecv %.1f\n", each * 1e9, both * 1e9, at_once * 1e9);
  MPI_Finalize();
  return 0;
}
