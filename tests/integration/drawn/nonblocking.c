// Collective operations that are started, and completed later.
#include "drawn.h"

#include <stdlib.h>
#include <string.h>

static void complete(const struct place *p, MPI_Request *request) {
  int flag = 0;
  switch ((p->shape >> 4) % 4) {
    case 0: MPI_Wait(request, MPI_STATUS_IGNORE); break;
    case 1:
      while (!flag) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
      break;
    case 2:
      while (!flag) {
        work(4);
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
      }
      break;
    default:
      work((double)(own_random() % 200));
      MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  }
}

static void ibarrier(struct place *p) {
  MPI_Request request;
  MPI_Ibarrier(p->comm, &request);
  complete(p, &request);
}

static void ibcast(struct place *p) {
  MPI_Request request;
  if (p->rank == root_of(p)) fill(p, p->in, p->rank, p->count);
  else memset(p->in, 0, (size_t)p->count * sizeof *p->in);
  MPI_Ibcast(p->in, p->count, MPI_INT, root_of(p), p->comm, &request);
  complete(p, &request);
  expect(p, p->in, root_of(p), p->count);
}

static void iallreduce(struct place *p) {
  MPI_Request request;
  fill(p, p->out, p->rank, p->count);
  MPI_Iallreduce(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->comm, &request);
  complete(p, &request);
  expect_sums(p, p->in, 0, p->size, 0, p->count);
}

static void ireduce(struct place *p) {
  MPI_Request request;
  fill(p, p->out, p->rank, p->count);
  MPI_Ireduce(p->out, p->in, p->count, MPI_INT, MPI_SUM, root_of(p), p->comm, &request);
  complete(p, &request);
  if (p->rank == root_of(p)) expect_sums(p, p->in, 0, p->size, 0, p->count);
}

static void iallgather(struct place *p) {
  MPI_Request request;
  const int n = share_of(p);
  fill(p, p->out, p->rank, n);
  MPI_Iallgather(p->out, n, MPI_INT, p->in, n, MPI_INT, p->comm, &request);
  complete(p, &request);
  for (int r = 0; r < p->size; ++r) expect(p, p->in + r * n, r, n);
}

static void ialltoall(struct place *p) {
  MPI_Request request;
  const int n = share_of(p);
  for (int r = 0; r < p->size; ++r) fill(p, p->out + r * n, p->rank + r, n);
  MPI_Ialltoall(p->out, n, MPI_INT, p->in, n, MPI_INT, p->comm, &request);
  complete(p, &request);
  for (int r = 0; r < p->size; ++r) expect(p, p->in + r * n, p->rank + r, n);
}

static void iscan(struct place *p) {
  MPI_Request request;
  fill(p, p->out, p->rank, p->count);
  MPI_Iscan(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->comm, &request);
  complete(p, &request);
  expect_sums(p, p->in, 0, p->rank + 1, 0, p->count);
}

static void beside_messages(struct place *p) {  // two under way, and messages meanwhile
  MPI_Request requests[2];
  int mine = (int)p->key, all = 0, got = -1;
  fill(p, p->out, p->rank, p->count);
  MPI_Iallreduce(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->aside, &requests[0]);
  MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, p->aside, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    if (p->shape & 256) work(10);
    MPI_Sendrecv(&mine, 1, MPI_INT, right_of(p, 1), p->tag, &got, 1, MPI_INT, left_of(p, 1), p->tag, p->comm, MPI_STATUS_IGNORE);
    EXPECT(got == mine);
  }
  if (p->shape & 512) MPI_Barrier(p->comm);
  if (p->shape & 1024) {
    complete(p, &requests[1]);
    complete(p, &requests[0]);
  } else {
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  expect_sums(p, p->in, 0, p->size, 0, p->count);
  EXPECT(all == mine * p->size);
}

struct started {
  struct place at;
  MPI_Request request;
};

static void complete_last(struct place *p) {
  struct started *last = p->kept;
  if (!last) return;
  complete(p, &last->request);
  expect_sums(&last->at, p->in, 0, p->size, 0, p->count);
}

static void in_the_next_turn(struct place *p) {
  complete_last(p);
  struct started *next = p->kept;
  if (!next) p->kept = next = malloc(sizeof *next);
  next->at = *p;
  fill(p, p->out, p->rank, p->count);
  MPI_Iallreduce(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->aside, &next->request);
}

static void end_started(struct place *p) {
  complete_last(p);
  free(p->kept);
}

const struct operation nonblocking[] = {
    {"ibarrier", ibarrier, NULL, 0},
    {"ibcast", ibcast, NULL, 0},
    {"iallreduce", iallreduce, NULL, 0},
    {"ireduce", ireduce, NULL, 0},
    {"iallgather", iallgather, NULL, 0},
    {"ialltoall", ialltoall, NULL, 0},
    {"iscan", iscan, NULL, 0},
    {"beside_messages", beside_messages, NULL, 0},
    {"in_the_next_turn", in_the_next_turn, end_started, 0},
    {NULL, NULL, NULL, 0},
};
