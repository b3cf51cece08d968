/* SP: implicit time steps with scalar pentadiagonal systems along each dimension in turn, after the NAS Parallel
 * Benchmarks (RNR-94-007, section 3; the decomposition is that of the benchmarks' second version).
 *
 * As BT, but the coupling along each dimension is brought to diagonal form first, so that each of the five waves has
 * a system of its own; three of them share their coefficients. Little work goes with each message. */
#include "multipartition.h"

enum { SYSTEMS = 3, BANDS = 5, LHS = SYSTEMS * BANDS };
enum { ROW = 2 * SYSTEMS + VARS, FORWARD_COUNT = 2 * ROW, BACK_COUNT = 2 * VARS }; /* two rows per line of a face */

static const double DRIFT[DIMS] = {0.5, 0.6, 0.7}, SOUND = 1.0;
static const int SYSTEM_OF[VARS] = {0, 0, 0, 1, 2}; /* waves that drift, and run before and behind */

static const struct example_class CLASSES[EXAMPLE_CLASSES] = {
    /* references: this program on one rank, x86-64 */
    {'S', 12, 100, 2.957979556231416e-3},
    {'W', 36, 400, 6.479928600229302e-4},
    {'A', 64, 400, 4.853124982935800e-3},
};

static double *sent, *received;

/* Speeds of the three systems at a point. */
static void speeds(int d, const double *u, double speed[SYSTEMS]) {
  const double drift = DRIFT[d] + STEEPENING * u[0];
  speed[0] = drift, speed[1] = drift + SOUND, speed[2] = drift - SOUND;
}

/* From quantities to waves along d, and, being a reflection, from waves to quantities. */
static void reflect(int d, double v[VARS]) {
  static const double AXIS[DIMS][VARS] = {{1, 2, 3, 1, 1}, {1, 1, 2, 3, 1}, {1, 1, 1, 2, 3}};
  static const double NORM_SQUARED = 16;
  double along = 0;
  for (int m = 0; m < VARS; ++m) along += AXIS[d][m] * v[m];
  for (int m = 0; m < VARS; ++m) v[m] -= 2 * along / NORM_SQUARED * AXIS[d][m];
}

/* du/dt without the forcing at one point. */
static void rate_at(const double *u, const size_t stride[DIMS], double h, double rate[VARS]) {
  memset(rate, 0, VARS * sizeof *rate);
  for (int d = 0; d < DIMS; ++d) {
    const double *low = u - stride[d], *high = u + stride[d], *lower = low - stride[d], *higher = high + stride[d];
    double speed[SYSTEMS], flow[VARS];
    speeds(d, u, speed);
    for (int m = 0; m < VARS; ++m) flow[m] = high[m] - low[m];
    reflect(d, flow);
    for (int m = 0; m < VARS; ++m) flow[m] *= speed[SYSTEM_OF[m]] / (2 * h);
    reflect(d, flow);
    for (int m = 0; m < VARS; ++m)
      rate[m] += -flow[m] + VISCOSITY * (low[m] - 2 * u[m] + high[m]) / (h * h) -
                 DISSIPATION * (lower[m] - 4 * low[m] + 6 * u[m] - 4 * high[m] + higher[m]) / h;
  }
}

/* Turns the right-hand side from waves along `from` to waves along `to`; DIMS stands for the quantities. */
static void change_waves(const struct partition *p, int from, int to) {
  for (int i = 0; i < p->q; ++i) {
    struct cell *c = &p->cells[i];
    for (int k = 0; k < points_of(c); ++k) {
      if (from < DIMS) reflect(from, c->rhs + k * VARS);
      if (to < DIMS) reflect(to, c->rhs + k * VARS);
    }
  }
}

/* The bands of (1 + dt (speed d/dx - viscosity d2/dx2 + dissipation)) along d for the three systems. */
static void build_bands(const struct partition *p, struct cell *c, int d) {
  const double diffusion = p->dt * VISCOSITY / (p->h * p->h), smooth = p->dt * DISSIPATION / p->h;
  for (int z = 0; z < c->size[Z]; ++z)
    for (int y = 0; y < c->size[Y]; ++y)
      for (int x = 0; x < c->size[X]; ++x) {
        double speed[SYSTEMS], *bands = c->lhs + at(c, x, y, z) / VARS * LHS;
        speeds(d, u_at(c, x, y, z), speed);
        for (int s = 0; s < SYSTEMS; ++s, bands += BANDS) {
          const double flow = p->dt * speed[s] / (2 * p->h);
          bands[0] = bands[4] = smooth;
          bands[1] = -flow - diffusion - 4 * smooth;
          bands[2] = 1 + 2 * diffusion + 6 * smooth;
          bands[3] = flow - diffusion - 4 * smooth;
        }
      }
}

/* One row of the elimination. A row done is y_i + next y_(i+1) + second y_(i+2) = rhs: `next` and `second` of the
 * three systems, then five right-hand sides. `rows` are the two before, the nearer one last, and moves on. */
static void eliminate_row(double *bands, double *rhs, double rows[FORWARD_COUNT]) {
  const double *far = rows, *near = rows + ROW;
  double done[ROW], scale[SYSTEMS], nearer[SYSTEMS];
  for (int s = 0; s < SYSTEMS; ++s) {
    const double *b = bands + s * BANDS;
    nearer[s] = b[1] - b[0] * far[2 * s];
    scale[s] = 1 / (b[2] - b[0] * far[2 * s + 1] - nearer[s] * near[2 * s]);
    done[2 * s] = (b[3] - nearer[s] * near[2 * s + 1]) * scale[s];
    done[2 * s + 1] = b[4] * scale[s];
  }
  for (int m = 0; m < VARS; ++m) {
    const int s = SYSTEM_OF[m], r = 2 * SYSTEMS + m;
    done[r] = rhs[m] = (rhs[m] - bands[s * BANDS] * far[r] - nearer[s] * near[r]) * scale[s];
  }
  for (int s = 0; s < SYSTEMS; ++s) bands[s * BANDS + 3] = done[2 * s], bands[s * BANDS + 4] = done[2 * s + 1];
  memcpy(rows, near, sizeof done);
  memcpy(rows + ROW, done, sizeof done);
}

/* All lines of a cell along d; `in` are the last two rows of the cell before, null at the wall. */
static void eliminate(struct cell *c, int d, const double *in, double *out) {
  const int a = (d + 1) % DIMS, b = (d + 2) % DIMS;
  for (int j = 0; j < c->size[b]; ++j)
    for (int i = 0; i < c->size[a]; ++i, out += FORWARD_COUNT) {
      memset(out, 0, FORWARD_COUNT * sizeof *out);
      if (in) memcpy(out, in, FORWARD_COUNT * sizeof *in), in += FORWARD_COUNT;
      size_t here = (size_t)i * c->stride[a] + (size_t)j * c->stride[b];
      for (int k = 0; k < c->size[d]; ++k, here += c->stride[d])
        eliminate_row(c->lhs + here / VARS * LHS, c->rhs + here, out);
    }
}

/* The way back: `in` is the solution in the first two layers of the cell after, the nearer one first. */
static void substitute(struct cell *c, int d, const double *in, double *out) {
  const int a = (d + 1) % DIMS, b = (d + 2) % DIMS;
  for (int j = 0; j < c->size[b]; ++j)
    for (int i = 0; i < c->size[a]; ++i, out += BACK_COUNT) {
      memset(out, 0, BACK_COUNT * sizeof *out);
      if (in) memcpy(out, in, BACK_COUNT * sizeof *in), in += BACK_COUNT;
      for (int k = c->size[d] - 1; k >= 0; --k) {
        const size_t here = (size_t)i * c->stride[a] + (size_t)j * c->stride[b] + (size_t)k * c->stride[d];
        const double *bands = c->lhs + here / VARS * LHS;
        double *y = c->rhs + here;
        for (int m = 0; m < VARS; ++m)
          y[m] -= bands[SYSTEM_OF[m] * BANDS + 3] * out[m] + bands[SYSTEM_OF[m] * BANDS + 4] * out[VARS + m];
        memcpy(out + VARS, out, VARS * sizeof *out);
        memcpy(out, y, VARS * sizeof *out);
      }
    }
}

enum { ARRIVAL, SENDING, REQUESTS };

static void sweep_forward(const struct partition *p, int d) {
  MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (int stage = 0; stage < p->q; ++stage) {
    struct cell *c = cell_in_slab(p, d, stage);
    const int count = FORWARD_COUNT * face_of(c, d), first = stage == 0, last = stage == p->q - 1;
    if (!first)
      MPI_Irecv(received, count, MPI_DOUBLE, p->before[d], TAG_FORWARD + d, MPI_COMM_WORLD, &requests[ARRIVAL]);
    build_bands(p, c, d);
    if (!first) MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
    eliminate(c, d, first ? NULL : received, sent);
    if (!last) MPI_Isend(sent, count, MPI_DOUBLE, p->after[d], TAG_FORWARD + d, MPI_COMM_WORLD, &requests[SENDING]);
  }
}

static void sweep_back(const struct partition *p, int d) {
  MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (int stage = p->q - 1; stage >= 0; --stage) {
    struct cell *c = cell_in_slab(p, d, stage);
    const int count = BACK_COUNT * face_of(c, d), first = stage == p->q - 1, last = stage == 0;
    if (!first) {
      MPI_Irecv(received, count, MPI_DOUBLE, p->after[d], TAG_BACK + d, MPI_COMM_WORLD, &requests[ARRIVAL]);
      MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
    }
    substitute(c, d, first ? NULL : received, sent);
    if (!last) MPI_Isend(sent, count, MPI_DOUBLE, p->before[d], TAG_BACK + d, MPI_COMM_WORLD, &requests[SENDING]);
  }
}

static const char ABOUT[] =
    "SP: pentadiagonal sweeps along x, y and z through a cube of n points along each side.\n"
    "RANKS is a square; each rank has a diagonal of cells (multi-partitioning).";

int main(int argc, char **argv) {
  struct example ex = example_start(argc, argv, "sp", CLASSES, ABOUT);
  struct partition p = partition_set_up(&ex, LHS);
  sent = example_alloc(largest_face(&p) * FORWARD_COUNT, sizeof(double));
  received = example_alloc(largest_face(&p) * FORWARD_COUNT, sizeof(double));
  initialize(&p, rate_at);
  const double before = error_norm(&p);
  if (ex.rank == 0)
    printf("sp class %c: %d^3 points, %d time steps, %d ranks with %d cells each\nerror before: %.6e\n", ex.size.letter,
           p.n, ex.size.iterations, ex.ranks, p.q, before);
  example_begin(&ex);
  for (int i = 0; i < ex.size.iterations; ++i) {
    copy_faces(&p);
    compute_rhs(&p, rate_at);
    change_waves(&p, DIMS, X);
    for (int d = X; d < DIMS; ++d) {
      sweep_forward(&p, d);
      sweep_back(&p, d);
      change_waves(&p, d, d + 1);
    }
    add_update(&p);
  }
  example_end(&ex);
  return example_verify(&ex, "error", error_norm(&p), 1e-9);
}
