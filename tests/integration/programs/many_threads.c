// Threads that call MPI: N of them at the same time ("together"), or one after the other; each makes the same number of
// calls. "killed": the last of them ends the process by a signal.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t all_there;
static int calls, together, killed;

static void *work(void *last) {
  int flag;
  for (int i = 0; i < calls; ++i) {
    MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    if (i == 0 && together) pthread_barrier_wait(&all_there);
  }
  if (killed && last != NULL) raise(SIGKILL);
  if (together) pthread_barrier_wait(&all_there);
  return NULL;
}

int main(int argc, char **argv) {
  int provided, threads = atoi(argv[1]);
  pthread_t thread[1000];
  calls = atoi(argv[2]);
  together = strcmp(argv[3], "together") == 0;
  killed = strcmp(argv[3], "killed") == 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  pthread_barrier_init(&all_there, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    pthread_create(&thread[i], NULL, work, i == threads - 1 ? &thread[i] : NULL);
    if (!together) pthread_join(thread[i], NULL);
  }
  for (int i = 0; together && i < threads; ++i) pthread_join(thread[i], NULL);
  MPI_Finalize();
  return 0;
}
