// A subject is one thing that MPI promises, checked from inside a running program. All subjects are linked
// into one driver, so that a test starts MPI once for all of them.
#pragma once

#include <mpi.h>
#include <stddef.h>

struct subject {
  const char *name;
  int least_ranks;
  void (*run)(MPI_Comm comm);  // `comm` is a duplicate of MPI_COMM_WORLD for this subject alone
  struct subject *next;
};

void subject_register(struct subject *subject);

// Counts and prints a failure; the driver then exits with code 1.
void check_at(int holds, const char *file, int line, const char *text);
#define CHECK(condition) check_at(!!(condition), __FILE__, __LINE__, #condition)

// Adds to the subject's checksum, which must be the same in every run.
void note(const void *data, size_t bytes);
void note_int(long long value);

// Wall-clock seconds without MPI, and computation that takes about that long.
double seconds_now(void);
void compute(double seconds);

#define SUBJECT(id, ranks)                                                                             \
  static void run_##id(MPI_Comm comm);                                                                 \
  static struct subject subject_##id = {#id, ranks, run_##id, NULL};                                   \
  __attribute__((constructor)) static void register_##id(void) { subject_register(&subject_##id); }    \
  static void run_##id(MPI_Comm comm)
