/* MG: V-cycles of multigrid for a discrete Poisson problem on a periodic cube, after the NAS Parallel Benchmarks
 * (RNR-94-007, section 2.2.2; the decomposition is that of the benchmarks' second version).
 *
 * The cube is divided in three dimensions among 2^k ranks. On each level each rank exchanges the faces of its part
 * with its six neighbours. On levels with fewer points than ranks along a dimension, every second rank (then three
 * of four, ...) has no part: the others go on, and hand the correction back on the way to the finer level. */
#include "example.h"

enum { X, Y, Z, DIMS, MAX_LEVELS = 12, COARSEST = 1, CHARGES = 10 };
enum { TAG_FACE = 10, TAG_SPREAD = 20 };

/* A level of the grid: 2^level points along each side, `local` of them mine, and a layer of ghosts around. */
struct level {
  int local[DIMS];
  int stride[DIMS]; /* one in so many ranks has a part along this dimension, the last of each such group */
  int active;       /* I have a part */
  size_t pitch_y, pitch_z;
  double *u, *r;
};

static int side[DIMS], place[DIMS]; /* ranks along each dimension, and mine among them */
static struct level levels[MAX_LEVELS];
static double *charge; /* the right-hand side, on the finest level */
static double *face_out[2], *face_in[2];

/* Weights of a 27-point operator for the centre, the 6 faces, the 12 edges and the 8 corners. */
static const double OPERATOR_A[4] = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12};
static const double SMOOTHER[4] = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
static const double RESTRICTION[4] = {1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16};

static const struct example_class CLASSES[EXAMPLE_CLASSES] = {
    /* references: the benchmarks' own verification values */
    {'S', 32, 4, 0.530770700573e-4},
    {'W', 128, 4, 0.646732937534e-5},
    {'A', 256, 4, 0.2433365309069e-5},
};

static size_t at(const struct level *l, int x, int y, int z) {
  return (size_t)(x + 1) + l->pitch_y * (size_t)(y + 1) + l->pitch_z * (size_t)(z + 1);
}

static int rank_of(const int c[DIMS]) { return c[X] + side[X] * (c[Y] + side[Y] * c[Z]); }

static int rank_beside(int dim, int steps) {
  int c[DIMS] = {place[X], place[Y], place[Z]};
  c[dim] = (c[dim] + steps + side[dim]) % side[dim];
  return rank_of(c);
}

static int has_part(const struct level *l, int dim) { return (place[dim] + 1) % l->stride[dim] == 0; }

static void set_up_levels(const struct example *ex, int finest) {
  for (int d = 0; d < DIMS; ++d) side[d] = 1;
  for (int p = ex->ranks, k = Z; p > 1; p /= 2, k = k == X ? Z : k - 1) side[k] *= 2; /* Z first, as in Fortran */
  place[X] = ex->rank % side[X];
  place[Y] = ex->rank / side[X] % side[Y];
  place[Z] = ex->rank / (side[X] * side[Y]);
  for (int k = finest; k >= COARSEST; --k) {
    struct level *l = &levels[k];
    l->active = 1;
    for (int d = 0; d < DIMS; ++d) {
      const int holders = side[d] < 1 << k ? side[d] : 1 << k;
      l->stride[d] = side[d] / holders;
      l->local[d] = (1 << k) / holders;
      l->active &= has_part(l, d);
    }
    l->pitch_y = (size_t)l->local[X] + 2;
    l->pitch_z = l->pitch_y * (size_t)(l->local[Y] + 2);
    const size_t points = l->pitch_z * (size_t)(l->local[Z] + 2);
    l->u = example_alloc(points, sizeof(double));
    l->r = example_alloc(points, sizeof(double));
    if (k == finest) charge = example_alloc(points, sizeof(double));
    for (int s = 0; s < 2 && k == finest; ++s) {
      face_out[s] = example_alloc(points, sizeof(double));
      face_in[s] = example_alloc(points, sizeof(double));
    }
  }
}

/* Copies the layer `where` along `dim` to or from a buffer; layers already exchanged bring their ghosts along. */
static int copy_face(const struct level *l, double *a, int dim, int where, double *buffer, int to_buffer) {
  int low[DIMS], high[DIMS], count = 0;
  for (int d = 0; d < DIMS; ++d) {
    low[d] = d == dim ? where : d < dim ? -1 : 0;
    high[d] = d == dim ? where + 1 : d < dim ? l->local[d] + 1 : l->local[d];
  }
  for (int z = low[Z]; z < high[Z]; ++z)
    for (int y = low[Y]; y < high[Y]; ++y)
      for (int x = low[X]; x < high[X]; ++x, ++count) {
        if (to_buffer)
          buffer[count] = a[at(l, x, y, z)];
        else
          a[at(l, x, y, z)] = buffer[count];
      }
  return count;
}

/* Fills the ghosts: per dimension two receives posted, two sends, two waits. */
static void exchange(const struct level *l, double *a) {
  for (int d = 0; d < DIMS; ++d) {
    const int last = l->local[d] - 1;
    if (l->stride[d] == side[d]) { /* one holder: the cube closes on itself */
      copy_face(l, a, d, last, face_out[0], 1);
      copy_face(l, a, d, -1, face_out[0], 0);
      copy_face(l, a, d, 0, face_out[0], 1);
      copy_face(l, a, d, last + 1, face_out[0], 0);
      continue;
    }
    const int below = rank_beside(d, -l->stride[d]), above = rank_beside(d, l->stride[d]);
    const int upward = copy_face(l, a, d, last, face_out[1], 1), downward = copy_face(l, a, d, 0, face_out[0], 1);
    MPI_Request arrival[2];
    MPI_Irecv(face_in[0], upward, MPI_DOUBLE, below, TAG_FACE + 2 * d, MPI_COMM_WORLD, &arrival[0]);
    MPI_Irecv(face_in[1], downward, MPI_DOUBLE, above, TAG_FACE + 2 * d + 1, MPI_COMM_WORLD, &arrival[1]);
    MPI_Send(face_out[1], upward, MPI_DOUBLE, above, TAG_FACE + 2 * d, MPI_COMM_WORLD);
    MPI_Send(face_out[0], downward, MPI_DOUBLE, below, TAG_FACE + 2 * d + 1, MPI_COMM_WORLD);
    MPI_Wait(&arrival[0], MPI_STATUS_IGNORE);
    copy_face(l, a, d, -1, face_in[0], 0);
    MPI_Wait(&arrival[1], MPI_STATUS_IGNORE);
    copy_face(l, a, d, last + 1, face_in[1], 0);
  }
}

/* Sums of the four face neighbours and the four corners of each point's column across the line (y, z). */
static void across(const struct level *l, const double *a, int y, int z, double *faces, double *corners) {
  const double *c = a + at(l, -1, y, z), *yl = c - l->pitch_y, *yh = c + l->pitch_y, *zl = c - l->pitch_z,
               *zh = c + l->pitch_z;
  for (int x = 0; x < l->local[X] + 2; ++x) {
    faces[x] = yl[x] + yh[x] + zl[x] + zh[x];
    corners[x] = (zl - l->pitch_y)[x] + (zl + l->pitch_y)[x] + (zh - l->pitch_y)[x] + (zh + l->pitch_y)[x];
  }
}

static double weigh(const double *line, const double *faces, const double *corners, int x, const double w[4]) {
  return w[0] * line[x] + w[1] * (line[x - 1] + line[x + 1] + faces[x]) +
         w[2] * (faces[x - 1] + faces[x + 1] + corners[x]) + w[3] * (corners[x - 1] + corners[x + 1]);
}

/* out = base + sign * (operator w applied to a), then the ghosts of out. `out` and `base` may be the same. */
static void apply(const struct level *l, double *out, const double *base, double sign, const double w[4],
                  const double *a) {
  double faces[(1 << MAX_LEVELS) + 2], corners[(1 << MAX_LEVELS) + 2];
  if (!l->active) return;
  for (int z = 0; z < l->local[Z]; ++z)
    for (int y = 0; y < l->local[Y]; ++y) {
      const size_t line = at(l, -1, y, z);
      across(l, a, y, z, faces, corners);
      for (int x = 1; x <= l->local[X]; ++x)
        out[line + (size_t)x] = base[line + (size_t)x] + sign * weigh(a + line, faces, corners, x, w);
    }
  exchange(l, out);
}

/* Which of two neighbouring fine points mine is, where each of them has a rank of its own; 0 where I have both. */
static int parity(const struct level *fine, const struct level *coarse, int dim) {
  if (fine->stride[dim] == coarse->stride[dim]) return 0;
  return ((place[dim] + 1) / fine->stride[dim] - 1) & 1;
}

static void restrict_to(const struct level *coarse, const struct level *fine) {
  double faces[(1 << MAX_LEVELS) + 2], corners[(1 << MAX_LEVELS) + 2];
  if (!coarse->active) return;
  int shift[DIMS]; /* coarse point i lies on fine point 2i + 1 - parity */
  for (int d = 0; d < DIMS; ++d) shift[d] = 1 - parity(fine, coarse, d);
  for (int z = 0; z < coarse->local[Z]; ++z)
    for (int y = 0; y < coarse->local[Y]; ++y) {
      const int fine_y = 2 * y + shift[Y], fine_z = 2 * z + shift[Z];
      across(fine, fine->r, fine_y, fine_z, faces, corners);
      const double *line = fine->r + at(fine, -1, fine_y, fine_z);
      for (int x = 0; x < coarse->local[X]; ++x)
        coarse->r[at(coarse, x, y, z)] = weigh(line, faces, corners, 2 * x + shift[X] + 1, RESTRICTION);
    }
  exchange(coarse, coarse->r);
}

/* Ranks with a part of the coarse level give it to the neighbour that has a part of the fine level only. */
static void spread(const struct level *coarse, const struct level *fine) {
  const int points = (int)(coarse->pitch_z * (size_t)(coarse->local[Z] + 2));
  for (int d = 0; d < DIMS; ++d) {
    if (fine->stride[d] == coarse->stride[d]) continue;
    int takes_part = has_part(fine, d);
    for (int e = 0; e < DIMS; ++e)
      if (e != d) takes_part &= has_part(e < d ? fine : coarse, e);
    if (!takes_part) continue;
    if (has_part(coarse, d))
      MPI_Send(coarse->u, points, MPI_DOUBLE, rank_beside(d, -fine->stride[d]), TAG_SPREAD + d, MPI_COMM_WORLD);
    else
      MPI_Recv(coarse->u, points, MPI_DOUBLE, rank_beside(d, fine->stride[d]), TAG_SPREAD + d, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  }
}

/* u of the fine level += the trilinear interpolation of the coarse one, the ghosts included. */
static void interpolate(const struct level *fine, const struct level *coarse) {
  spread(coarse, fine);
  if (!fine->active) return;
  int shift[DIMS];
  for (int d = 0; d < DIMS; ++d) shift[d] = parity(fine, coarse, d) + 2; /* + 2: no negative number is halved */
  for (int z = -1; z <= fine->local[Z]; ++z)
    for (int y = -1; y <= fine->local[Y]; ++y) {
      const int fz = z + shift[Z], fy = y + shift[Y];
      const size_t back_z = fz % 2 ? 0 : coarse->pitch_z, back_y = fy % 2 ? 0 : coarse->pitch_y;
      const double *here = coarse->u + at(coarse, 0, fy / 2 - 1, fz / 2 - 1);
      double *out = fine->u + at(fine, 0, y, z);
      for (int x = -1; x <= fine->local[X]; ++x) {
        const int fx = x + shift[X];
        const double *p = here + fx / 2 - 1, *q = fx % 2 ? p : p - 1;
        out[x] += 0.125 * (p[0] + q[0] + *(p - back_y) + *(q - back_y) + *(p - back_z) + *(q - back_z) +
                           *(p - back_y - back_z) + *(q - back_y - back_z));
      }
    }
}

static void clear_u(const struct level *l) {
  memset(l->u, 0, l->pitch_z * (size_t)(l->local[Z] + 2) * sizeof(double));
}

static void v_cycle(int finest) {
  for (int k = finest; k > COARSEST; --k) restrict_to(&levels[k - 1], &levels[k]);
  clear_u(&levels[COARSEST]);
  apply(&levels[COARSEST], levels[COARSEST].u, levels[COARSEST].u, 1, SMOOTHER, levels[COARSEST].r);
  for (int k = COARSEST + 1; k <= finest; ++k) {
    struct level *l = &levels[k];
    if (k < finest) clear_u(l);
    interpolate(l, &levels[k - 1]);
    apply(l, l->r, k < finest ? l->r : charge, -1, OPERATOR_A, l->u);
    apply(l, l->u, l->u, 1, SMOOTHER, l->r);
  }
}

static double residual_norm(const struct level *l, double points) {
  double sum = 0, total = 0;
  for (int z = 0; z < l->local[Z]; ++z)
    for (int y = 0; y < l->local[Y]; ++y)
      for (int x = 0; x < l->local[X]; ++x) sum += l->r[at(l, x, y, z)] * l->r[at(l, x, y, z)];
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(total / points);
}

struct candidate {
  double value;
  int64_t position; /* x + n (y + n z) in the whole cube */
};

static int by_value(const void *a, const void *b) {
  const double x = ((const struct candidate *)a)->value, y = ((const struct candidate *)b)->value;
  return (x > y) - (x < y);
}

/* Keeps the CHARGES smallest values that were offered; `kept` is in ascending order. */
static void offer(struct candidate kept[CHARGES], double value, int64_t position) {
  if (value >= kept[CHARGES - 1].value) return;
  int i = CHARGES - 1;
  for (; i > 0 && kept[i - 1].value > value; --i) kept[i] = kept[i - 1];
  kept[i] = (struct candidate){value, position};
}

/* Puts `amount` where the smallest of all ranks' candidates lie, on whichever rank has the point. */
static void place_charges(const struct level *l, int n, int ranks, const struct candidate mine[CHARGES],
                          double amount) {
  const int bytes = CHARGES * (int)sizeof(struct candidate);
  struct candidate *all = example_alloc((size_t)(CHARGES * ranks), sizeof *all);
  MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
  qsort(all, (size_t)(CHARGES * ranks), sizeof *all, by_value);
  for (int i = 0; i < CHARGES; ++i) {
    const int64_t p = all[i].position;
    const int c[DIMS] = {(int)(p % n) - place[X] * l->local[X], (int)(p / n % n) - place[Y] * l->local[Y],
                         (int)(p / n / n) - place[Z] * l->local[Z]};
    int here = 1;
    for (int d = 0; d < DIMS; ++d) here &= c[d] >= 0 && c[d] < l->local[d];
    if (here) charge[at(l, c[X], c[Y], c[Z])] = amount;
  }
  free(all);
}

/* Charges of +1 at the ten largest of n^3 random numbers, and of -1 at the ten smallest. */
static void set_charges(const struct level *l, int n, int ranks) {
  struct candidate low[CHARGES], high[CHARGES];
  for (int i = 0; i < CHARGES; ++i) low[i] = high[i] = (struct candidate){2, 0}; /* the numbers are in (0, 1) */
  for (int z = 0; z < l->local[Z]; ++z)
    for (int y = 0; y < l->local[Y]; ++y) {
      int64_t position = (int64_t)(place[Z] * l->local[Z] + z) * n + place[Y] * l->local[Y] + y;
      position = position * n + place[X] * l->local[X];
      uint64_t state = random_after((uint64_t)position);
      for (int x = 0; x < l->local[X]; ++x, ++position) {
        const double value = random_next(&state);
        offer(low, value, position);
        offer(high, 1 - value, position);
      }
    }
  place_charges(l, n, ranks, low, -1);
  place_charges(l, n, ranks, high, 1);
  exchange(l, charge);
}

static const char ABOUT[] =
    "MG: multigrid V-cycles on a periodic cube of n points along each side (a power of two).\n"
    "RANKS is a power of two; each rank exchanges faces with six neighbours on each level.";

int main(int argc, char **argv) {
  struct example ex = example_start(argc, argv, "mg", CLASSES, ABOUT);
  int finest = 0;
  while (1 << finest < ex.size.n) ++finest;
  if (!is_power_of_two(ex.size.n) || finest <= COARSEST || finest >= MAX_LEVELS)
    example_stop(&ex, EXAMPLE_USAGE, "mg: n must be a power of two from 4 to %d\n", 1 << (MAX_LEVELS - 1));
  if (!is_power_of_two(ex.ranks)) example_stop(&ex, EXAMPLE_USAGE, "mg: the number of ranks must be a power of two\n");
  set_up_levels(&ex, finest);
  struct level *top = &levels[finest];
  if (top->stride[Z] > 1) example_stop(&ex, EXAMPLE_USAGE, "mg: more ranks than points along a side\n");
  set_charges(top, ex.size.n, ex.ranks);
  if (ex.rank == 0)
    printf("mg class %c: %d^3 points, %d iterations, %d ranks as %d x %d x %d\n", ex.size.letter, ex.size.n,
           ex.size.iterations, ex.ranks, side[X], side[Y], side[Z]);
  example_begin(&ex);
  const double points = pow(ex.size.n, DIMS);
  apply(top, top->r, charge, -1, OPERATOR_A, top->u);
  const double before = residual_norm(top, points);
  for (int i = 0; i < ex.size.iterations; ++i) {
    v_cycle(finest);
    apply(top, top->r, charge, -1, OPERATOR_A, top->u);
  }
  const double after = residual_norm(top, points);
  example_end(&ex);
  if (ex.rank == 0) printf("residual before: %.6e\n", before);
  return example_verify(&ex, "residual", after, 1e-8);
}
