// Blocking collective operations.
#include "drawn.h"

#include <string.h>

enum { MOST_RANKS = 64 };

static int in_place(const struct place *p) { return p->shape & 32; }

static void barrier(struct place *p) { MPI_Barrier(p->comm); }

static void bcast(struct place *p) {
  memset(p->in, 0, (size_t)p->count * sizeof *p->in);
  if (p->rank == root_of(p)) fill(p, p->in, p->rank, p->count);
  MPI_Bcast(p->in, p->count, MPI_INT, root_of(p), p->comm);
  expect(p, p->in, root_of(p), p->count);
}

#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000
enum { REDUCES_IN_PLACE = 0 };  // MPICH 4.0.2 reads what MPI_IN_PLACE points to, for some roots and sizes
#else
enum { REDUCES_IN_PLACE = 1 };
#endif

static void reduce(struct place *p) {
  const int root = root_of(p), is_root = p->rank == root;
  fill(p, p->out, p->rank, p->count);
  if (REDUCES_IN_PLACE && is_root && in_place(p)) {
    fill(p, p->in, p->rank, p->count);
    MPI_Reduce(MPI_IN_PLACE, p->in, p->count, MPI_INT, MPI_SUM, root, p->comm);
  } else {
    MPI_Reduce(p->out, is_root ? p->in : NULL, p->count, MPI_INT, MPI_SUM, root, p->comm);
  }
  if (is_root) expect_sums(p, p->in, 0, p->size, 0, p->count);
}

static void allreduce(struct place *p) {
  if (in_place(p)) {
    fill(p, p->in, p->rank, p->count);
    MPI_Allreduce(MPI_IN_PLACE, p->in, p->count, MPI_INT, MPI_SUM, p->comm);
  } else {
    fill(p, p->out, p->rank, p->count);
    MPI_Allreduce(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->comm);
  }
  expect_sums(p, p->in, 0, p->size, 0, p->count);
}

static void last_of_two(void *in, void *inout, int *count, MPI_Datatype *type) {  // not commutative: the higher rank's
  (void)in, (void)inout, (void)count, (void)type;
}

static void allreduce_in_order(struct place *p) {
  MPI_Op op;
  MPI_Op_create(last_of_two, 0, &op);
  fill(p, p->out, p->rank, p->count);
  MPI_Allreduce(p->out, p->in, p->count, MPI_INT, op, p->comm);
  expect(p, p->in, p->size - 1, p->count);
  MPI_Op_free(&op);
}

static void gather(struct place *p) {
  const int root = root_of(p), n = share_of(p);
  fill(p, p->out, p->rank, n);
  MPI_Gather(p->out, n, MPI_INT, p->in, n, MPI_INT, root, p->comm);
  for (int r = 0; r < p->size && p->rank == root; ++r) expect(p, p->in + r * n, r, n);
}

static void scatter(struct place *p) {
  const int root = root_of(p), n = share_of(p);
  for (int r = 0; r < p->size && p->rank == root; ++r) fill(p, p->out + r * n, r, n);
  MPI_Scatter(p->out, n, MPI_INT, p->in, n, MPI_INT, root, p->comm);
  expect(p, p->in, p->rank, n);
}

static void allgather(struct place *p) {
  const int n = share_of(p);
  fill(p, p->out, p->rank, n);
  if (in_place(p)) {
    fill(p, p->in + p->rank * n, p->rank, n);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, p->in, n, MPI_INT, p->comm);
  } else {
    MPI_Allgather(p->out, n, MPI_INT, p->in, n, MPI_INT, p->comm);
  }
  for (int r = 0; r < p->size; ++r) expect(p, p->in + r * n, r, n);
}

static void alltoall(struct place *p) {
  const int n = share_of(p);
  for (int r = 0; r < p->size; ++r) fill(p, p->out + r * n, p->rank + r, n);
  MPI_Alltoall(p->out, n, MPI_INT, p->in, n, MPI_INT, p->comm);
  for (int r = 0; r < p->size; ++r) expect(p, p->in + r * n, p->rank + r, n);
}

// What one rank sends to another where that differs; some send nothing.
static int uneven(const struct place *p, int from, int to) {
  return (from + to) % 3 == 2 ? 0 : share_of(p) / (1 + (from * 3 + to + p->shape) % 4);
}

static int total_from(const struct place *p, int counts[], int offsets[], int root) {
  int total = 0;
  for (int r = 0; r < p->size; ++r) {
    offsets[r] = total;
    total += counts[r] = uneven(p, r, root);
  }
  return total;
}

static void gatherv(struct place *p) {
  int counts[MOST_RANKS], offsets[MOST_RANKS];
  const int root = root_of(p);
  total_from(p, counts, offsets, root);
  fill(p, p->out, p->rank, counts[p->rank]);
  MPI_Gatherv(p->out, counts[p->rank], MPI_INT, p->in, counts, offsets, MPI_INT, root, p->comm);
  for (int r = 0; r < p->size && p->rank == root; ++r) expect(p, p->in + offsets[r], r, counts[r]);
}

static void scatterv(struct place *p) {
  int counts[MOST_RANKS], offsets[MOST_RANKS];
  const int root = root_of(p);
  total_from(p, counts, offsets, root);
  for (int r = 0; r < p->size && p->rank == root; ++r) fill(p, p->out + offsets[r], r, counts[r]);
  MPI_Scatterv(p->out, counts, offsets, MPI_INT, p->in, counts[p->rank], MPI_INT, root, p->comm);
  expect(p, p->in, p->rank, counts[p->rank]);
}

static void allgatherv(struct place *p) {
  int counts[MOST_RANKS], offsets[MOST_RANKS];
  total_from(p, counts, offsets, 0);
  fill(p, p->out, p->rank, counts[p->rank]);
  MPI_Allgatherv(p->out, counts[p->rank], MPI_INT, p->in, counts, offsets, MPI_INT, p->comm);
  for (int r = 0; r < p->size; ++r) expect(p, p->in + offsets[r], r, counts[r]);
}

static void alltoallv(struct place *p) {
  int there[MOST_RANKS], to[MOST_RANKS], here[MOST_RANKS], from[MOST_RANKS];
  int sent = 0;
  for (int r = 0; r < p->size; ++r) {
    to[r] = sent;
    sent += there[r] = uneven(p, p->rank, r);
    fill(p, p->out + to[r], p->rank, there[r]);
  }
  total_from(p, here, from, p->rank);
  if (p->shape & 64) {
    MPI_Datatype types[MOST_RANKS];
    for (int r = 0; r < p->size; ++r) {
      types[r] = MPI_INT;
      to[r] *= (int)sizeof(int);
      from[r] *= (int)sizeof(int);
    }
    MPI_Alltoallw(p->out, there, to, types, p->in, here, from, types, p->comm);
    for (int r = 0; r < p->size; ++r) from[r] /= (int)sizeof(int);
  } else {
    MPI_Alltoallv(p->out, there, to, MPI_INT, p->in, here, from, MPI_INT, p->comm);
  }
  for (int r = 0; r < p->size; ++r) expect(p, p->in + from[r], r, here[r]);
}

static void scan(struct place *p) {
  fill(p, p->out, p->rank, p->count);
  if (p->shape & 64) MPI_Scan(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->comm);
  else MPI_Exscan(p->out, p->in, p->count, MPI_INT, MPI_SUM, p->comm);
  if (p->shape & 64 || p->rank) expect_sums(p, p->in, 0, p->rank + (p->shape & 64 ? 1 : 0), 0, p->count);
}

static void reduce_scatter(struct place *p) {
  int counts[MOST_RANKS], before = 0;
  const int n = share_of(p);
  for (int r = 0; r < p->size; ++r) counts[r] = p->shape & 64 ? n : uneven(p, r, 0);
  for (int r = 0; r < p->rank; ++r) before += counts[r];
  fill(p, p->out, p->rank, p->count);
  if (p->shape & 64) MPI_Reduce_scatter_block(p->out, p->in, n, MPI_INT, MPI_SUM, p->comm);
  else MPI_Reduce_scatter(p->out, p->in, counts, MPI_INT, MPI_SUM, p->comm);
  expect_sums(p, p->in, 0, p->size, before, counts[p->rank]);
}

const struct operation collectives[] = {
    {"barrier", barrier, NULL, 0},
    {"bcast", bcast, NULL, 0},
    {"reduce", reduce, NULL, 0},
    {"allreduce", allreduce, NULL, 0},
    {"allreduce_in_order", allreduce_in_order, NULL, 0},
    {"gather", gather, NULL, 0},
    {"scatter", scatter, NULL, 0},
    {"allgather", allgather, NULL, 0},
    {"alltoall", alltoall, NULL, 0},
    {"gatherv", gatherv, NULL, 0},
    {"scatterv", scatterv, NULL, 0},
    {"allgatherv", allgatherv, NULL, 0},
    {"alltoallv", alltoallv, NULL, 0},
    {"scan", scan, NULL, 0},
    {"reduce_scatter", reduce_scatter, NULL, 0},
    {NULL, NULL, NULL, 0},
};
