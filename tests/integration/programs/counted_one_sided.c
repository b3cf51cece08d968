/* Short one-sided calls again and again, to the next rank, a few places at a time. Checks what arrived. With `late`, the target is
 * away now and then: where the library needs it, the flush waits. Prints the seconds of flushes that lasted long, of rank 0.
 *
 * usage: counted_one_sided ROUNDS [late] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LATE = 10, LATE_MS = 20, SUM = 0, PUT = 1, ADDED = 4, SWAPPED = 5, GOT = 6, SLOTS = 16 };

static int rank, size, next;
static long* mine;
static MPI_Win win;

static void sums_and_gets(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    long one = 1, there[2] = {-1, -1};
    MPI_Accumulate(&one, 1, MPI_LONG, next, SUM, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush_local(next, win);
    MPI_Get(there, 2, MPI_LONG, next, GOT, 2, MPI_LONG, win);
    MPI_Win_flush(next, win);
    if (there[0] != next || there[1] != 7) MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static void puts_and_fetches(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    long values[3] = {i, i + 1, i + 2}, one = 1, before = -1;
    MPI_Put(values, 3, MPI_LONG, next, PUT, 3, MPI_LONG, win);
    MPI_Win_flush_all(win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, next, ADDED, MPI_SUM, win);
    MPI_Win_flush_local_all(win);
    if (before != i) MPI_Abort(MPI_COMM_WORLD, 4);
  }
}

static void swaps(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    long more = i + 1, before = -1, unused = 0, there[2] = {-1, -1};
    MPI_Compare_and_swap(&more, &i, &before, MPI_LONG, next, SWAPPED, win);
    MPI_Get_accumulate(&unused, 0, MPI_LONG, there, 2, MPI_LONG, next, GOT, 2, MPI_LONG, MPI_NO_OP, win);
    MPI_Win_flush(next, win);
    MPI_Win_sync(win);
    MPI_Put(&unused, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
    if (before != i || there[0] != next || there[1] != 7) MPI_Abort(MPI_COMM_WORLD, 5);
  }
}

static void locked(MPI_Win other, long rounds) {
  for (long i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, other);
    MPI_Put(&i, 1, MPI_LONG, next, rank, 1, MPI_LONG, other);
    MPI_Win_unlock(next, other);
  }
}

/* Returns the seconds of those flushes that lasted long. */
static double to_one_who_is_away(long rounds) {
  const struct timespec away = {0, LATE_MS * 1000000L};
  double waited = 0;
  for (int k = 0; k < LATE; ++k) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
      nanosleep(&away, NULL);
      continue;
    }
    for (long i = 0; i < rounds / LATE; ++i) {
      long one = 1;
      MPI_Accumulate(&one, 1, MPI_LONG, next, SUM, 1, MPI_LONG, MPI_SUM, win);
      const double began = MPI_Wtime();
      MPI_Win_flush(next, win);
      const double lasted = MPI_Wtime() - began;
      if (lasted > LATE_MS * 1e-3 / 4) waited += lasted;
    }
  }
  return waited;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  const long rounds = atol(argv[1]);
  long *other_mine, expected = rounds;
  MPI_Win other;
  MPI_Win_allocate(SLOTS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
  MPI_Win_allocate(SLOTS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &other_mine, &other);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < SLOTS; ++i) mine[i] = i == GOT ? rank : i == GOT + 1 ? 7 : 0;
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  sums_and_gets(rounds);
  if (argc > 2) {
    const double waited = to_one_who_is_away(rounds);
    if (rank == 0) printf("waited %.6f\n", waited);
    if (rank == 1 % size) expected += rounds / LATE * LATE;
  } else {
    puts_and_fetches(rounds);
    swaps(rounds);
    locked(other, rounds);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  if (mine[SUM] != expected) MPI_Abort(MPI_COMM_WORLD, 6);
  if (argc <= 2 && (mine[PUT + 2] != rounds + 1 || mine[ADDED] != rounds || mine[SWAPPED] != rounds)) MPI_Abort(MPI_COMM_WORLD, 7);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Win_free(&other);
  MPI_Finalize();
  return 0;
}
