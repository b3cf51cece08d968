/* LU: symmetric successive over-relaxation with 5 x 5 blocks, after the NAS Parallel Benchmarks (RNR-94-007,
 * section 3; the decomposition is that of the benchmarks' second version).
 *
 * The cube is divided along x and y among 2^k ranks; each has whole lines of z. The lower sweep takes one plane of z
 * after the other: a rank waits for the edges from west and south, solves its part of the plane, and sends its own
 * edges east and north, so that a wavefront runs over the ranks, and planes follow each other in a pipeline. The
 * upper sweep comes back. Many small messages; the ranks at the corners wait while the pipeline fills. */
#include "model.h"

enum { WEST, EAST, SOUTH, NORTH, SIDES };
enum { TAG_EDGE = 10, TAG_FACE = 20 };

static const double RELAXATION = 1.2;

static const struct example_class CLASSES[EXAMPLE_CLASSES] = {
    /* references: this program on one rank, x86-64 */
    {'S', 12, 50, 1.896240947197867e-2},
    {'W', 33, 300, 1.444891314327218e-3},
    {'A', 64, 250, 1.895061440488542e-2},
};

static int n, parts[2];                      /* ranks along x and y */
static int size[DIMS], start[DIMS];          /* my points */
static int beside[SIDES];                    /* neighbours, MPI_PROC_NULL at the walls */
static double h, dt;
static size_t u_stride[DIMS], d_stride[DIMS], f_stride[DIMS]; /* of arrays with two ghosts, one, and none */
static double *u;       /* the solution */
static double *delta;   /* right-hand side, then what the sweeps make of it; zero outside of the cube */
static double *forcing;
static double *out, *in;

static size_t with_ghosts(const size_t stride[DIMS], int ghosts, int x, int y, int z) {
  return (size_t)(x + ghosts) * stride[X] + (size_t)(y + ghosts) * stride[Y] + (size_t)(z + ghosts) * stride[Z];
}
static double *u_at(int x, int y, int z) { return u + with_ghosts(u_stride, GHOSTS, x, y, z); }
static double *delta_at(int x, int y, int z) { return delta + with_ghosts(d_stride, 1, x, y, z); }
static double *forcing_at(int x, int y, int z) { return forcing + with_ghosts(f_stride, 0, x, y, z); }

static double *allocate(size_t stride[DIMS], int ghosts) {
  size_t count = VARS;
  for (int d = 0; d < DIMS; ++d) stride[d] = count, count *= (size_t)(size[d] + 2 * ghosts);
  return example_alloc(count, sizeof(double));
}

static int rank_at(int i, int j) {
  return i < 0 || j < 0 || i >= parts[X] || j >= parts[Y] ? MPI_PROC_NULL : j * parts[X] + i;
}

static void set_up(const struct example *ex) {
  n = ex->size.n, h = spacing_for(n), dt = COURANT * h;
  if (!is_power_of_two(ex->ranks)) example_stop(ex, EXAMPLE_USAGE, "lu: the number of ranks must be a power of two\n");
  parts[X] = parts[Y] = 1;
  while (parts[X] * parts[Y] < ex->ranks) parts[parts[X] > parts[Y] ? Y : X] *= 2;
  if (n / parts[X] < GHOSTS)
    example_stop(ex, EXAMPLE_USAGE, "lu: n must be at least %d with so many ranks\n", GHOSTS * parts[X]);
  const int place[2] = {ex->rank % parts[X], ex->rank / parts[X]};
  for (int d = X; d <= Y; ++d) size[d] = part_size(n, parts[d], place[d]), start[d] = part_start(n, parts[d], place[d]);
  size[Z] = n, start[Z] = 0;
  beside[WEST] = rank_at(place[X] - 1, place[Y]), beside[EAST] = rank_at(place[X] + 1, place[Y]);
  beside[SOUTH] = rank_at(place[X], place[Y] - 1), beside[NORTH] = rank_at(place[X], place[Y] + 1);
  u = allocate(u_stride, GHOSTS);
  delta = allocate(d_stride, 1);
  forcing = allocate(f_stride, 0);
  const size_t face = (size_t)(size[X] > size[Y] ? size[X] : size[Y]) * (size_t)n * GHOSTS * VARS;
  out = example_alloc(face, sizeof(double));
  in = example_alloc(face, sizeof(double));
}

/* Copies the layers of u from `first` on across x or y to or from a buffer; returns how many numbers. */
static int copy_layers(int d, int first, double *buffer, int to_buffer) {
  int low[2] = {0, 0}, high[2] = {size[X], size[Y]}, count = 0;
  low[d] = first, high[d] = first + GHOSTS;
  const size_t bytes = (size_t)(high[X] - low[X]) * VARS * sizeof *buffer;
  for (int z = 0; z < n; ++z)
    for (int y = low[Y]; y < high[Y]; ++y, count += (int)(bytes / sizeof *buffer))
      memcpy(to_buffer ? buffer + count : u_at(low[X], y, z), to_buffer ? u_at(low[X], y, z) : buffer + count, bytes);
  return count;
}

/* Sends the faces of u on one side to `to` and takes those of `from` on the other: receive, send, wait. */
static void exchange_face(int d, int from, int to, int send_first, int receive_first) {
  MPI_Request arrival = MPI_REQUEST_NULL;
  const int count = GHOSTS * VARS * n * size[1 - d];
  if (from != MPI_PROC_NULL) MPI_Irecv(in, count, MPI_DOUBLE, from, TAG_FACE + d, MPI_COMM_WORLD, &arrival);
  if (to != MPI_PROC_NULL) {
    copy_layers(d, send_first, out, 1);
    MPI_Send(out, count, MPI_DOUBLE, to, TAG_FACE + d, MPI_COMM_WORLD);
  }
  if (from == MPI_PROC_NULL) return;
  MPI_Wait(&arrival, MPI_STATUS_IGNORE);
  copy_layers(d, receive_first, in, 0);
}

static void exchange_faces(void) {
  for (int d = X; d <= Y; ++d) {
    const int below = beside[2 * d], above = beside[2 * d + 1];
    exchange_face(d, below, above, size[d] - GHOSTS, -GHOSTS);
    exchange_face(d, above, below, 0, size[d]);
  }
}

/* delta = dt * du/dt, from u and its ghosts. */
static void compute_rhs(void) {
  for (int z = 0; z < size[Z]; ++z)
    for (int y = 0; y < size[Y]; ++y)
      for (int x = 0; x < size[X]; ++x) {
        double rate[VARS];
        model_rate(u_at(x, y, z), u_stride, h, rate);
        for (int m = 0; m < VARS; ++m) delta_at(x, y, z)[m] = dt * (rate[m] + forcing_at(x, y, z)[m]);
      }
}

static void fill(void (*value)(int, const int *, double *), int ghosts) {
  for (int z = -ghosts; z < size[Z] + ghosts; ++z)
    for (int y = -ghosts; y < size[Y] + ghosts; ++y)
      for (int x = -ghosts; x < size[X] + ghosts; ++x) {
        const int place[DIMS] = {start[X] + x, start[Y] + y, start[Z] + z};
        value(n, place, u_at(x, y, z));
      }
}

/* The forcing that the steady state needs, and the start; the ghosts outside of the cube keep the steady state. */
static void initialize(void) {
  fill(model_exact, GHOSTS);
  compute_rhs();
  for (int z = 0; z < size[Z]; ++z)
    for (int y = 0; y < size[Y]; ++y)
      for (int x = 0; x < size[X]; ++x)
        for (int m = 0; m < VARS; ++m) forcing_at(x, y, z)[m] = -delta_at(x, y, z)[m] / dt;
  fill(model_start, 0);
  exchange_faces();
}

/* The edge of delta's plane z at x or y = `where`, to or from a buffer; returns how many numbers. */
static int copy_edge(int d, int where, int z, double *buffer, int to_buffer) {
  const int length = size[1 - d];
  for (int i = 0; i < length; ++i, buffer += VARS) {
    double *edge = d == X ? delta_at(where, i, z) : delta_at(i, where, z);
    memcpy(to_buffer ? buffer : edge, to_buffer ? edge : buffer, VARS * sizeof *buffer);
  }
  return length * VARS;
}

/* Takes the edges of plane z that the sweep needs from the two sides where the wavefront comes from. */
static void receive_edges(int upper, int z) {
  for (int d = X; d <= Y; ++d) {
    const int from = beside[2 * d + upper];
    if (from == MPI_PROC_NULL) continue;
    MPI_Recv(in, size[1 - d] * VARS, MPI_DOUBLE, from, TAG_EDGE + upper, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    copy_edge(d, upper ? size[d] : -1, z, in, 0);
  }
}

static void send_edges(int upper, int z) {
  for (int d = X; d <= Y; ++d) {
    const int to = beside[2 * d + 1 - upper];
    if (to == MPI_PROC_NULL) continue;
    const int count = copy_edge(d, upper ? 0 : size[d] - 1, z, out, 1);
    MPI_Send(out, count, MPI_DOUBLE, to, TAG_EDGE + upper, MPI_COMM_WORLD);
  }
}

/* sum = what the three neighbours on one side of the point, already solved, have to do with it. */
static void gather(int upper, const double *point, const double *solved, double sum[VARS]) {
  const double flow = dt / (2 * h), diffusion = dt * VISCOSITY / (h * h);
  memset(sum, 0, VARS * sizeof *sum);
  for (int d = 0; d < DIMS; ++d) {
    double jacobian[BLOCK];
    const double *v = upper ? solved + d_stride[d] : solved - d_stride[d];
    model_jacobian(d, upper ? point + u_stride[d] : point - u_stride[d], jacobian);
    for (int m = 0; m < VARS; ++m) {
      double product = 0;
      for (int k = 0; k < VARS; ++k) product += jacobian[m * VARS + k] * v[k];
      sum[m] += (upper ? flow : -flow) * product - diffusion * v[m];
    }
  }
}

/* The block on the diagonal. The part with the Jacobian makes it dense, as the benchmark's is: it damps the step a
 * little, and the steady state does not depend on it. */
static void diagonal_block(const double *point, double block[BLOCK]) {
  const double diffusion = dt * VISCOSITY / (h * h), smooth = dt * DISSIPATION / h;
  memset(block, 0, BLOCK * sizeof *block);
  for (int d = 0; d < DIMS; ++d) {
    double jacobian[BLOCK];
    model_jacobian(d, point, jacobian);
    for (int k = 0; k < BLOCK; ++k) block[k] += smooth * jacobian[k];
  }
  for (int m = 0; m < VARS; ++m) block[m * VARS + m] += 1 + 2 * DIMS * diffusion + 6 * DIMS * smooth;
}

/* One plane of the lower or the upper sweep, in the order in which the wavefront crosses it. */
static void solve_plane(int upper, int z) {
  for (int j = 0; j < size[Y]; ++j)
    for (int i = 0; i < size[X]; ++i) {
      const int x = upper ? size[X] - 1 - i : i, y = upper ? size[Y] - 1 - j : j;
      double *mine = delta_at(x, y, z), sum[VARS], block[BLOCK];
      gather(upper, u_at(x, y, z), mine, sum);
      for (int m = 0; m < VARS; ++m) sum[m] = upper ? RELAXATION * sum[m] : mine[m] - RELAXATION * sum[m];
      diagonal_block(u_at(x, y, z), block);
      solve_block(block, sum, 1);
      for (int m = 0; m < VARS; ++m) mine[m] = upper ? mine[m] - sum[m] : sum[m];
    }
}

static void sweep(int upper) {
  for (int k = 0; k < n; ++k) {
    const int z = upper ? n - 1 - k : k;
    receive_edges(upper, z);
    solve_plane(upper, z);
    send_edges(upper, z);
  }
}

static void add_update(void) {
  const double scale = 1 / (RELAXATION * (2 - RELAXATION));
  for (int z = 0; z < size[Z]; ++z)
    for (int y = 0; y < size[Y]; ++y)
      for (int x = 0; x < size[X]; ++x)
        for (int m = 0; m < VARS; ++m) u_at(x, y, z)[m] += scale * delta_at(x, y, z)[m];
}

/* The distance to the steady state. */
static double error_norm(void) {
  double sum = 0, wanted[VARS];
  for (int z = 0; z < size[Z]; ++z)
    for (int y = 0; y < size[Y]; ++y)
      for (int x = 0; x < size[X]; ++x) {
        const int place[DIMS] = {start[X] + x, start[Y] + y, start[Z] + z};
        model_exact(n, place, wanted);
        for (int m = 0; m < VARS; ++m) sum += pow(u_at(x, y, z)[m] - wanted[m], 2);
      }
  return root_mean(sum, n);
}

static const char ABOUT[] =
    "LU: over-relaxation of a cube of n points along each side; a wavefront over the ranks for each\n"
    "plane, forth and back, in a pipeline. RANKS is a power of two.";

int main(int argc, char **argv) {
  struct example ex = example_start(argc, argv, "lu", CLASSES, ABOUT);
  model_set_up();
  set_up(&ex);
  initialize();
  const double before = error_norm();
  if (ex.rank == 0)
    printf("lu class %c: %d^3 points, %d time steps, %d ranks as %d x %d\nerror before: %.6e\n", ex.size.letter, n,
           ex.size.iterations, ex.ranks, parts[X], parts[Y], before);
  example_begin(&ex);
  compute_rhs();
  for (int i = 0; i < ex.size.iterations; ++i) {
    sweep(0);
    sweep(1);
    add_update();
    exchange_faces();
    compute_rhs();
  }
  example_end(&ex);
  return example_verify(&ex, "error", error_norm(), 1e-9);
}
