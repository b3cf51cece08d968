/* Short messages between two ranks that are started and waited for, in every such way, and now and then a long one, one to nobody, or one
 * that the library refuses. Checks what arrives. With `late`, the other rank is away now and then: a wait for a message lasts. Prints the
 * seconds of those of rank 0 that lasted long.
 *
 * usage: counted_started ROUNDS [late] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LATE = 10, LATE_MS = 20, LONG = 20000, SELDOM = 1000, REFUSED = 500, NOBODY = 7, WAYS = 4 };

static int rank, other;
static long *in, *out;

static int length_of(long i) { return i % SELDOM == SELDOM - 1 ? LONG : (int)(i / 100 % 3); }

static void wait_for_both(MPI_Request* requests, int way) {
  int index, done;
  switch (way) {
    case 0: MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); break;
    case 1:
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      break;
    case 2:
      MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      break;
    default: /* of one each, for how many are ready at a time is anybody's guess */
      MPI_Waitsome(1, &requests[0], &done, &index, MPI_STATUSES_IGNORE);
      MPI_Waitsome(1, &requests[1], &done, &index, MPI_STATUSES_IGNORE);
  }
}

static void exchange(long rounds, MPI_Comm comm) {
  MPI_Request requests[2];
  for (long i = 0; i < rounds; ++i) {
    const int longs = length_of(i);
    out[0] = i + rank;
    in[0] = -1;
    MPI_Irecv(in, longs, MPI_LONG, i % 2 == 0 ? other : MPI_ANY_SOURCE, 0, comm, &requests[0]);
    if (i / 50 % 2 == 0) {
      MPI_Isend(out, longs, MPI_LONG, other, 0, comm, &requests[1]);
    } else {
      MPI_Issend(out, longs, MPI_LONG, other, 0, comm, &requests[1]);
    }
    wait_for_both(requests, (int)(i / (rounds / WAYS) % WAYS));
    if (longs > 0 && in[0] != i + other) MPI_Abort(comm, 3);
    MPI_Isend(out, longs, MPI_LONG, MPI_PROC_NULL, 0, comm, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
}

static void with_refusals(long rounds, MPI_Comm comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* which MPICH asks where a wait fails */
  int refused = 0, value = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  for (long i = 0; i < rounds; ++i) {
    const int odd = i % REFUSED == REFUSED - 1;
    refused += MPI_Isend(&value, 1, MPI_INT, odd ? NOBODY : MPI_PROC_NULL, 0, comm, &request) != MPI_SUCCESS;
    if (!odd) MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* More than there is room for: the wait says so. */
    int there[2] = {0, 0};
    MPI_Irecv(there, 1, MPI_INT, other, 1, comm, &request);
    MPI_Send(there, odd ? 2 : 1, MPI_INT, other, 1, comm);
    refused += MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  }
  if (refused != 2 * (rounds / REFUSED)) MPI_Abort(MPI_COMM_WORLD, 4);
}

static double from_one_who_is_away(long rounds, MPI_Comm comm) {
  const struct timespec away = {0, LATE_MS * 1000000L};
  double waited = 0;
  MPI_Request requests[2];
  for (long i = 0; i < rounds; ++i) {
    const double began = MPI_Wtime();
    MPI_Irecv(in, 1, MPI_LONG, other, 0, comm, &requests[0]);
    if (rank == 1 && i % (rounds / LATE) == rounds / LATE - 1) nanosleep(&away, NULL);
    MPI_Isend(out, 1, MPI_LONG, other, 0, comm, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    const double lasted = MPI_Wtime() - began;
    if (rank == 0 && lasted > LATE_MS * 1e-3 / 4) waited += lasted;
  }
  return waited;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  in = calloc(LONG, sizeof *in);
  out = calloc(LONG, sizeof *out);
  const long rounds = atol(argv[1]);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (argc > 2) {
    const double waited = from_one_who_is_away(rounds, comm);
    if (rank == 0) printf("waited %.6f\n", waited);
  } else {
    exchange(rounds, MPI_COMM_WORLD);
    exchange(rounds, comm);
    with_refusals(rounds, comm);
  }
  MPI_Comm_free(&comm);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
