/* Short collective calls of two ranks, most of them of each rank alone, as these take no longer than usual on any machine; now and then a
 * long one, or one that the library refuses. Checks what they give. With `late`, the other rank is away now and then: its partner
 * waits. Prints the seconds of the calls of rank 0 that lasted long.
 *
 * usage: counted_collectives ROUNDS [late] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LATE = 10, LATE_MS = 20, LONG = 20000, SELDOM = 1000, REFUSED = 500, ALONE = 3 };

static int rank;
static long *in, *out;

static void check(int holds, int code) {
  if (!holds) MPI_Abort(MPI_COMM_WORLD, code);
}

static int length_of(long i) { return i % SELDOM == SELDOM - 1 ? LONG : (int)(i / 100 % 3); }

/* Operations may be the program's own, and make calls. */
static void sum(void* from, void* to, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((long*)to)[i] += ((long*)from)[i];
}

static void with_one_count(long rounds, MPI_Comm comm, int ranks) {
  MPI_Op own;
  MPI_Op_create(sum, 1, &own);
  for (long i = 0; i < rounds; ++i) {
    const int longs = length_of(i), root = (int)(i / 50) % ranks;
    const long all = ranks == 1 ? i : 2 * i + 1, mine = i + (ranks == 1 ? 0 : rank);
    out[0] = mine;
    if (longs > 0) {
      MPI_Allreduce(i % 200 < 100 ? out : MPI_IN_PLACE, i % 200 < 100 ? in : out, longs, MPI_LONG, i / 300 % 2 == 0 ? MPI_SUM : own, comm);
      check((i % 200 < 100 ? in : out)[0] == all, 3);
    }
    out[0] = mine;
    in[0] = -1;
    MPI_Reduce(out, in, longs, MPI_LONG, MPI_SUM, root, comm);
    check(longs == 0 || in[0] == (ranks == 1 || rank == root ? all : -1), 4);
    in[0] = mine;
    MPI_Bcast(in, longs, MPI_LONG, root, comm);
    check(longs == 0 || in[0] == i + root, 5);
    MPI_Scan(out, in, longs, MPI_LONG, MPI_SUM, comm);
    check(longs == 0 || in[0] == (ranks == 1 || rank == 0 ? i : all), 6);
    MPI_Barrier(comm);
  }
  MPI_Op_free(&own);
}

static void with_parts(long rounds, MPI_Comm comm, int ranks) {
  const int at = ranks == 1 ? 0 : rank;
  for (long i = 0; i < rounds; ++i) {
    const int longs = length_of(i), root = (int)(i / 50) % ranks;
    for (int r = 0; r < ranks; ++r) out[r * longs] = in[r * longs] = i + 10 * at + r;
    MPI_Alltoall(i % 200 < 100 ? out : MPI_IN_PLACE, longs, MPI_LONG, in, longs, MPI_LONG, comm);
    for (int r = 0; longs > 0 && r < ranks; ++r) check(in[r * longs] == i + 10 * r + at, 7);
    MPI_Allgather(out, longs, MPI_LONG, in, longs, MPI_LONG, comm);
    for (int r = 0; longs > 0 && r < ranks; ++r) check(in[r * longs] == i + 10 * r, 8);
    MPI_Gather(out, longs, MPI_LONG, in, longs, MPI_LONG, root, comm);
    MPI_Scatter(out, longs, MPI_LONG, in, longs, MPI_LONG, root, comm);
    check(longs == 0 || in[0] == i + 10 * root + at, 9);
  }
}

static void with_refusals(long rounds) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  long refused = 0;
  for (long i = 0; i < rounds; ++i) {
    refused += MPI_Bcast(in, 1, MPI_LONG, i % REFUSED == REFUSED - 1 ? ALONE : 0, comm) != MPI_SUCCESS;
  }
  check(refused == rounds / REFUSED, 10);
  MPI_Comm_free(&comm);
}

static double with_one_who_is_away(long rounds) {
  const struct timespec away = {0, LATE_MS * 1000000L};
  double waited = 0;
  for (long i = 0; i < rounds; ++i) {
    const double began = MPI_Wtime();
    if (rank == 1 && i % (rounds / LATE) == rounds / LATE - 1) nanosleep(&away, NULL);
    MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    const double lasted = MPI_Wtime() - began;
    if (rank == 0 && lasted > LATE_MS * 1e-3 / 4) waited += lasted;
    for (int alone = 0; alone < ALONE; ++alone) MPI_Bcast(in, 1, MPI_LONG, 0, MPI_COMM_SELF);
  }
  return waited;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  in = calloc(2 * LONG, sizeof *in);
  out = calloc(2 * LONG, sizeof *out);
  const long rounds = atol(argv[1]);
  if (argc > 2) {
    const double waited = with_one_who_is_away(rounds);
    if (rank == 0) printf("waited %.6f\n", waited);
  } else {
    with_one_count(rounds / 2, MPI_COMM_WORLD, 2);
    with_parts(rounds / 2, MPI_COMM_WORLD, 2);
    with_one_count(rounds, MPI_COMM_SELF, 1);
    with_parts(rounds, MPI_COMM_SELF, 1);
    with_refusals(rounds);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
