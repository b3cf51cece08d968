/* What the examples share: their command line, their sizes by class letter, and the verdict at the end.
 *
 * What is printed on standard output is the same in every run of a program with the same arguments and ranks;
 * the run time goes to standard error. */
#ifndef FALLOW_EXAMPLES_EXAMPLE_H
#define FALLOW_EXAMPLES_EXAMPLE_H

#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLE_WRONG = 1, EXAMPLE_USAGE = 2 }; /* exit codes: the verification failed; the arguments do not fit */

/* One class of problem: points along each side (or rows), iterations, and the value that the run must end with. */
struct example_class {
  char letter; /* OTHER_SIZE when the user gave n or the iterations: there is no reference then */
  int n;
  int iterations;
  double reference;
};
enum { EXAMPLE_CLASSES = 3, OTHER_SIZE = '-' };

struct example {
  const char *name;
  struct example_class size;
  int rank;
  int ranks;
  double started; /* s */
};

/* Ends the program on every rank with `status`; rank 0 says why. To be called by all ranks alike. */
static inline _Noreturn void example_stop(const struct example *ex, int status, const char *format, ...) {
  if (ex->rank == 0) {
    va_list args;
    va_start(args, format);
    vfprintf(status ? stderr : stdout, format, args);
    va_end(args);
  }
  MPI_Finalize();
  exit(status);
}

static inline void *example_alloc(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (memory == NULL) {
    fprintf(stderr, "no memory for %zu times %zu bytes\n", count, size);
    MPI_Abort(MPI_COMM_WORLD, EXAMPLE_USAGE);
  }
  return memory;
}

static inline _Noreturn void example_help(const struct example *ex, const struct example_class *classes,
                                          const char *about) {
  if (ex->rank == 0) {
    printf("usage: mpirun -n RANKS %s [--class S|W|A] [-n POINTS] [-i ITERATIONS] [--help]\n\n%s\n\n", ex->name, about);
    for (int c = 0; c < EXAMPLE_CLASSES; ++c)
      printf("  class %c: n = %d, %d iterations\n", classes[c].letter, classes[c].n, classes[c].iterations);
    printf("\nWith -n or -i nothing is known to compare the result with; it is printed all the same.\n");
  }
  MPI_Finalize();
  exit(0);
}

static inline int example_number(const struct example *ex, const char *option, const char *text) {
  char *end = NULL;
  const long value = text ? strtol(text, &end, 10) : 0;
  if (text == NULL || end == text || *end != '\0' || value < 1 || value > 1000000)
    example_stop(ex, EXAMPLE_USAGE, "%s: %s wants a number from 1 to 1000000\n", ex->name, option);
  return (int)value;
}

/* Starts MPI and reads the command line; does not return after --help or a wrong argument. */
static inline struct example example_start(int argc, char **argv, const char *name,
                                           const struct example_class classes[EXAMPLE_CLASSES], const char *about) {
  struct example ex = {.name = name, .size = classes[0]};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ex.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ex.ranks);
  int n = 0, iterations = 0;
  for (int i = 1; i < argc; ++i) {
    const char *option = argv[i], *value = argv[i + 1]; /* argv[argc] is null */
    if (strcmp(option, "--help") == 0) example_help(&ex, classes, about);
    if (strcmp(option, "-n") == 0) {
      n = example_number(&ex, option, value), ++i;
    } else if (strcmp(option, "-i") == 0) {
      iterations = example_number(&ex, option, value), ++i;
    } else if (strcmp(option, "--class") == 0 && value != NULL) {
      int c = 0;
      while (c < EXAMPLE_CLASSES && (value[0] != classes[c].letter || value[1] != '\0')) ++c;
      if (c == EXAMPLE_CLASSES) example_stop(&ex, EXAMPLE_USAGE, "%s: no class %s\n", name, value);
      ex.size = classes[c], ++i;
    } else {
      example_stop(&ex, EXAMPLE_USAGE, "%s: unknown or incomplete option %s; see --help\n", name, option);
    }
  }
  if (n || iterations) ex.size.letter = OTHER_SIZE;
  if (n) ex.size.n = n;
  if (iterations) ex.size.iterations = iterations;
  return ex;
}

/* Called by all ranks when the set-up is done and the iterations are about to begin. */
static inline void example_begin(struct example *ex) {
  MPI_Barrier(MPI_COMM_WORLD);
  ex->started = MPI_Wtime();
}

/* Called by all ranks right after the last iteration: the slowest rank's time, on standard error. */
static inline void example_end(const struct example *ex) {
  const double mine = MPI_Wtime() - ex->started;
  double slowest = 0;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (ex->rank == 0) fprintf(stderr, "%s: %.3f s in %d iterations\n", ex->name, slowest, ex->size.iterations);
}

/* Compares `value`, which all ranks know, with the class's reference and finalizes MPI; returns the exit code.
 * The tolerance is relative and covers the order of the sums, which differs with the number of ranks. */
static inline int example_verify(const struct example *ex, const char *what, double value, double tolerance) {
  const double reference = ex->size.reference;
  const int known = ex->size.letter != OTHER_SIZE;
  const int good = isfinite(value) && (!known || fabs(value - reference) <= tolerance * fabs(reference));
  if (ex->rank == 0) {
    if (known && good) printf("%s: %.7e, within %.0e of the reference: verified\n", what, value, tolerance);
    if (known && !good) printf("%s: %.15e, reference %.15e: WRONG\n", what, value, reference);
    if (!known) printf("%s: %.7e, no reference for this size%s\n", what, value, good ? "" : ": WRONG");
    fflush(stdout);
  }
  MPI_Finalize();
  return good ? 0 : EXAMPLE_WRONG;
}

static inline int is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

/* Part `index` of `n` things dealt to `parts`: the first parts hold one more where it does not come out even. */
static inline int part_size(int n, int parts, int index) { return n / parts + (index < n % parts); }
static inline int part_start(int n, int parts, int index) {
  return n / parts * index + (index < n % parts ? index : n % parts);
}

/* The benchmarks' random numbers (RNR-94-007, section 2.3): x' = 5^13 x mod 2^46, taken as x' / 2^46. */
static const uint64_t RANDOM_SEED = 314159265, RANDOM_FACTOR = 1220703125, RANDOM_MASK = (1ULL << 46) - 1;

static inline double random_next(uint64_t *x) {
  *x = *x * RANDOM_FACTOR & RANDOM_MASK; /* 2^46 divides 2^64: the product may wrap */
  return (double)*x / (double)(RANDOM_MASK + 1);
}

/* The state after `skipped` numbers from the seed. */
static inline uint64_t random_after(uint64_t skipped) {
  uint64_t x = RANDOM_SEED;
  for (uint64_t factor = RANDOM_FACTOR; skipped; skipped >>= 1, factor = factor * factor & RANDOM_MASK)
    if (skipped & 1) x = x * factor & RANDOM_MASK;
  return x;
}

#endif
