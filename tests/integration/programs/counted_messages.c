/* Short messages again and again, between two ranks, a few places at a time, and now and then a long one, or one that the library
 * refuses. Checks what arrives. With `late`, the other rank is away now and then: a receive waits. Prints the seconds of receives that
 * lasted long, of rank 0.
 *
 * usage: counted_messages ROUNDS [late] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LATE = 10, LATE_MS = 20, LONG = 20000, SELDOM = 1000, REFUSED = 500, NOBODY = 7 };

static int rank, other, refusals;
static long* many;

/* Of their lengths every one is another; both know which. */
static int length_of(long i) { return i % SELDOM == SELDOM - 1 ? LONG : (int)(i % 3); }

static void send(long i, MPI_Comm comm) {
  many[0] = i;
  MPI_Send(many, length_of(i), MPI_LONG, other, (int)(i % 5), comm);
}

static void receive(long i, int source, int tag, MPI_Comm comm) {
  MPI_Status status;
  int longs = -1;
  many[0] = -1;
  if (i / 300 % 2 == 1) {
    MPI_Probe(source, tag, comm, &status);
    if (status.MPI_SOURCE != other || status.MPI_TAG != i % 5) MPI_Abort(comm, 6);
  }
  MPI_Recv(many, length_of(i) + 1, MPI_LONG, source, tag, comm, &status); /* there is more room than it takes */
  MPI_Get_count(&status, MPI_LONG, &longs);
  if (longs != length_of(i) || status.MPI_TAG != i % 5 || (longs > 0 && many[0] != i)) MPI_Abort(comm, 3);
}

static void to_and_fro(long rounds, MPI_Comm comm) {
  for (long i = 0; i < rounds; ++i) {
    if (rank == 0) send(i, comm);
    receive(i, i % 2 == 0 ? other : MPI_ANY_SOURCE, i % 3 == 0 ? MPI_ANY_TAG : (int)(i % 5), comm);
    if (rank == 1) send(i, comm);
  }
}

/* Every kind of blocking send that needs no receive there already, and to nobody. */
static void of_all_kinds(long rounds, MPI_Comm comm) {
  char room[64 * (sizeof(long) + MPI_BSEND_OVERHEAD)], *buffer = room;
  int size = sizeof room, value = -1;
  MPI_Buffer_attach(buffer, size);
  for (long i = 0; i < rounds; ++i) {
    const int mine = (int)i;
    if (rank == 0) {
      MPI_Ssend(&mine, 1, MPI_INT, other, 0, comm);
      MPI_Bsend(&mine, 1, MPI_INT, other, 1, comm);
    } else {
      MPI_Recv(&value, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
      MPI_Recv(&value, 1, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE);
      if (value != mine) MPI_Abort(comm, 4);
    }
    MPI_Send(&mine, 1, MPI_INT, MPI_PROC_NULL, 0, comm);
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, other, 2, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&mine, 1, MPI_INT, other, 2, comm);
  }
  MPI_Buffer_detach(&buffer, &size);
}

static void refused(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++refusals;
}

/* Now and then the library refuses a message, for its rank or its type; the program is told once of each. */
static void with_refusals(long rounds, MPI_Comm comm) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(refused, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  int value = 0;
  for (long i = 0; i < rounds; ++i) {
    const int odd = i % REFUSED == 0 ? (int)(i / REFUSED % 2) + 1 : 0;
    for (int again = odd != 0 ? 0 : 1; again < 2; ++again) {
      const int to = again == 0 && odd == 1 ? NOBODY : other;
      MPI_Datatype type = again == 0 && odd == 2 ? MPI_DATATYPE_NULL : MPI_INT;
      if (rank == 0) MPI_Send(&value, 1, type, to, 0, comm);
    }
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, other, 0, comm);
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
  }
  if (refusals != (rank == 0 ? (rounds + REFUSED - 1) / REFUSED : 0)) MPI_Abort(MPI_COMM_WORLD, 5);
  MPI_Errhandler_free(&handler);
}

/* Returns the seconds of those receives that lasted long. */
static double from_one_who_is_away(long rounds, MPI_Comm comm) {
  const struct timespec away = {0, LATE_MS * 1000000L};
  double waited = 0;
  int value = -1;
  for (long i = 0; i < rounds; ++i) {
    const double began = MPI_Wtime();
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
    const double lasted = MPI_Wtime() - began;
    if (rank == 1 && i % (rounds / LATE) == rounds / LATE - 1) nanosleep(&away, NULL);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, other, 0, comm);
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, other, 0, comm);
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
    if (rank == 0 && lasted > LATE_MS * 1e-3 / 4) waited += lasted;
  }
  return waited;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  many = calloc(LONG + 1, sizeof *many);
  const long rounds = atol(argv[1]);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (argc > 2) {
    const double waited = from_one_who_is_away(rounds, comm);
    if (rank == 0) printf("waited %.6f\n", waited);
  } else {
    to_and_fro(rounds, MPI_COMM_WORLD);
    of_all_kinds(rounds, comm);
    to_and_fro(rounds, comm);
    with_refusals(rounds, comm);
  }
  MPI_Comm_free(&comm);
  free(many);
  MPI_Finalize();
  return 0;
}
