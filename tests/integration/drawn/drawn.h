// Programs that are drawn at random from legal MPI operations: what all ranks draw alike says which come, in loops and between works.
#pragma once

#include <mpi.h>
#include <stdint.h>

// What an operation works with. Places of a loop keep theirs, as call sites and buffers of programs do.
struct place {
  MPI_Comm comm;   // this rank is one of it
  MPI_Comm aside;  // the same ranks, for what is under way while others communicate
  int rank, size;
  int count;       // ints of a message
  int shape;       // drawn: what an operation makes of it is up to it
  int tag;         // no other place of the loop has it
  uint32_t key;    // of this turn of the loop: what is in messages depends on it
  int *out, *in;   // size * count ints each
  void *kept;      // from turn to turn, freed by `end`
};

struct operation {
  const char *name;
  void (*run)(struct place *);
  void (*end)(struct place *);  // after the last turn; may be null
  int makes_windows;
};

// Each file of operations ends with such a list.
extern const struct operation point_to_point[], completions[], collectives[], nonblocking[], one_sided[], others[];

int value_of(const struct place *p, int rank, int index);             // what `rank` sends at `index`
void fill(const struct place *p, int *data, int rank, int count);     // as `rank` sends it
void expect(const struct place *p, const int *data, int rank, int count);
// `data` holds the sums of what ranks `from` to `to` - 1 send, from index `offset` on.
void expect_sums(const struct place *p, const int *data, int from, int to, int offset, int count);
void expect_that(int holds, const struct place *p, const char *text);  // a failure is told, counted and becomes the exit code
uint32_t own_random(void);                                            // differs between ranks
void work(double us);                                                 // computes

static inline int left_of(const struct place *p, int by) { return ((p->rank - by) % p->size + p->size) % p->size; }
static inline int right_of(const struct place *p, int by) { return (p->rank + by) % p->size; }
static inline int root_of(const struct place *p) { return p->shape % p->size; }
static inline int share_of(const struct place *p) { return p->count / p->size; }  // of each rank where all ranks' make up a message
#define EXPECT(condition) expect_that(!!(condition), p, #condition)
