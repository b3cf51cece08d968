// A signal's handler jumps out of waits that have just begun, when the calls before them are added up.
//
// usage: left_adding WAITS
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kCallsBefore = 100, kSoonestNs = 1000, kLatestNs = 20000, kAgainNs = 3000000 };

static sigjmp_buf out;
static volatile sig_atomic_t waiting;

static void leave(int signal) {
  if (waiting) siglongjmp(out, signal);
}

static void signal_in(timer_t timer, long ns) {
  const struct itimerspec when = {{0, ns != 0 ? kAgainNs : 0}, {0, ns}};
  timer_settime(timer, 0, &when, NULL);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int waits = atoi(argv[1]);
  const struct sigaction action = {.sa_handler = leave};
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  for (volatile int i = 0; i < waits; ++i) {
    for (int k = 0; k < kCallsBefore; ++k) {
      int found;
      MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    }
    if (sigsetjmp(out, 1) == 0) {
      signal_in(timer, kSoonestNs + rand() % (kLatestNs - kSoonestNs));
      waiting = 1;
      MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    waiting = 0;
    signal_in(timer, 0);
  }
  printf("%d %d\n", waits * kCallsBefore, waits);
  MPI_Finalize();
  return 0;
}
