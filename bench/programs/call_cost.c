/* Cost of single calls: nanoseconds per call or pair, the median of batches.
 *
 * usage: call_cost [BATCHES] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kRepeats = 2000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void iprobe(int i) {
  int flag;
  (void)i;
  MPI_Iprobe(0, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void self_message(int i) {
  char in, out = (char)i;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
  MPI_Send(&out, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void allreduce(int i) {
  double in = i, out;
  MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void measure(const char* name, int calls, void (*body)(int), int batches, int rank) {
  double* times = malloc(sizeof(double) * (size_t)batches);
  for (int b = -3; b < batches; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (int i = 0; i < kRepeats; ++i) body(i);
    if (b >= 0) times[b] = (now_ns() - start) / kRepeats / calls;
  }
  qsort(times, (size_t)batches, sizeof(double), ascending);
  if (rank == 0) printf("%s ns_per_call %.2f\n", name, times[batches / 2]);
  free(times);
}

/* Where the program has used its caches for its own data since the last call, as between the phases of a computation. The median of single
 * calls, with a reading of the clock. */
static void measure_cold(const char* name, void (*body)(int), int batches, int rank) {
  enum { kBytes = 8 << 20, kLine = 64, kCallsPerBatch = 20 };
  const int calls = batches * kCallsPerBatch;
  double* times = malloc(sizeof(double) * (size_t)calls);
  volatile char* own = malloc(kBytes);
  for (int i = -kCallsPerBatch; i < calls; ++i) {
    for (int at = 0; at < kBytes; at += kLine) ++own[at];
    const double start = now_ns();
    body(i);
    if (i >= 0) times[i] = now_ns() - start;
  }
  qsort(times, (size_t)calls, sizeof(double), ascending);
  if (rank == 0) printf("%s ns_per_call %.2f\n", name, times[calls / 2]);
  free((void*)own);
  free(times);
}

static void self_exchange(int i) {
  double in, out = i;
  MPI_Sendrecv(&out, 1, MPI_DOUBLE, 0, 1, &in, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int batches = argc > 1 ? atoi(argv[1]) : 51;
  if (size == 1) {
    measure("iprobe", 1, iprobe, batches, rank);
    measure("self_message", 3, self_message, batches, rank);
    measure_cold("cold_exchange", self_exchange, batches, rank);
  }
  measure(size == 1 ? "allreduce_self" : "allreduce", 1, allreduce, batches, rank);
  MPI_Finalize();
  return 0;
}
