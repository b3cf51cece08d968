// drawn SEED [PHASES [THREADS]]: a loop of one to four operations in each phase. With DRAWN_TIMES set, tells what each phase took.
#include "drawn.h"
#include "../programs/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMMS = 6, PLACES = 4, LATE_KINDS = 6 };
#ifdef OMPI_MAJOR_VERSION
enum { WINDOWED = 3 };  // Open MPI 4.1 names the memory of windows alike where ranks have split: those of all ranks only
#else
enum { WINDOWED = COMMS };
#endif

struct late {  // who computes before an operation, and for how long
  int kind, who;
  double us;
};

static uint64_t shared_state, own_state;
static int failures, world_rank;

static uint32_t next(uint64_t *state) {  // splitmix64
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static int draw(int below) { return (int)(next(&shared_state) % (uint32_t)below); }
uint32_t own_random(void) { return next(&own_state); }

int value_of(const struct place *p, int rank, int index) {
  return (int)((p->key + (uint32_t)rank * 7919u + (uint32_t)index * 31u) % 1000003u);
}

void fill(const struct place *p, int *data, int rank, int count) {
  for (int i = 0; i < count; ++i) data[i] = value_of(p, rank, i);
}

void expect(const struct place *p, const int *data, int rank, int count) {
  for (int i = 0; i < count; ++i)
    if (data[i] != value_of(p, rank, i)) {
      expect_that(0, p, "what came is what was sent");
      return;
    }
}

static const char *running = "";

void expect_that(int holds, const struct place *p, const char *text) {
  if (holds) return;
  __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
  fprintf(stderr, "FAILED %s, rank %d of %d, %d ints, shape %d: %s\n", running, p->rank, p->size, p->count, p->shape, text);
}

static int sum_of(const struct place *p, int from, int to, int index) {
  int sum = 0;
  for (int r = from; r < to; ++r) sum += value_of(p, r, index);
  return sum;
}

void expect_sums(const struct place *p, const int *data, int from, int to, int offset, int count) {
  for (int i = 0; i < count; ++i)
    if (data[i] != sum_of(p, from, to, offset + i)) {
      expect_that(0, p, "sums are right");
      return;
    }
}

void work(double us) { compute(1e-6 * us); }

static void be_late(const struct late *late, int turn, int size) {
  double us = 0;
  switch (late->kind) {
    case 1: us = late->us; break;                                           // all
    case 2: us = world_rank == late->who ? late->us : 0; break;             // always the same
    case 3: us = world_rank == (late->who + turn) % size ? late->us : 0; break;  // one after the other
    case 4: us = late->us * (double)(own_random() % 1000) / 1000; break;    // by chance
    case 5: us = turn % 7 == 6 && world_rank != late->who ? 3 * late->us : late->us / 8; break;  // seldom and long
    default: return;
  }
  if (late->who % 4 == 3 && us > 50) nanosleep(&(struct timespec){0, (long)(1e3 * us)}, NULL);  // as who reads a file
  else if (us > 0) work(us);
}

static const struct operation *draw_operation(void) {
  static const struct operation *const lists[] = {point_to_point, completions, collectives, nonblocking, one_sided, others};
  const struct operation *list = lists[draw(6)];
  int n = 0;
  while (list[n].name) n++;
  return &list[draw(n)];
}

static int draw_count(int size) {
  static const int counts[] = {0, 1, 2, 100, 1000, 1030, 5000, 20000, 70000, 500000};
  const int count = counts[draw(draw(3) ? 6 : 10)];
  return count * size > 1500000 ? 1500000 / size : count;
}

static MPI_Comm comms[COMMS], asides[COMMS];

static void make_communicators(int size) {
  const int colors[COMMS] = {0, 0, 0, world_rank % 2, world_rank ? 0 : MPI_UNDEFINED, world_rank};
  for (int i = 0; i < COMMS; ++i) {
    if (i == 0) comms[i] = MPI_COMM_WORLD;
    else MPI_Comm_split(MPI_COMM_WORLD, colors[i], i == 2 ? size - world_rank : world_rank, &comms[i]);
    asides[i] = MPI_COMM_NULL;
    if (comms[i] != MPI_COMM_NULL) MPI_Comm_dup(comms[i], &asides[i]);
  }
}

static void free_communicators(void) {
  for (int i = 0; i < COMMS; ++i) {
    if (comms[i] == MPI_COMM_NULL) continue;
    MPI_Comm_free(&asides[i]);
    if (i) MPI_Comm_free(&comms[i]);
  }
}

struct step {  // of a loop
  const struct operation *op;
  struct late late;
  int which;  // communicator
  struct place place;
};

static void draw_step(struct step *s, int number, int size) {
  static const double us_kinds[] = {2, 20, 80, 300, 3000};
  memset(s, 0, sizeof *s);
  s->op = draw_operation();
  s->which = draw(draw(2) ? 1 : COMMS);
  if (s->op->makes_windows) s->which %= WINDOWED;
  struct place *p = &s->place;
  p->comm = comms[s->which];
  p->aside = asides[s->which];
  p->count = draw_count(size);
  p->shape = draw(1 << 16);
  p->tag = 10 * number;
  s->late = (struct late){draw(LATE_KINDS), draw(size), us_kinds[draw(5)]};
  if (p->comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(p->comm, &p->rank);
  MPI_Comm_size(p->comm, &p->size);
  p->out = calloc((size_t)p->count * (size_t)p->size + 1, sizeof *p->out);
  p->in = calloc((size_t)p->count * (size_t)p->size + 1, sizeof *p->in);
}

static void take_turn(struct step *s, int turn, int size, uint32_t key) {
  be_late(&s->late, turn, size);
  if (s->place.comm == MPI_COMM_NULL) return;
  running = s->op->name;
  s->place.key = key + (uint32_t)turn * 17u;
  s->op->run(&s->place);
}

static void end_step(struct step *s) {
  if (s->place.comm == MPI_COMM_NULL) return;
  if (s->op->end) s->op->end(&s->place);
  free(s->place.out);
  free(s->place.in);
}

static void tell_time(int number, double seconds, int turns, const struct step *steps, int n) {
  fprintf(stderr, "phase %d %.6f %d", number, seconds, turns);
  for (const struct step *s = steps; s < steps + n; ++s)
    fprintf(stderr, " %s(comm %d, %d ints, shape %d, late %d by %g)", s->op->name, s->which, s->place.count, s->place.shape,
            s->late.kind, s->late.us);
  fprintf(stderr, "\n");
}

static void phase(int number, int size, int tell) {
  struct step steps[PLACES];
  static const int turn_kinds[] = {1, 4, 20, 60};
  const int n = 1 + draw(PLACES);
  int turns = turn_kinds[draw(4)];
  for (int i = 0; i < n; ++i) {
    draw_step(&steps[i], i, size);
    if ((steps[i].late.us > 1000 || steps[i].place.count > 20000) && turns > 8) turns = 8;
  }
  const uint32_t key = (uint32_t)draw(1000);
  const double start = seconds_now();
  for (int turn = 0; turn < turns; ++turn)
    for (int i = 0; i < n; ++i) take_turn(&steps[i], turn, size, key);
  const double seconds = seconds_now() - start;
  for (int i = 0; i < n; ++i) end_step(&steps[i]);
  double most = seconds;
  MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);  // the next phase uses the tags of this one
  if (tell && world_rank == 0) tell_time(number, most, turns, steps, n);
}

static void *chat(void *argument) {  // a thread of its own, with a communicator of its own
  MPI_Comm comm = *(MPI_Comm *)argument;
  int rank, size, got = 0, stop = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; !stop; ++i) {
    MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
    if (got != i) __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    const int last = rank == 0 && i == 40;
    MPI_Allreduce(&last, &stop, 1, MPI_INT, MPI_MAX, comm);
    nanosleep(&(struct timespec){0, 200000}, NULL);
  }
  return NULL;
}

int main(int argc, char **argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int phases = argc > 2 ? atoi(argv[2]) : 12, threads = argc > 3 && atoi(argv[3]);
  int provided, size, all = 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  shared_state = seed;
  own_state = seed * 1000 + (uint64_t)world_rank;
  make_communicators(size);
  pthread_t thread;
  MPI_Comm beside;
  if (threads) {
    MPI_Comm_dup(MPI_COMM_WORLD, &beside);
    pthread_create(&thread, NULL, chat, &beside);
  }
  for (int i = 0; i < phases; ++i) phase(i, size, getenv("DRAWN_TIMES") != NULL);
  if (threads) {
    pthread_join(thread, NULL);
    MPI_Comm_free(&beside);
  }
  free_communicators();
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) printf("seed %llu: %d failures\n", (unsigned long long)seed, all);
  MPI_Finalize();
  return all != 0;
}
