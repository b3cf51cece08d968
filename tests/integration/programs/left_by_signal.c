// A signal's handler jumps out of waits: from the next call on, the thread is as the program has left it.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/time.h>

enum { kWaits = 10 };

static sigjmp_buf out;

static void leave(int signal) { siglongjmp(out, signal); }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  signal(SIGALRM, leave);
  const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  cpu_set_t processors;
  CPU_ZERO(&processors);
  sched_getaffinity(0, sizeof processors, &processors);
  volatile int changed = 0;
  for (volatile int i = 0; i < kWaits; ++i) {
    if (sigsetjmp(out, 1) == 0) {
      const struct itimerval soon = {{0, 0}, {0, 20000}};
      int nothing;
      setitimer(ITIMER_REAL, &soon, NULL);
      MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 1 + i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    int found, state;
    MPI_Iprobe(MPI_ANY_SOURCE, kWaits + 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    cpu_set_t now;
    CPU_ZERO(&now);
    sched_getaffinity(0, sizeof now, &now);
    if (state != PTHREAD_CANCEL_ENABLE || prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) != slack || !CPU_EQUAL(&now, &processors)) ++changed;
  }
  printf("left %d waits, after %d of them the thread was not as before\n", kWaits, changed);
  fflush(stdout);
  _Exit(0);  // the library still has the receives that were left
}
