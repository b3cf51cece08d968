// Self-checking programs: a failed check is printed, counted and becomes the exit code.
#pragma once

#include <stdio.h>
#include <time.h>

static int check_failures;

static inline void check_at(int holds, int line, const char *text) {
  if (holds) return;
  __atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);
  fprintf(stderr, "FAILED line %d: %s\n", line, text);
}
#define CHECK(condition) check_at(!!(condition), __LINE__, #condition)

static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void compute(double seconds) {
  for (const double end = seconds_now() + seconds; seconds_now() < end;) {
  }
}
