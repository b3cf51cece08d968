/* Multi-partitioning, the decomposition of BT and SP: q^2 ranks divide a cube in q^3 cells, and each has q of them
 * along a diagonal. Every slab of cells, across any dimension, then holds one cell of each rank, so that in a sweep
 * along that dimension all ranks work all the time; and the next cell along it is always the same neighbour's. */
#ifndef FALLOW_EXAMPLES_MULTIPARTITION_H
#define FALLOW_EXAMPLES_MULTIPARTITION_H

#include "model.h"

enum { FACES = 2 * DIMS, TAG_FACES = 100, TAG_FORWARD = 200, TAG_BACK = 300 };

struct cell {
  int coord[DIMS]; /* which of the q^3 */
  int size[DIMS], start[DIMS];
  size_t u_stride[DIMS], stride[DIMS]; /* in numbers: of u, with its ghosts, and of the arrays without */
  double *u, *rhs, *forcing;
  double *lhs; /* what a sweep keeps from its way forth for its way back; the program's */
};

struct partition {
  int n, q, rank;
  double h, dt;
  int before[DIMS], after[DIMS]; /* the neighbours' ranks */
  struct cell *cells;
  int face_count[FACES]; /* numbers in the message of each direction, 2 d downwards and 2 d + 1 upwards */
  double *out[FACES], *in[FACES];
};

static inline double *u_at(const struct cell *c, int x, int y, int z) {
  return c->u + (size_t)(x + GHOSTS) * c->u_stride[X] + (size_t)(y + GHOSTS) * c->u_stride[Y] +
         (size_t)(z + GHOSTS) * c->u_stride[Z];
}

static inline size_t at(const struct cell *c, int x, int y, int z) {
  return (size_t)x * c->stride[X] + (size_t)y * c->stride[Y] + (size_t)z * c->stride[Z];
}

static inline int points_of(const struct cell *c) { return c->size[X] * c->size[Y] * c->size[Z]; }

/* Points of a face across dimension d. */
static inline int face_of(const struct cell *c, int d) { return points_of(c) / c->size[d]; }

/* My cell in a slab across dimension d. */
static inline struct cell *cell_in_slab(const struct partition *p, int d, int slab) {
  int i = 0;
  while (p->cells[i].coord[d] != slab) ++i;
  return &p->cells[i];
}

static inline void cell_set_up(struct cell *c, const struct partition *p, int lhs_per_point) {
  size_t u_count = VARS, count = VARS;
  for (int d = 0; d < DIMS; ++d) {
    c->size[d] = part_size(p->n, p->q, c->coord[d]);
    c->start[d] = part_start(p->n, p->q, c->coord[d]);
    c->u_stride[d] = u_count, u_count *= (size_t)(c->size[d] + 2 * GHOSTS);
    c->stride[d] = count, count *= (size_t)c->size[d];
  }
  c->u = example_alloc(u_count, sizeof(double));
  c->rhs = example_alloc(count, sizeof(double));
  c->forcing = example_alloc(count, sizeof(double));
  c->lhs = example_alloc(count / VARS * (size_t)lhs_per_point, sizeof(double));
}

/* The decomposition, with neighbours, cells and buffers; stops the program where n and the ranks do not fit. */
static inline struct partition partition_set_up(const struct example *ex, int lhs_per_point) {
  struct partition p = {.n = ex->size.n, .q = 1, .rank = ex->rank, .h = spacing_for(ex->size.n)};
  p.dt = COURANT * p.h;
  while (p.q * p.q < ex->ranks) ++p.q;
  if (p.q * p.q != ex->ranks) example_stop(ex, EXAMPLE_USAGE, "%s: the number of ranks must be a square\n", ex->name);
  if (p.n / p.q < GHOSTS)
    example_stop(ex, EXAMPLE_USAGE, "%s: n must be at least %d with so many ranks\n", ex->name, GHOSTS * p.q);
  const int q = p.q, i = ex->rank / q, j = ex->rank % q, up = (i + 1) % q, down = (i + q - 1) % q;
  const int right = (j + 1) % q, left = (j + q - 1) % q;
  p.after[X] = up * q + j, p.before[X] = down * q + j;
  p.after[Y] = i * q + right, p.before[Y] = i * q + left;
  p.after[Z] = down * q + right, p.before[Z] = up * q + left;
  p.cells = example_alloc((size_t)q, sizeof *p.cells);
  for (int c = 0; c < q; ++c) {
    const int coord[DIMS] = {(i + c) % q, (j - c + q) % q, c};
    memcpy(p.cells[c].coord, coord, sizeof coord);
    cell_set_up(&p.cells[c], &p, lhs_per_point);
  }
  for (int f = 0; f < FACES; ++f) {
    const int wall = f % 2 ? q - 1 : 0;
    for (int c = 0; c < q; ++c)
      if (p.cells[c].coord[f / 2] != wall) p.face_count[f] += GHOSTS * VARS * face_of(&p.cells[c], f / 2);
  }
  for (int f = 0; f < FACES; ++f) {
    p.out[f] = example_alloc((size_t)p.face_count[f], sizeof(double));
    p.in[f] = example_alloc((size_t)p.face_count[f ^ 1], sizeof(double));
  }
  return p;
}

/* Copies the layers [first, first + GHOSTS) along d between a cell and a buffer; returns the buffer's next place. */
static inline double *copy_layers(const struct cell *c, int d, int first, double *buffer, int to_buffer) {
  int low[DIMS] = {0, 0, 0}, high[DIMS] = {c->size[X], c->size[Y], c->size[Z]};
  low[d] = first, high[d] = first + GHOSTS;
  const size_t bytes = (size_t)(high[X] - low[X]) * VARS * sizeof *buffer;
  for (int z = low[Z]; z < high[Z]; ++z)
    for (int y = low[Y]; y < high[Y]; ++y, buffer += bytes / sizeof *buffer) {
      if (to_buffer)
        memcpy(buffer, u_at(c, low[X], y, z), bytes);
      else
        memcpy(u_at(c, low[X], y, z), buffer, bytes);
    }
  return buffer;
}

/* Fills the ghosts between cells: one message each way along each dimension for all my cells at once. */
static inline void copy_faces(struct partition *p) {
  MPI_Request requests[2 * FACES];
  if (p->q == 1) return;
  for (int f = 0; f < FACES; ++f) { /* all are packed before the first message, as in the benchmarks */
    const int d = f / 2, upwards = f % 2;
    double *out = p->out[f];
    for (int i = 0; i < p->q; ++i) {
      const struct cell *c = &p->cells[i];
      if (c->coord[d] != (upwards ? p->q - 1 : 0)) out = copy_layers(c, d, upwards ? c->size[d] - GHOSTS : 0, out, 1);
    }
  }
  for (int f = 0; f < FACES; ++f) { /* what goes upwards comes from below, as much as I send there */
    const int from = f % 2 ? p->before[f / 2] : p->after[f / 2];
    MPI_Irecv(p->in[f], p->face_count[f ^ 1], MPI_DOUBLE, from, TAG_FACES + f, MPI_COMM_WORLD, &requests[f]);
  }
  for (int f = 0; f < FACES; ++f) {
    const int to = f % 2 ? p->after[f / 2] : p->before[f / 2];
    MPI_Isend(p->out[f], p->face_count[f], MPI_DOUBLE, to, TAG_FACES + f, MPI_COMM_WORLD, &requests[FACES + f]);
  }
  MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE);
  for (int f = 0; f < FACES; ++f) {
    const int d = f / 2, upwards = f % 2;
    double *in = p->in[f];
    for (int i = 0; i < p->q; ++i) {
      const struct cell *c = &p->cells[i];
      if (c->coord[d] != (upwards ? 0 : p->q - 1)) in = copy_layers(c, d, upwards ? -GHOSTS : c->size[d], in, 0);
    }
  }
}

/* du/dt without the forcing at a point of u. */
typedef void rate_function(const double *u, const size_t stride[DIMS], double h, double rate[VARS]);

/* rhs = dt * du/dt in all my cells, from u and its ghosts. */
static inline void compute_rhs(struct partition *p, rate_function *rate_at) {
  for (int i = 0; i < p->q; ++i) {
    struct cell *c = &p->cells[i];
    for (int z = 0; z < c->size[Z]; ++z)
      for (int y = 0; y < c->size[Y]; ++y)
        for (int x = 0; x < c->size[X]; ++x) {
          double rate[VARS];
          const size_t here = at(c, x, y, z);
          rate_at(u_at(c, x, y, z), c->u_stride, p->h, rate);
          for (int m = 0; m < VARS; ++m) c->rhs[here + m] = p->dt * (rate[m] + c->forcing[here + m]);
        }
  }
}

/* Sets all of u, the ghosts included, to the steady state, or the points inside the cube to the start. */
static inline void fill(const struct partition *p, void (*value)(int, const int *, double *), int ghosts) {
  for (int i = 0; i < p->q; ++i) {
    const struct cell *c = &p->cells[i];
    for (int z = -ghosts; z < c->size[Z] + ghosts; ++z)
      for (int y = -ghosts; y < c->size[Y] + ghosts; ++y)
        for (int x = -ghosts; x < c->size[X] + ghosts; ++x) {
          const int place[DIMS] = {c->start[X] + x, c->start[Y] + y, c->start[Z] + z};
          value(p->n, place, u_at(c, x, y, z));
        }
  }
}

/* The forcing that the steady state needs, and the start; the ghosts outside of the cube keep the steady state. */
static inline void initialize(struct partition *p, rate_function *rate_at) {
  fill(p, model_exact, GHOSTS);
  compute_rhs(p, rate_at);
  for (int i = 0; i < p->q; ++i) {
    struct cell *c = &p->cells[i];
    for (int k = 0; k < points_of(c) * VARS; ++k) c->forcing[k] = -c->rhs[k] / p->dt;
  }
  fill(p, model_start, 0);
}

/* Adds what the sweeps found to u. */
static inline void add_update(struct partition *p) {
  for (int i = 0; i < p->q; ++i) {
    struct cell *c = &p->cells[i];
    for (int z = 0; z < c->size[Z]; ++z)
      for (int y = 0; y < c->size[Y]; ++y) {
        double *u = u_at(c, 0, y, z);
        const double *rhs = c->rhs + at(c, 0, y, z);
        for (int k = 0; k < c->size[X] * VARS; ++k) u[k] += rhs[k];
      }
  }
}

/* The distance to the steady state. */
static inline double error_norm(const struct partition *p) {
  double sum = 0, wanted[VARS];
  for (int i = 0; i < p->q; ++i) {
    const struct cell *c = &p->cells[i];
    for (int z = 0; z < c->size[Z]; ++z)
      for (int y = 0; y < c->size[Y]; ++y)
        for (int x = 0; x < c->size[X]; ++x) {
          const int place[DIMS] = {c->start[X] + x, c->start[Y] + y, c->start[Z] + z};
          model_exact(p->n, place, wanted);
          for (int m = 0; m < VARS; ++m) sum += pow(u_at(c, x, y, z)[m] - wanted[m], 2);
        }
  }
  return root_mean(sum, p->n);
}

/* The largest face of any cell, for the buffers of a sweep. */
static inline size_t largest_face(const struct partition *p) {
  const size_t side = (size_t)part_size(p->n, p->q, 0);
  return side * side;
}

#endif
