/* CG: the smallest eigenvalue of a sparse matrix by inverse iteration with conjugate gradients, after the NAS
 * Parallel Benchmarks (RNR-94-007, section 2.2.3; the decomposition is that of the benchmarks' second version).
 *
 * The matrix is divided in blocks among rows x columns ranks, 2^k in all, with as many columns as rows or twice as
 * many. A product with it adds up along a row of ranks in log2(columns) exchanges, then swaps with the transposed
 * rank; a dot product adds up along the row likewise. */
#include "example.h"

enum { INNER_ITERATIONS = 25, MAX_STEPS = 16, MAX_NONZERO = 32 };
enum { TAG_SUM = 1, TAG_TRANSPOSE, TAG_DOT };

static const struct example_class CLASSES[EXAMPLE_CLASSES] = {
    /* references: the benchmarks' own verification values */
    {'S', 1400, 15, 8.5971775078648},
    {'W', 7000, 15, 10.362595087124},
    {'A', 14000, 15, 17.130235054029},
};

/* What the definition fixes per class: nonzeros of each vector that the matrix is made from, and the shift. */
static const double CONDITION = 0.1;
static int nonzeros_for(int n) { return n < 7000 ? 7 : n < 14000 ? 8 : 11; }
static double shift_for(int n) { return n < 7000 ? 10 : n < 14000 ? 12 : 20; }

/* My place among the ranks, and my block of the matrix: `high` rows from `top`, `wide` columns from `left`. */
static struct {
  int rows, columns, row, column;
  int top, high, left, wide;
  int steps;               /* exchanges of a sum along the row */
  int partner[MAX_STEPS];  /* of each of them */
  int transposed;
} grid;

struct entry {
  int row, column;
  double value;
};

static struct {
  size_t count;
  int *first; /* high + 1 */
  int *column;
  double *value;
} matrix;

static void set_up_grid(const struct example *ex) {
  grid.columns = grid.rows = 1;
  while (grid.rows * grid.columns < ex->ranks) *(grid.columns > grid.rows ? &grid.rows : &grid.columns) *= 2;
  grid.row = ex->rank / grid.columns;
  grid.column = ex->rank % grid.columns;
  if (ex->size.n % grid.columns)
    example_stop(ex, EXAMPLE_USAGE, "cg: n must be a multiple of %d with so many ranks\n", grid.columns);
  grid.high = ex->size.n / grid.rows, grid.top = grid.high * grid.row;
  grid.wide = ex->size.n / grid.columns, grid.left = grid.wide * grid.column;
  for (int bit = 1; bit < grid.columns; bit *= 2)
    grid.partner[grid.steps++] = grid.row * grid.columns + (grid.column ^ bit);
  /* Pairs of columns count as one where there are twice as many of them: the grid of pairs is square. */
  const int pair = grid.columns / grid.rows;
  grid.transposed = grid.column / pair * grid.columns + grid.row * pair + grid.column % pair;
}

/* A sparse random vector with `count` nonzeros, no place twice, and 0.5 at `own`; returns how many it has then. */
static int random_vector(uint64_t *state, int n, int count, int own, int *place, double *value) {
  int found = 0, power = 1;
  while (power < n) power *= 2;
  while (found < count) {
    const double v = random_next(state);
    const int p = (int)(power * random_next(state));
    int known = p >= n;
    for (int i = 0; i < found; ++i) known |= place[i] == p;
    if (!known) place[found] = p, value[found++] = v;
  }
  for (int i = 0; i < found; ++i)
    if (place[i] == own) {
      value[i] = 0.5;
      return found;
    }
  place[found] = own, value[found] = 0.5;
  return found + 1;
}

static void keep(struct entry **entries, size_t *count, size_t *room, struct entry e) {
  e.row -= grid.top, e.column -= grid.left;
  if (e.row < 0 || e.row >= grid.high || e.column < 0 || e.column >= grid.wide) return;
  if (*count == *room) {
    *room = *room ? 2 * *room : 4096;
    *entries = realloc(*entries, *room * sizeof **entries);
    if (*entries == NULL) MPI_Abort(MPI_COMM_WORLD, EXAMPLE_USAGE);
  }
  (*entries)[(*count)++] = e;
}

static int by_place(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  return x->row != y->row ? x->row - y->row : x->column - y->column;
}

/* Rows of sorted entries; those of the same place add up. */
static void compress(struct entry *entries, size_t count) {
  qsort(entries, count, sizeof *entries, by_place);
  matrix.first = example_alloc((size_t)grid.high + 1, sizeof(int));
  matrix.column = example_alloc(count, sizeof(int));
  matrix.value = example_alloc(count, sizeof(double));
  for (size_t i = 0; i < count; ++i) {
    const int again = i > 0 && by_place(&entries[i], &entries[i - 1]) == 0;
    if (!again) {
      matrix.column[matrix.count++] = entries[i].column;
      matrix.first[entries[i].row + 1]++;
    }
    matrix.value[matrix.count - 1] += entries[i].value;
  }
  for (int r = 0; r < grid.high; ++r) matrix.first[r + 1] += matrix.first[r];
}

/* The sum of outer products of random vectors with weights from 1 down to 0.1, plus 0.1 - shift on the diagonal.
 * Every rank goes through all of it and keeps its block. */
static void make_matrix(int n) {
  struct entry *entries = NULL;
  size_t count = 0, room = 0;
  uint64_t state = random_after(1); /* the definition draws one number before */
  double weight = 1;
  const double ratio = pow(CONDITION, 1.0 / n);
  for (int i = 0; i < n; ++i, weight *= ratio) {
    int place[MAX_NONZERO];
    double value[MAX_NONZERO];
    const int filled = random_vector(&state, n, nonzeros_for(n), i, place, value);
    for (int a = 0; a < filled; ++a)
      for (int b = 0; b < filled; ++b)
        keep(&entries, &count, &room, (struct entry){place[b], place[a], value[b] * value[a] * weight});
  }
  for (int i = 0; i < n; ++i) keep(&entries, &count, &room, (struct entry){i, i, CONDITION - shift_for(n)});
  compress(entries, count);
  free(entries);
}

/* Receives `count` values from `partner` and sends it as many: posted receive, send, wait. */
static void swap(const double *out, double *in, int count, int partner, int tag) {
  MPI_Request arrival;
  MPI_Irecv(in, count, MPI_DOUBLE, partner, tag, MPI_COMM_WORLD, &arrival);
  MPI_Send(out, count, MPI_DOUBLE, partner, tag, MPI_COMM_WORLD);
  MPI_Wait(&arrival, MPI_STATUS_IGNORE);
}

/* Adds up `count` values along the row of ranks, on each of them. */
static void add_along_row(double *values, int count) {
  double in[2];
  for (int s = 0; s < grid.steps; ++s) {
    swap(values, in, count, grid.partner[s], TAG_DOT);
    for (int i = 0; i < count; ++i) values[i] += in[i];
  }
}

static double dot(const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < grid.wide; ++i) sum += a[i] * b[i];
  add_along_row(&sum, 1);
  return sum;
}

/* out = matrix times v, both divided by columns of ranks. `row_sum` and `spare` have room for `high` values. */
static void multiply(const double *v, double *out, double *row_sum, double *spare) {
  for (int r = 0; r < grid.high; ++r) {
    double sum = 0;
    for (int k = matrix.first[r]; k < matrix.first[r + 1]; ++k) sum += matrix.value[k] * v[matrix.column[k]];
    row_sum[r] = sum;
  }
  double *mine = row_sum;
  int step = 0;
  if (grid.columns > grid.rows) { /* of my rows I go on with one half, my neighbour with the other */
    const int half = grid.column % 2;
    mine = row_sum + half * grid.wide;
    swap(row_sum + (1 - half) * grid.wide, spare, grid.wide, grid.partner[step++], TAG_SUM);
    for (int i = 0; i < grid.wide; ++i) mine[i] += spare[i];
  }
  for (; step < grid.steps; ++step) {
    swap(mine, spare, grid.wide, grid.partner[step], TAG_SUM);
    for (int i = 0; i < grid.wide; ++i) mine[i] += spare[i];
  }
  if (grid.rows == 1 && grid.columns == 1)
    memcpy(out, mine, (size_t)grid.wide * sizeof *out);
  else
    swap(mine, out, grid.wide, grid.transposed, TAG_TRANSPOSE);
}

static double *x, *z, *p, *q, *r, *row_sum, *spare;

/* z = an approximation of the inverse of the matrix times x; returns |x - matrix z|. */
static double solve(void) {
  memset(z, 0, (size_t)grid.wide * sizeof *z);
  memcpy(r, x, (size_t)grid.wide * sizeof *r);
  memcpy(p, x, (size_t)grid.wide * sizeof *p);
  double rho = dot(r, r);
  for (int k = 0; k < INNER_ITERATIONS; ++k) {
    multiply(p, q, row_sum, spare);
    const double alpha = rho / dot(p, q), before = rho;
    for (int i = 0; i < grid.wide; ++i) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    rho = dot(r, r);
    const double beta = rho / before;
    for (int i = 0; i < grid.wide; ++i) p[i] = r[i] + beta * p[i];
  }
  multiply(z, q, row_sum, spare);
  for (int i = 0; i < grid.wide; ++i) r[i] = x[i] - q[i];
  return sqrt(dot(r, r));
}

static void set_ones(void) {
  for (int i = 0; i < grid.wide; ++i) x[i] = 1;
}

/* One inverse iteration: solve, estimate the eigenvalue, normalize. */
static double iterate(double shift, double *residual) {
  *residual = solve();
  double sums[2] = {0, 0};
  for (int i = 0; i < grid.wide; ++i) sums[0] += x[i] * z[i], sums[1] += z[i] * z[i];
  add_along_row(sums, 2);
  for (int i = 0; i < grid.wide; ++i) x[i] = z[i] / sqrt(sums[1]);
  return shift + 1 / sums[0];
}

static const char ABOUT[] =
    "CG: conjugate gradients on a sparse random matrix with n rows, 25 steps in each iteration.\n"
    "RANKS is a power of two; sums go along rows of ranks, vectors to the transposed rank.";

int main(int argc, char **argv) {
  struct example ex = example_start(argc, argv, "cg", CLASSES, ABOUT);
  if (!is_power_of_two(ex.ranks)) example_stop(&ex, EXAMPLE_USAGE, "cg: the number of ranks must be a power of two\n");
  if (ex.size.n < 100) example_stop(&ex, EXAMPLE_USAGE, "cg: n must be 100 or more\n");
  set_up_grid(&ex);
  make_matrix(ex.size.n);
  double **const vectors[] = {&x, &z, &p, &q, &r, &row_sum, &spare};
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; ++i)
    *vectors[i] = example_alloc((size_t)grid.high, sizeof(double));
  if (ex.rank == 0)
    printf("cg class %c: %d rows, %d iterations, %d ranks as %d x %d\n", ex.size.letter, ex.size.n, ex.size.iterations,
           ex.ranks, grid.rows, grid.columns);
  double residual = 0, zeta = 0;
  set_ones();
  iterate(shift_for(ex.size.n), &residual); /* once before the clock starts, as defined */
  set_ones();
  example_begin(&ex);
  for (int i = 0; i < ex.size.iterations; ++i) {
    zeta = iterate(shift_for(ex.size.n), &residual);
    if (ex.rank == 0) printf("%4d  zeta %.6f\n", i + 1, zeta);
  }
  example_end(&ex);
  return example_verify(&ex, "zeta", zeta, 1e-10);
}
