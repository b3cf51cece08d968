/* FT: a diffusion equation solved by Fourier transforms in three dimensions, after the NAS Parallel Benchmarks
 * (RNR-94-007, section 2.2.4; the decomposition is that of the benchmarks' second version).
 *
 * Each rank holds whole planes of x and y. Transforms along x and y are local; for those along z one all-to-all
 * exchange transposes the box so that each rank holds whole lines of z, and for the way back another one. Each
 * iteration transposes once and reduces a checksum. */
#include "example.h"

struct complex_number {
  double re, im;
};
typedef struct complex_number cplx; /* two doubles for MPI; products of C's own type look for infinities each time */

enum { CHECKSUM_POINTS = 1024, BATCH = 16 };
static const double PI = 3.14159265358979323846, DIFFUSION = 1e-6;

static const struct example_class CLASSES[EXAMPLE_CLASSES] = {
    /* references: the real parts of the benchmarks' own last checksums */
    {'S', 64, 6, 5.542683411902e2},
    {'W', 128, 6, 5.504159734538e2},
    {'A', 256, 6, 5.091487099959e2},
};

static int nx, ny, nz;          /* points of the box */
static int planes, rows;        /* mine: planes of z; after transposing, rows of x and z */
static cplx *boxed, *spectrum;  /* [planes][ny][nx]; [rows][nx][nz] */
static cplx *out, *in;          /* what is exchanged */
static double *decay;           /* of each number in the spectrum, for one time step */

static cplx times(cplx a, cplx b) { return (cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/* exp(2 pi i k / n) for k < n / 2, made once for each length. */
static const cplx *roots(int n) {
  static cplx *made[32];
  int log = 0;
  while (1 << log < n) ++log;
  if (made[log] == NULL) {
    made[log] = example_alloc((size_t)n / 2 + 1, sizeof(cplx));
    for (int k = 0; k < n / 2; ++k) made[log][k] = (cplx){cos(2 * PI * k / n), sin(2 * PI * k / n)};
  }
  return made[log];
}

/* Transforms `count` interleaved lines of n points, a[point * count + line], with exp(sign 2 pi i jk / n).
 * Stockham's form: each pass goes from one array to the other, and the order comes out right. */
static void transform_lines(cplx *a, cplx *b, int n, int count, int sign) {
  const cplx *root = roots(n);
  cplx *from = a, *to = b;
  for (int half = n / 2, span = 1; half >= 1; half /= 2, span *= 2) {
    for (int j = 0; j < half; ++j) {
      const cplx w = {root[j * span].re, sign * root[j * span].im};
      const cplx *low = from + j * span * count, *high = from + (j + half) * span * count;
      cplx *even = to + 2 * j * span * count, *odd = even + span * count;
      for (int k = 0; k < span * count; ++k) {
        even[k] = (cplx){low[k].re + high[k].re, low[k].im + high[k].im};
        odd[k] = times(w, (cplx){low[k].re - high[k].re, low[k].im - high[k].im});
      }
    }
    cplx *swap = from;
    from = to, to = swap;
  }
  if (from != a) memcpy(a, from, (size_t)n * (size_t)count * sizeof *a);
}

/* Transforms `lines` lines: points of a line lie `stride` apart, lines `next` apart. */
static void transform(cplx *data, int n, size_t stride, int lines, size_t next, int sign) {
  static cplx *work[2];
  if (work[0] == NULL) {
    const int longest = nx > ny ? (nx > nz ? nx : nz) : (ny > nz ? ny : nz);
    for (int i = 0; i < 2; ++i) work[i] = example_alloc((size_t)longest * BATCH, sizeof(cplx));
  }
  for (int first = 0; first < lines; first += BATCH) {
    const int count = lines - first < BATCH ? lines - first : BATCH;
    for (int k = 0; k < n; ++k)
      for (int l = 0; l < count; ++l)
        work[0][k * count + l] = data[(size_t)k * stride + (size_t)(first + l) * next];
    transform_lines(work[0], work[1], n, count, sign);
    for (int k = 0; k < n; ++k)
      for (int l = 0; l < count; ++l)
        data[(size_t)k * stride + (size_t)(first + l) * next] = work[0][k * count + l];
  }
}

static void transform_planes(int sign) {
  for (int z = 0; z < planes; ++z) {
    cplx *plane = boxed + (size_t)z * ny * nx;
    transform(plane, nx, 1, ny, nx, sign);
    transform(plane, ny, nx, nx, 1, sign);
  }
}

/* From whole planes to whole lines of z: a block for each rank holds its rows of my planes. */
static void transpose_to_spectrum(int ranks) {
  const size_t block = (size_t)planes * rows * nx;
  for (int to = 0; to < ranks; ++to)
    for (int z = 0; z < planes; ++z)
      memcpy(out + to * block + (size_t)z * rows * nx, boxed + ((size_t)z * ny + (size_t)to * rows) * nx,
             (size_t)rows * nx * sizeof *out);
  MPI_Alltoall(out, (int)(2 * block), MPI_DOUBLE, in, (int)(2 * block), MPI_DOUBLE, MPI_COMM_WORLD);
  for (int z = 0; z < nz; ++z)
    for (int column = 0; column < rows * nx; ++column)
      spectrum[(size_t)column * nz + z] = in[(size_t)z * rows * nx + column];
}

/* The way back. `work`, not the spectrum, is given away. */
static void transpose_to_planes(int ranks, const cplx *work) {
  const size_t block = (size_t)planes * rows * nx;
  for (int z = 0; z < nz; ++z)
    for (int column = 0; column < rows * nx; ++column)
      out[(size_t)z * rows * nx + column] = work[(size_t)column * nz + z];
  MPI_Alltoall(out, (int)(2 * block), MPI_DOUBLE, in, (int)(2 * block), MPI_DOUBLE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from)
    for (int z = 0; z < planes; ++z)
      memcpy(boxed + ((size_t)z * ny + (size_t)from * rows) * nx, in + from * block + (size_t)z * rows * nx,
             (size_t)rows * nx * sizeof *in);
}

/* The frequency that index k of n stands for. */
static double frequency(int k, int n) { return k < n / 2 ? k : k - n; }

static void set_up(const struct example *ex) {
  nx = ny = nz = ex->size.n;
  if (ex->size.letter == 'W') nz /= 4;
  if (ex->size.letter == 'A') nz /= 2;
  if (!is_power_of_two(ex->size.n)) example_stop(ex, EXAMPLE_USAGE, "ft: n must be a power of two\n");
  if (ny % ex->ranks || nz % ex->ranks)
    example_stop(ex, EXAMPLE_USAGE, "ft: the number of ranks must be a power of two of at most %d\n", nz);
  planes = nz / ex->ranks, rows = ny / ex->ranks;
  const size_t mine = (size_t)planes * ny * nx;
  cplx **const arrays[] = {&boxed, &spectrum, &out, &in};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) *arrays[i] = example_alloc(mine, sizeof(cplx));
  decay = example_alloc(mine, sizeof *decay);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < nx; ++x)
      for (int z = 0; z < nz; ++z) {
        const double kx = frequency(x, nx), ky = frequency(ex->rank * rows + y, ny), kz = frequency(z, nz);
        decay[((size_t)y * nx + x) * nz + z] = exp(-4 * PI * PI * DIFFUSION * (kx * kx + ky * ky + kz * kz));
      }
  uint64_t state = random_after(2 * (uint64_t)ex->rank * mine);
  for (size_t i = 0; i < mine; ++i) {
    boxed[i].re = random_next(&state);
    boxed[i].im = random_next(&state);
  }
}

/* The sum of 1024 points spread over the box, on rank 0. */
static cplx checksum(int rank) {
  cplx sum = {0, 0}, total = {0, 0};
  for (int j = 1; j <= CHECKSUM_POINTS; ++j) {
    const int x = j % nx, y = 3 * j % ny, z = 5 * j % nz - rank * planes;
    if (z < 0 || z >= planes) continue;
    const cplx value = boxed[((size_t)z * ny + y) * nx + x];
    sum.re += value.re, sum.im += value.im;
  }
  MPI_Reduce(&sum, &total, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  const double points = (double)nx * ny * nz;
  return (cplx){total.re / points, total.im / points};
}

/* One time step: decay, and the way back to the box. */
static void step(int ranks) {
  const size_t mine = (size_t)rows * nx * nz;
  cplx *work = in; /* free until the exchange */
  for (size_t i = 0; i < mine; ++i) {
    spectrum[i].re *= decay[i];
    spectrum[i].im *= decay[i];
    work[i] = spectrum[i];
  }
  transform(work, nz, 1, rows * nx, nz, 1);
  transpose_to_planes(ranks, work);
  transform_planes(1);
}

static const char ABOUT[] =
    "FT: Fourier transforms of a box of n points along x and y; along z too, but n/4 for class W\n"
    "and n/2 for A. n and RANKS are powers of two; each iteration is one all-to-all exchange.";

int main(int argc, char **argv) {
  struct example ex = example_start(argc, argv, "ft", CLASSES, ABOUT);
  set_up(&ex);
  if (ex.rank == 0)
    printf("ft class %c: %d x %d x %d points, %d iterations, %d ranks\n", ex.size.letter, nx, ny, nz,
           ex.size.iterations, ex.ranks);
  example_begin(&ex);
  transform_planes(-1);
  transpose_to_spectrum(ex.ranks);
  transform(spectrum, nz, 1, rows * nx, nz, -1);
  cplx sum = {0, 0};
  for (int i = 0; i < ex.size.iterations; ++i) {
    step(ex.ranks);
    sum = checksum(ex.rank);
    if (ex.rank == 0) printf("%4d  checksum %.6f %.6f\n", i + 1, sum.re, sum.im);
  }
  example_end(&ex);
  MPI_Bcast(&sum, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return example_verify(&ex, "checksum", sum.re, 1e-10);
}
