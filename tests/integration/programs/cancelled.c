// A thread that is told to end calls MPI before it comes to a point of cancellation: every call is carried out.
#include "check.h"

#include <mpi.h>
#include <pthread.h>

enum { kCalls = 20000 };  // enough that a trace of them is packed and written meanwhile

static int calls = 0;

static void *work(void *unused) {
  (void)unused;
  pthread_cancel(pthread_self());
  for (; calls < kCalls; ++calls) {
    MPI_Request none = MPI_REQUEST_NULL;
    int done = 0;
    MPI_Test(&none, &done, MPI_STATUS_IGNORE);
    CHECK(done);
  }
  pthread_testcancel();
  return NULL;
}

int main(int argc, char **argv) {
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pthread_t worker;
  void *ended = NULL;
  pthread_create(&worker, NULL, work, NULL);
  pthread_join(worker, &ended);
  CHECK(ended == PTHREAD_CANCELED && calls == kCalls);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("cancelled after %d calls\n", calls);
  MPI_Finalize();
  return check_failures != 0;
}
