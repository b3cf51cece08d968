/* Random updates of a table that is spread over the ranks, as HPC Challenge's RandomAccess makes them: a test for messages after
 * each update, and a message when there are enough updates for a rank. Checks that all arrived; prints the seconds taken, the
 * tests that one rank made, how often it lost its core, and the tests of all.
 *
 * usage: updates UPDATES */
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BUCKET = 1024, RECEIVES = 16, TABLE = 1 << 16 };

static int size, rank;
static uint64_t table[TABLE];
static uint64_t in[RECEIVES][BUCKET];
static MPI_Request receives[RECEIVES];
static uint64_t (*bucket)[BUCKET], (*out)[BUCKET]; /* by rank */
static int *fill, *sent;                            /* updates in the bucket; messages before the last */
static MPI_Request* sends;
static long tests, got, expected;
static int ended; /* ranks whose last message is here; its tag says how many there were */

static void receive(int i) {
  MPI_Irecv(in[i], BUCKET, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receives[i]);
}

/* True if a message was here. */
static int serve(void) {
  int i, found, count;
  MPI_Status status;
  MPI_Testany(RECEIVES, receives, &i, &found, &status);
  ++tests;
  if (!found) return 0;
  MPI_Get_count(&status, MPI_UINT64_T, &count);
  for (int k = 0; k < count; ++k) table[in[i][k] % TABLE] += in[i][k];
  ++got;
  if (status.MPI_TAG > 0) {
    ++ended;
    expected += status.MPI_TAG;
  }
  receive(i);
  return 1;
}

/* False if the last message to this rank is still under way. */
static int flush(int to, int tag) {
  int gone;
  MPI_Test(&sends[to], &gone, MPI_STATUS_IGNORE);
  if (!gone) return 0;
  memcpy(out[to], bucket[to], sizeof out[to]);
  MPI_Isend(out[to], fill[to], MPI_UINT64_T, to, tag, MPI_COMM_WORLD, &sends[to]);
  fill[to] = 0;
  ++sent[to];
  return 1;
}

static uint64_t next(uint64_t x) { /* Marsaglia, Xorshift RNGs, 2003 */
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}

static uint64_t work(long updates) {
  uint64_t x = 88172645463325252u + (uint64_t)rank, sum = 0;
  for (long done = 0; done < updates;) {
    if (serve()) continue;
    const uint64_t y = next(x);
    const int to = (int)((y >> 32) % (uint64_t)size);
    if (fill[to] == BUCKET && !flush(to, 0)) continue;
    bucket[to][fill[to]++] = x = y;
    sum += y;
    ++done;
  }
  for (int to = 0; to < size; ++to) {
    while (!flush(to, sent[to] + 1)) serve();
  }
  while (ended < size || got < expected) serve();
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t ranks = (size_t)size;
  bucket = malloc(ranks * sizeof *bucket);
  out = malloc(ranks * sizeof *out);
  fill = calloc(ranks, sizeof *fill);
  sent = calloc(ranks, sizeof *sent);
  sends = malloc(ranks * sizeof *sends);
  for (int i = 0; i < size; ++i) sends[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < RECEIVES; ++i) receive(i);
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  uint64_t made = work(argc > 1 ? atol(argv[1]) : 1000000), there = 0, sums[2];
  getrusage(RUSAGE_SELF, &after);
  MPI_Waitall(size, sends, MPI_STATUSES_IGNORE);
  const double seconds = MPI_Wtime() - began;
  for (int i = 0; i < RECEIVES; ++i) {
    MPI_Cancel(&receives[i]);
    MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
  }
  long all_tests = 0;
  MPI_Reduce(&tests, &all_tests, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < TABLE; ++i) there += table[i];
  MPI_Allreduce((uint64_t[]){made, there}, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    const long lost = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw;
    printf("seconds %.6f\ntests %ld\nlost %ld\nall_tests %ld\n", seconds, tests, lost, all_tests);
    if (sums[0] != sums[1]) printf("wrong: %" PRIu64 " made, %" PRIu64 " there\n", sums[0], sums[1]);
  }
  MPI_Finalize();
  return sums[0] == sums[1] ? 0 : 1;
}
