// Ends the process, without MPI_Finalize, beside threads that test for messages all the time. Argument: after how many us.
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { kThreads = 8 };

static pthread_barrier_t all_there;

static void *test(void *unused) {
  int flag;
  pthread_barrier_wait(&all_there);
  for (;;) MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  return unused;
}

int main(int argc, char **argv) {
  int provided;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  pthread_barrier_init(&all_there, NULL, kThreads + 1);
  for (int i = 0; i < kThreads; ++i) pthread_create(&thread, NULL, test, NULL);
  pthread_barrier_wait(&all_there);
  usleep(argc > 1 ? (useconds_t)atoi(argv[1]) : 0);
  exit(7);
}
