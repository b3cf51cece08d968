// One thread starts a pair of persistent requests, another one completes it, in turns, with pauses of very different lengths between.
#include "check.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { kRounds = 24, kTag = 1 };

static atomic_int started;  // and not yet completed
static MPI_Request pair[2];
static int in, out;

static void *complete(void *unused) {
  (void)unused;
  for (int i = 0; i < kRounds; ++i) {
    while (!started) sched_yield();
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    CHECK(in == i);
    started = 0;
  }
  return NULL;
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Send_init(&out, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, &pair[0]);
  MPI_Recv_init(&in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, &pair[1]);
  pthread_t other;
  pthread_create(&other, NULL, complete, NULL);
  for (int i = 0; i < kRounds; ++i) {
    out = i;
    MPI_Startall(2, pair);
    started = 1;
    while (started) sched_yield();
    usleep(i % 4 == 0 ? 60000 : 10);
  }
  pthread_join(other, NULL);
  MPI_Request_free(&pair[0]);
  MPI_Request_free(&pair[1]);
  MPI_Finalize();
  if (check_failures == 0) puts("turns done");
  return check_failures != 0;
}
