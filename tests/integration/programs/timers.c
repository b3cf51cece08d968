// The program has timers and signal handlers of its own: each signal reaches its handler, and only it.
#include "check.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>

static volatile sig_atomic_t alarms, profs, users;
static void on_alarm(int s) { (void)s, alarms++; }
static void on_prof(int s) { (void)s, profs++; }
static void on_user(int s) { (void)s, users++; }

static struct sigaction before[65], after[65];

static void read_all(struct sigaction *table) {
  for (int s = 1; s < 65; ++s) {
    memset(&table[s], 0, sizeof table[s]);
    sigaction(s, NULL, &table[s]);
  }
}

int main(int argc, char **argv) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = on_prof;
  sigaction(SIGPROF, &action, NULL);
  const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  action.sa_handler = on_user;
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  read_all(before);
  sigset_t mask_before, mask_after;
  pthread_sigmask(SIG_BLOCK, NULL, &mask_before);

  const struct itimerval every_5_ms = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
  struct itimerval seen;
  setitimer(ITIMER_REAL, &every_5_ms, NULL);
  setitimer(ITIMER_PROF, &every_5_ms, NULL);
  const double start = seconds_now();
  for (int round = 0; round < 6; ++round) {
    if (rank == round % size) compute(0.05);  // the others wait about as long, and are interrupted while they do
    int value = rank, sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 1, &sum, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  while (alarms < 3 && seconds_now() < start + 60) compute(0.005);  // nothing of the above may have had a core for long
  getitimer(ITIMER_REAL, &seen);
  CHECK(seen.it_interval.tv_usec == 5000);
  setitimer(ITIMER_REAL, &off, NULL);
  setitimer(ITIMER_PROF, &off, NULL);
  const double elapsed = seconds_now() - start;
  CHECK(alarms >= 3 && alarms <= 1.2 * elapsed / 0.005 + 5);  // those that come while others have the core are one
  CHECK(profs <= 1.2 * elapsed / 0.005 + 5);
  fprintf(stderr, "rank %d: %d alarms, %d profs in %.3f s\n", rank, (int)alarms, (int)profs, elapsed);

  // A signal sent to a rank that waits arrives while it waits, once.
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
  CHECK(users == 3);
  // Sleeps of the program's own last as long as it asked for, and no signal ends them early.
  struct timespec nap = {0, 30000000};
  const double slept_from = seconds_now();
  CHECK(nanosleep(&nap, NULL) == 0);
  CHECK(seconds_now() - slept_from >= 0.03);
  CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == slack);  // nor more exactly: short ones would become many more

  read_all(after);
  for (int s = 1; s < 65; ++s) CHECK(before[s].sa_handler == after[s].sa_handler && before[s].sa_flags == after[s].sa_flags);
  pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
  for (int s = 1; s < 65; ++s) CHECK(sigismember(&mask_before, s) == sigismember(&mask_after, s));
  sigset_t pending;
  sigpending(&pending);
  CHECK(!sigismember(&pending, SIGALRM) && !sigismember(&pending, SIGUSR2));
  MPI_Finalize();
  if (rank == 0) puts("timers done");
  return check_failures != 0;
}
