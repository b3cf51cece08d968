// Runs the subjects named on the command line, or all. A leading --scale=N multiplies the repetitions.
#include "subject.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct subject *first;
static int failures;
static uint64_t checksum;
int scale = 1;

void subject_register(struct subject *subject) {
  struct subject **at = &first;
  while (*at && strcmp((*at)->name, subject->name) < 0) at = &(*at)->next;
  subject->next = *at;
  *at = subject;
}

void check_at(int holds, const char *file, int line, const char *text) {
  if (holds) return;
  failures++;
  const char *slash = strrchr(file, '/');
  fprintf(stderr, "FAILED %s:%d: %s\n", slash ? slash + 1 : file, line, text);
}

void note(const void *data, size_t bytes) {  // FNV-1a
  const unsigned char *p = data;
  for (size_t i = 0; i < bytes; ++i) checksum = (checksum ^ p[i]) * UINT64_C(1099511628211);
}

void note_int(long long value) { note(&value, sizeof value); }

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void compute(double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);  // integers only: a subject looks at the floating-point flags
  const long long end = t.tv_sec * 1000000000LL + t.tv_nsec + (long long)(seconds * 1e9);
  do {
    clock_gettime(CLOCK_MONOTONIC, &t);
  } while (t.tv_sec * 1000000000LL + t.tv_nsec < end);
}

static int wanted(const char *name, int argc, char **argv) {
  int named = 0;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    named = 1;
    if (strcmp(argv[i], name) == 0) return 1;
  }
  return !named;
}

static void run_one(const struct subject *subject, int rank, int size) {
  if (rank == 0) {
    printf("begin %s\n", subject->name);
    fflush(stdout);
  }
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  checksum = UINT64_C(14695981039346656037);
  const double start = seconds_now();
  subject->run(comm);
  MPI_Comm_free(&comm);
  uint64_t *all = calloc((size_t)size, sizeof *all);
  MPI_Gather(&checksum, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    note(all, (size_t)size * sizeof *all);
    printf("end %s %016llx\n", subject->name, (unsigned long long)checksum);
    fflush(stdout);
    if (getenv("SUBJECT_TIMES")) fprintf(stderr, "time %s %.3f\n", subject->name, seconds_now() - start);
  }
  free(all);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size, total;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--scale=", 8) == 0) scale = atoi(argv[i] + 8);
  }
  for (struct subject *s = first; s; s = s->next) {
    if (size >= s->least_ranks && wanted(s->name, argc, argv)) run_one(s, rank, size);
  }
  MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return total != 0;
}
