// One-sided operations on windows that live as long as their loop.
#include "drawn.h"

#include <stdlib.h>
#include <string.h>

struct exposed {
  MPI_Win win;
  int *memory;  // two counters, then room for size messages
};

enum { COUNTERS = 2 };

// MPICH 4.0.2 on UCX, without Fallow, too:
// - a fence may return before what a large MPI_Get brings has come, if an MPI_Put to the same rank was under way;
// - puts after an MPI_Win_start may come before the target has posted again, and so overwrite what it is still looking at.
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 50000000
enum { MPICH_4 = 1 };
#else
enum { MPICH_4 = 0 };
#endif

static int allocates(const struct place *p) {  // Open MPI 4.1 knows no other windows within a node
#ifdef OMPI_MAJOR_VERSION
  (void)p;
  return 1;
#else
  return p->shape & 1;
#endif
}

static struct exposed *exposed(struct place *p) {
  struct exposed *e = p->kept;
  if (e) return e;
  p->kept = e = malloc(sizeof *e);
  MPI_Aint bytes = (MPI_Aint)sizeof(int) * (COUNTERS + (MPI_Aint)p->count * 2);
  bytes = (bytes + 63) / 64 * 64;  // MPICH 4.0.2 mistakes the places of memory that is no multiple of 16
  if (allocates(p)) {
    MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, p->comm, &e->memory, &e->win);
  } else {
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &e->memory);
    MPI_Win_create(e->memory, bytes, sizeof(int), MPI_INFO_NULL, p->comm, &e->win);
  }
  memset(e->memory, 0, (size_t)bytes);
  MPI_Barrier(p->comm);
  return e;
}

static void end_exposed(struct place *p) {
  struct exposed *e = p->kept;
  if (!e) return;
  MPI_Win_free(&e->win);
  if (!allocates(p)) MPI_Free_mem(e->memory);
  free(e);
}

static void fenced(struct place *p) {
  struct exposed *e = exposed(p);
  const int to = right_of(p, 1), from = left_of(p, 1);
  fill(p, p->out, p->rank, p->count);
  fill(p, e->memory + COUNTERS + p->count, p->rank, p->count);
  MPI_Win_fence(0, e->win);
  MPI_Put(p->out, p->count, MPI_INT, to, COUNTERS, p->count, MPI_INT, e->win);
  if (MPICH_4 && p->count > 20000) MPI_Win_fence(0, e->win);
  MPI_Get(p->in, p->count, MPI_INT, to, COUNTERS + p->count, p->count, MPI_INT, e->win);
  MPI_Win_fence(0, e->win);
  expect(p, e->memory + COUNTERS, from, p->count);
  expect(p, p->in, to, p->count);
  MPI_Win_fence(0, e->win);
}

static void locked(struct place *p) {
  struct exposed *e = exposed(p);
  const int to = right_of(p, 1), from = left_of(p, 1);
  fill(p, p->out, p->rank, p->count);
  MPI_Win_lock(p->shape & 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, e->win);
  MPI_Put(p->out, p->count, MPI_INT, to, COUNTERS, p->count, MPI_INT, e->win);
  MPI_Win_unlock(to, e->win);
  MPI_Barrier(p->comm);
  MPI_Win_lock(MPI_LOCK_SHARED, p->rank, 0, e->win);
  expect(p, e->memory + COUNTERS, from, p->count);
  MPI_Win_unlock(p->rank, e->win);
  MPI_Barrier(p->comm);
}

static void flushed(struct place *p) {
  struct exposed *e = exposed(p);
  const int to = right_of(p, 1), back = p->shape & 2;
  MPI_Request request;
  fill(p, p->out, p->rank, p->count);
  MPI_Win_lock_all(0, e->win);
  if (p->shape & 4) {
    MPI_Rput(p->out, p->count, MPI_INT, to, COUNTERS, p->count, MPI_INT, e->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Put(p->out, p->count, MPI_INT, to, COUNTERS, p->count, MPI_INT, e->win);
  }
  if (p->shape & 8) MPI_Win_flush_all(e->win);
  else MPI_Win_flush(to, e->win);
  if (back) {
    MPI_Rget(p->in, p->count, MPI_INT, to, COUNTERS, p->count, MPI_INT, e->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(p, p->in, p->rank, p->count);
  }
  MPI_Win_unlock_all(e->win);
  MPI_Barrier(p->comm);
}

static void added(struct place *p) {
  struct exposed *e = exposed(p);
  const int root = root_of(p), one = 1;
  int before = -1, now = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, root, 0, e->win);
  if (p->shape & 64) {
    MPI_Accumulate(&one, 1, MPI_INT, root, 0, 1, MPI_INT, MPI_SUM, e->win);
  } else {
    MPI_Fetch_and_op(&one, &before, MPI_INT, root, 0, MPI_SUM, e->win);
    MPI_Win_flush(root, e->win);
    EXPECT(before >= 0);
  }
  MPI_Win_unlock(root, e->win);
  MPI_Barrier(p->comm);
  MPI_Win_lock(MPI_LOCK_SHARED, root, 0, e->win);
  MPI_Get(&now, 1, MPI_INT, root, 0, 1, MPI_INT, e->win);
  MPI_Win_unlock(root, e->win);
  EXPECT(now > 0 && now % p->size == 0 && now > before);
  MPI_Barrier(p->comm);
}

static void critical(struct place *p) {  // a lock of compare-and-swap around a sum that is not atomic
  struct exposed *e = exposed(p);
  const int root = root_of(p), is_free = 0, taken = 1;
  int found = 1, value = 0;
  MPI_Win_lock_all(0, e->win);
  for (;;) {
    MPI_Compare_and_swap(&taken, &is_free, &found, MPI_INT, root, 0, e->win);
    MPI_Win_flush(root, e->win);
    if (found == is_free) break;
    if (p->shape & 64) work(2);
  }
  MPI_Fetch_and_op(NULL, &value, MPI_INT, root, 1, MPI_NO_OP, e->win);
  MPI_Win_flush(root, e->win);
  value++;
  MPI_Accumulate(&value, 1, MPI_INT, root, 1, 1, MPI_INT, MPI_REPLACE, e->win);
  MPI_Win_flush(root, e->win);
  MPI_Accumulate(&is_free, 1, MPI_INT, root, 0, 1, MPI_INT, MPI_REPLACE, e->win);
  MPI_Win_flush(root, e->win);
  MPI_Barrier(p->comm);
  MPI_Fetch_and_op(NULL, &value, MPI_INT, root, 1, MPI_NO_OP, e->win);
  MPI_Win_unlock_all(e->win);
  EXPECT(value > 0 && value % p->size == 0);
  MPI_Barrier(p->comm);
}

static void posted(struct place *p) {
  struct exposed *e = exposed(p);
  const int to = right_of(p, 1), from = left_of(p, 1);
  MPI_Group all, target, origin;
  int flag = 0;
  MPI_Comm_group(p->comm, &all);
  MPI_Group_incl(all, 1, &to, &target);
  MPI_Group_incl(all, 1, &from, &origin);
  fill(p, p->out, p->rank, p->count);
  MPI_Win_post(origin, 0, e->win);
  MPI_Win_start(target, 0, e->win);
  MPI_Put(p->out, p->count, MPI_INT, to, COUNTERS, p->count, MPI_INT, e->win);
  MPI_Win_complete(e->win);
  if (p->shape & 64) {
    while (!flag) MPI_Win_test(e->win, &flag);
  } else {
    MPI_Win_wait(e->win);
  }
  expect(p, e->memory + COUNTERS, from, p->count);
  if (MPICH_4) MPI_Barrier(p->comm);
  MPI_Group_free(&all);
  MPI_Group_free(&target);
  MPI_Group_free(&origin);
}

const struct operation one_sided[] = {
    {"fenced", fenced, end_exposed, 1}, {"locked", locked, end_exposed, 1},     {"flushed", flushed, end_exposed, 1},
    {"added", added, end_exposed, 1},   {"critical", critical, end_exposed, 1}, {"posted", posted, end_exposed, 1},
    {NULL, NULL, NULL, 0},
};
