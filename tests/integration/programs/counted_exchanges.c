/* Short messages between two ranks that are sent and received in one call, most of them of each rank with itself, as these take no
 * longer than usual on any machine; now and then a long one, one to or from nobody, or one that the library refuses. Checks what
 * arrives. With `late`, the other rank is away now and then: its partner waits. Prints the seconds of the calls of rank 0 that
 * lasted long.
 *
 * usage: counted_exchanges ROUNDS [late] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LATE = 10, LATE_MS = 20, LONG = 20000, SELDOM = 1000, REFUSED = 500, NOBODY = 7, ALONE = 3 };

static int rank, other;
static long *in, *out;

static void check(int holds, int code) {
  if (!holds) MPI_Abort(MPI_COMM_WORLD, code);
}

/* Each side has its own length, and its own end now and then. */
static void exchange(long rounds, MPI_Comm comm, int self, int with) {
  for (long i = 0; i < rounds; ++i) {
    const int sent = i % SELDOM == SELDOM - 1 ? LONG : (int)(i / 100 % 3), room = sent + (int)(i / 300 % 2);
    const int from = i / 50 % 2 == 0 ? with : MPI_ANY_SOURCE;
    out[0] = i + self;
    in[0] = -1;
    MPI_Status status;
    MPI_Sendrecv(out, sent, MPI_LONG, with, (int)(i % 5), in, room, MPI_LONG, from, i % 2 == 0 ? MPI_ANY_TAG : (int)(i % 5), comm, &status);
    check(status.MPI_SOURCE == with && status.MPI_TAG == i % 5 && (sent == 0 || in[0] == i + with), 3);
    in[0] = i + self;
    MPI_Sendrecv_replace(in, sent, MPI_LONG, with, 0, from, 0, comm, MPI_STATUS_IGNORE);
    check(sent == 0 || in[0] == i + with, 4);
    if (i % 7 == 0 || with == self) {
      MPI_Sendrecv(out, sent, MPI_LONG, MPI_PROC_NULL, 0, in, room, MPI_LONG, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
    } else if (self == 0) { /* each side by a call of its own */
      MPI_Sendrecv(out, sent, MPI_LONG, with, 1, in, room, MPI_LONG, MPI_PROC_NULL, 1, comm, MPI_STATUS_IGNORE);
    } else {
      MPI_Sendrecv(out, sent, MPI_LONG, MPI_PROC_NULL, 1, in, room, MPI_LONG, with, 1, comm, MPI_STATUS_IGNORE);
      check(sent == 0 || in[0] == i + with, 5);
    }
  }
}

static void with_refusals(long rounds) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  long refused = 0;
  for (long i = 0; i < rounds; ++i) {
    const int to = i % REFUSED == REFUSED - 1 ? NOBODY : 0, from = to == 0 ? 0 : MPI_PROC_NULL;
    refused += MPI_Sendrecv(out, 1, MPI_LONG, to, 0, in, 1, MPI_LONG, from, 0, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  }
  check(refused == rounds / REFUSED, 6);
  MPI_Comm_free(&comm);
}

static double with_one_who_is_away(long rounds) {
  const struct timespec away = {0, LATE_MS * 1000000L};
  double waited = 0;
  for (long i = 0; i < rounds; ++i) {
    const double began = MPI_Wtime();
    if (rank == 1 && i % (rounds / LATE) == rounds / LATE - 1) nanosleep(&away, NULL);
    MPI_Sendrecv(out, 1, MPI_LONG, other, 0, in, 1, MPI_LONG, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double lasted = MPI_Wtime() - began;
    if (rank == 0 && lasted > LATE_MS * 1e-3 / 4) waited += lasted;
    for (int alone = 0; alone < ALONE; ++alone) MPI_Sendrecv_replace(in, 1, MPI_LONG, 0, 0, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
  return waited;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  in = calloc(LONG + 1, sizeof *in);
  out = calloc(LONG + 1, sizeof *out);
  const long rounds = atol(argv[1]);
  if (argc > 2) {
    const double waited = with_one_who_is_away(rounds);
    if (rank == 0) printf("waited %.6f\n", waited);
  } else {
    exchange(rounds, MPI_COMM_WORLD, rank, other);
    exchange(rounds, MPI_COMM_SELF, 0, 0);
    with_refusals(rounds);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
