// A signal's handler forks in the middle of waits: the child is as the program has left the thread.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FORKS = 10, EVERY_US = 20000 };

static int slack;
static cpu_set_t processors;
static volatile int forked, changed;

static int is_as_before(void) {
  cpu_set_t now;
  CPU_ZERO(&now);
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  sched_getaffinity(0, sizeof now, &now);
  return state == PTHREAD_CANCEL_ENABLE && prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == slack && CPU_EQUAL(&now, &processors);
}

static void fork_one(int signal) {
  (void)signal;
  const pid_t child = fork();
  if (child == 0) _exit(is_as_before() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  ++forked;
  changed += status != 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  CPU_ZERO(&processors);
  sched_getaffinity(0, sizeof processors, &processors);
  int nothing = 0;
  if (rank == 0) {
    signal(SIGALRM, fork_one);
    const struct itimerval often = {{0, EVERY_US}, {0, EVERY_US}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    MPI_Recv(&nothing, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%s forked, %d children were not as before\n", forked >= FORKS / 2 ? "often" : "seldom", changed);
  } else if (rank == 1) {
    const struct timespec late = {0, FORKS * EVERY_US * 1000L};
    nanosleep(&late, NULL);
    MPI_Send(&nothing, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
