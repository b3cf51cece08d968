/* Each thread probes on a communicator of its own with some work in between, and sends itself a message now and then.
 *
 * usage: threads_test PROBES */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { THREADS = 4, EVERY = 5000 };

static MPI_Comm comms[THREADS];
static unsigned work[THREADS][64];
static long probes;

static void *probe(void *number) {
  const long me = (long)number;
  volatile unsigned *own = work[me];
  for (long i = 1; i <= probes; ++i) {
    int found, sent = (int)i, got = 0;
    CHECK(MPI_Iprobe(0, (int)me, comms[me], &found, MPI_STATUS_IGNORE) == MPI_SUCCESS && !found);
    for (int k = 0; k < 200; ++k) *own = *own * 1664525u + 1013904223u;
    if (i % EVERY != 0) continue;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, 0, 99, comms[me], &request);
    MPI_Send(&sent, 1, MPI_INT, 0, 99, comms[me]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == sent);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int level;
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  probes = atol(argv[1]);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
  for (long i = 1; i < THREADS; ++i) pthread_create(&threads[i], NULL, probe, (void *)i);
  probe(NULL);
  for (int i = 1; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return check_failures != 0;
}
