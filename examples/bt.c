/* BT: implicit time steps with block-tridiagonal systems along each dimension in turn, after the NAS Parallel
 * Benchmarks (RNR-94-007, section 3; the decomposition is that of the benchmarks' second version).
 *
 * Each time step fills the ghosts, computes the right-hand side and sweeps along x, y and z. A sweep eliminates from
 * cell to cell forth and substitutes back; each stage posts a receive, builds the blocks of its cell meanwhile, waits,
 * solves and sends on. */
#include "multipartition.h"

enum { FORWARD_COUNT = BLOCK + VARS, BACK_COUNT = VARS }; /* numbers per line of a face */

static const struct example_class CLASSES[EXAMPLE_CLASSES] = {
    /* references: this program on one rank, x86-64 */
    {'S', 12, 60, 1.401594773620511e-2},
    {'W', 24, 200, 2.206731203919592e-3},
    {'A', 64, 200, 2.166381906226018e-2},
};

static double *lower; /* blocks below the diagonal, of the cell at work */
static double *sent, *received;

/* The blocks of (1 + dt (d/dx f' - viscosity d2/dx2)) along d: below the diagonal and above it; the one on it is a
 * multiple of the unit block. */
static void build_blocks(const struct partition *p, struct cell *c, int d) {
  const double flow = p->dt / (2 * p->h), diffusion = p->dt * VISCOSITY / (p->h * p->h);
  for (int z = 0; z < c->size[Z]; ++z)
    for (int y = 0; y < c->size[Y]; ++y)
      for (int x = 0; x < c->size[X]; ++x) {
        const double *u = u_at(c, x, y, z);
        const size_t here = at(c, x, y, z) * VARS;
        double *below = lower + here, *above = c->lhs + here;
        model_jacobian(d, u - c->u_stride[d], below);
        model_jacobian(d, u + c->u_stride[d], above);
        for (int k = 0; k < BLOCK; ++k) {
          const double unit = k % (VARS + 1) ? 0 : diffusion;
          below[k] = -flow * below[k] - unit;
          above[k] = flow * above[k] - unit;
        }
      }
}

/* One row of the elimination: with the row before as `before` (block, then right-hand side) turns row i into the
 * form y_i + above y_(i+1) = rhs, and leaves it as the next `before`. */
static void eliminate_row(const double *below, double diagonal, double *above, double *rhs, double *before) {
  double block[BLOCK], right[VARS * (VARS + 1)];
  for (int m = 0; m < VARS; ++m) {
    double sum = rhs[m];
    for (int k = 0; k < VARS; ++k) {
      double product = m == k ? diagonal : 0;
      for (int j = 0; j < VARS; ++j) product -= below[m * VARS + j] * before[j * VARS + k];
      block[m * VARS + k] = product;
      sum -= below[m * VARS + k] * before[BLOCK + k];
      right[m * (VARS + 1) + k] = above[m * VARS + k];
    }
    right[m * (VARS + 1) + VARS] = sum;
  }
  solve_block(block, right, VARS + 1);
  for (int m = 0; m < VARS; ++m) {
    for (int k = 0; k < VARS; ++k) above[m * VARS + k] = before[m * VARS + k] = right[m * (VARS + 1) + k];
    rhs[m] = before[BLOCK + m] = right[m * (VARS + 1) + VARS];
  }
}

/* All lines of a cell along d; `in` is the last row of the cell before, null at the wall, where nothing changes. */
static void eliminate(const struct partition *p, struct cell *c, int d, const double *in, double *out) {
  const int a = (d + 1) % DIMS, b = (d + 2) % DIMS;
  const double diagonal = 1 + 2 * p->dt * VISCOSITY / (p->h * p->h);
  for (int j = 0; j < c->size[b]; ++j)
    for (int i = 0; i < c->size[a]; ++i, out += FORWARD_COUNT) {
      memset(out, 0, FORWARD_COUNT * sizeof *out);
      if (in) memcpy(out, in, FORWARD_COUNT * sizeof *in), in += FORWARD_COUNT;
      size_t here = (size_t)i * c->stride[a] + (size_t)j * c->stride[b];
      for (int k = 0; k < c->size[d]; ++k, here += c->stride[d])
        eliminate_row(lower + here * VARS, diagonal, c->lhs + here * VARS, c->rhs + here, out);
    }
}

/* The way back: `in` is the solution in the first layer of the cell after, null at the wall. */
static void substitute(struct cell *c, int d, const double *in, double *out) {
  const int a = (d + 1) % DIMS, b = (d + 2) % DIMS;
  for (int j = 0; j < c->size[b]; ++j)
    for (int i = 0; i < c->size[a]; ++i, out += BACK_COUNT) {
      memset(out, 0, BACK_COUNT * sizeof *out);
      if (in) memcpy(out, in, BACK_COUNT * sizeof *in), in += BACK_COUNT;
      for (int k = c->size[d] - 1; k >= 0; --k) {
        const size_t here = (size_t)i * c->stride[a] + (size_t)j * c->stride[b] + (size_t)k * c->stride[d];
        const double *above = c->lhs + here * VARS;
        double *y = c->rhs + here;
        for (int m = 0; m < VARS; ++m)
          for (int l = 0; l < VARS; ++l) y[m] -= above[m * VARS + l] * out[l];
        memcpy(out, y, BACK_COUNT * sizeof *out);
      }
    }
}

static void sweep_forward(const struct partition *p, int d) {
  MPI_Request sending = MPI_REQUEST_NULL, arrival = MPI_REQUEST_NULL;
  for (int stage = 0; stage < p->q; ++stage) {
    struct cell *c = cell_in_slab(p, d, stage);
    const int count = FORWARD_COUNT * face_of(c, d), first = stage == 0, last = stage == p->q - 1;
    if (!first)
      MPI_Irecv(received, count, MPI_DOUBLE, p->before[d], TAG_FORWARD + d, MPI_COMM_WORLD, &arrival);
    build_blocks(p, c, d);
    if (!first) {
      MPI_Wait(&sending, MPI_STATUS_IGNORE);
      MPI_Wait(&arrival, MPI_STATUS_IGNORE);
    }
    eliminate(p, c, d, first ? NULL : received, sent);
    if (!last) MPI_Isend(sent, count, MPI_DOUBLE, p->after[d], TAG_FORWARD + d, MPI_COMM_WORLD, &sending);
  }
}

static void sweep_back(const struct partition *p, int d) {
  MPI_Request sending = MPI_REQUEST_NULL, arrival = MPI_REQUEST_NULL;
  for (int stage = p->q - 1; stage >= 0; --stage) {
    struct cell *c = cell_in_slab(p, d, stage);
    const int count = BACK_COUNT * face_of(c, d), first = stage == p->q - 1, last = stage == 0;
    if (!first) {
      MPI_Irecv(received, count, MPI_DOUBLE, p->after[d], TAG_BACK + d, MPI_COMM_WORLD, &arrival);
      MPI_Wait(&sending, MPI_STATUS_IGNORE);
      MPI_Wait(&arrival, MPI_STATUS_IGNORE);
    }
    substitute(c, d, first ? NULL : received, sent);
    if (!last) MPI_Isend(sent, count, MPI_DOUBLE, p->before[d], TAG_BACK + d, MPI_COMM_WORLD, &sending);
  }
}

static const char ABOUT[] =
    "BT: block-tridiagonal sweeps along x, y and z through a cube of n points along each side.\n"
    "RANKS is a square; each rank has a diagonal of cells (multi-partitioning).";

int main(int argc, char **argv) {
  struct example ex = example_start(argc, argv, "bt", CLASSES, ABOUT);
  model_set_up();
  struct partition p = partition_set_up(&ex, BLOCK);
  const size_t side = (size_t)part_size(p.n, p.q, 0);
  lower = example_alloc(side * side * side * BLOCK, sizeof(double));
  sent = example_alloc(largest_face(&p) * FORWARD_COUNT, sizeof(double));
  received = example_alloc(largest_face(&p) * FORWARD_COUNT, sizeof(double));
  initialize(&p, model_rate);
  const double before = error_norm(&p);
  if (ex.rank == 0)
    printf("bt class %c: %d^3 points, %d time steps, %d ranks with %d cells each\nerror before: %.6e\n", ex.size.letter,
           p.n, ex.size.iterations, ex.ranks, p.q, before);
  example_begin(&ex);
  for (int i = 0; i < ex.size.iterations; ++i) {
    copy_faces(&p);
    compute_rhs(&p, model_rate);
    for (int d = 0; d < DIMS; ++d) {
      sweep_forward(&p, d);
      sweep_back(&p, d);
    }
    add_update(&p);
  }
  example_end(&ex);
  return example_verify(&ex, "error", error_norm(&p), 1e-9);
}
