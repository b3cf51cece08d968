// User-defined operations, also one that does not commute, also on a derived datatype.
#include "subject.h"

#include <stddef.h>

struct affine {  // x -> a x + b; composition does not commute
  long a, b;
};

static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
  (void)type;
  const struct affine *f = in;
  struct affine *g = inout;
  for (int i = 0; i < *n; ++i) {
    const struct affine h = {g[i].a * f[i].a % 10007, (g[i].a * f[i].b + g[i].b) % 10007};
    g[i] = h;
  }
}

static void largest(void *in, void *inout, int *n, MPI_Datatype *type) {
  (void)type;
  const int *a = in;
  int *b = inout;
  for (int i = 0; i < *n; ++i) b[i] = a[i] > b[i] ? a[i] : b[i];
}

static struct affine expected(int upto, int salt) {
  struct affine f = {1, 0};
  for (int r = 0; r <= upto; ++r) {
    struct affine g = {r + 2 + salt, r + 5};
    int one = 1;
    compose(&f, &g, &one, NULL);
    f = g;
  }
  return f;
}

SUBJECT(ops, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Datatype pair;
  MPI_Op op, most;
  MPI_Type_contiguous(2, MPI_LONG, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(compose, 0, &op);
  MPI_Op_create(largest, 1, &most);
  enum { n = 64 };
  struct affine mine[n], all[n], upto[n];
  for (int i = 0; i < n; ++i) mine[i] = (struct affine){rank + 2 + i, rank + 5};
  MPI_Allreduce(mine, all, n, pair, op, comm);
  MPI_Scan(mine, upto, n, pair, op, comm);
  for (int i = 0; i < n; ++i) {
    const struct affine a = expected(size - 1, i), u = expected(rank, i);
    CHECK(all[i].a == a.a && all[i].b == a.b && upto[i].a == u.a && upto[i].b == u.b);
  }
  MPI_Reduce(mine, all, n, pair, op, size - 1, comm);
  if (rank == size - 1) note(all, sizeof all);
  MPI_Exscan(mine, upto, n, pair, op, comm);
  if (rank > 0) note(upto, sizeof upto);
  int values[4] = {rank, -rank, rank % 2, 7}, greatest[4];
  MPI_Request request;
  MPI_Iallreduce(values, greatest, 4, MPI_INT, most, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(greatest[0] == size - 1 && greatest[1] == 0 && greatest[3] == 7);
  MPI_Reduce_local(values, greatest, 4, MPI_INT, most);
  double sum = 0, part = 1.0 / (rank + 3);  // rounding depends on the order of summation: it must not change
  MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  note(&sum, sizeof sum);
  MPI_Op_free(&op);
  MPI_Op_free(&most);
  MPI_Type_free(&pair);
}
