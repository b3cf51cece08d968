// A thread makes copies of the process, whose thread ends in the usual way, while other threads come, call MPI and go.
// usage: forks_beside COPIES
#define _GNU_SOURCE
#include "check.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int over;

static void look(void) {
  int flag;
  MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void *one_call(void *nothing) {
  look();
  return nothing;
}

static void *come_and_go(void *nothing) {
  while (!over) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, one_call, NULL) == 0) pthread_join(thread, NULL);
  }
  return nothing;
}

static void *copy(void *number) {
  look();
  for (int i = 0; i < *(int *)number && check_failures == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      return NULL;
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided, copies = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  pthread_t copying, calling[2];
  for (int i = 0; i < 2; ++i) pthread_create(&calling[i], NULL, come_and_go, NULL);
  pthread_create(&copying, NULL, copy, &copies);
  pthread_join(copying, NULL);
  over = 1;
  for (int i = 0; i < 2; ++i) pthread_join(calling[i], NULL);
  MPI_Finalize();
  return check_failures != 0;
}
