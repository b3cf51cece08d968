/* What collective calls last: each is made over and over, with ranks that are UNEVEN_US late in turn. Prints microseconds a call.
 *
 * usage: collectives UNEVEN_US ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONG = 65536, SHORT = 1024 };

static double* in;
static double* out;
static int* counts;
static int* begins;
static int size;

static void call_barrier(int round) {
  (void)round;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void call_allreduce(int round) {
  (void)round;
  MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void call_allreduce_long(int round) {
  (void)round;
  MPI_Allreduce(in, out, LONG / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void call_bcast_long(int round) { MPI_Bcast(in, LONG, MPI_BYTE, round % size, MPI_COMM_WORLD); }
static void call_reduce(int round) { MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_SUM, round % size, MPI_COMM_WORLD); }
static void call_gather(int round) { MPI_Gather(in, SHORT, MPI_BYTE, out, SHORT, MPI_BYTE, round % size, MPI_COMM_WORLD); }
static void call_allgather(int round) {
  (void)round;
  MPI_Allgather(in, SHORT, MPI_BYTE, out, SHORT, MPI_BYTE, MPI_COMM_WORLD);
}
static void call_alltoall(int round) {
  (void)round;
  MPI_Alltoall(in, SHORT, MPI_BYTE, out, SHORT, MPI_BYTE, MPI_COMM_WORLD);
}
static void call_alltoallv_long(int round) {
  (void)round;
  MPI_Alltoallv(in, counts, begins, MPI_BYTE, out, counts, begins, MPI_BYTE, MPI_COMM_WORLD);
}
static void call_reduce_scatter(int round) {
  (void)round;
  MPI_Reduce_scatter_block(in, out, SHORT / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*call)(int round);
} calls[] = {{"barrier", call_barrier},
             {"allreduce-8", call_allreduce},
             {"allreduce-64K", call_allreduce_long},
             {"bcast-64K", call_bcast_long},
             {"reduce-8", call_reduce},
             {"gather-1K", call_gather},
             {"allgather-1K", call_allgather},
             {"alltoall-1K", call_alltoall},
             {"alltoallv-64K", call_alltoallv_long},
             {"reduce-scatter-1K", call_reduce_scatter}};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double uneven = argc > 1 ? atof(argv[1]) * 1e-6 : 0;
  const int rounds = argc > 2 ? atoi(argv[2]) : 100;
  in = calloc(size, LONG);
  out = calloc(size, LONG);
  counts = malloc(size * sizeof(int));
  begins = malloc(size * sizeof(int));
  for (int i = 0; i < size; ++i) {
    counts[i] = LONG;
    begins[i] = i * LONG;
  }
  for (unsigned k = 0; k < sizeof calls / sizeof calls[0]; ++k) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    unsigned random = 12345 + k;
    for (int round = 0; round < rounds; ++round) {
      random = random * 1103515245u + 12345u; /* the same on every rank */
      if ((int)((random >> 16) % (unsigned)size) == rank) {
        for (const double end = MPI_Wtime() + uneven; MPI_Wtime() < end;) {
        }
      }
      calls[k].call(round);
    }
    if (rank == 0) printf("%s %.3f\n", calls[k].name, (MPI_Wtime() - start) * 1e6 / rounds);
  }
  MPI_Finalize();
  return 0;
}
