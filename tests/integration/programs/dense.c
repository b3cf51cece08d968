// Many calls and no waits, with what a helper thread of a tool could get in the way of: forks, signals, threads, the lowest
// free descriptor, files that are closed behind its back.
#include "check.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRounds = 8, kCalls = 10000 };

static volatile sig_atomic_t alarms, strange;
static void on_alarm(int s) {
  (void)s;
  alarms++;
  char name[16] = "";  // of the thread: the program's, or one that the MPI library has
  prctl(PR_GET_NAME, name, 0, 0, 0);
  if (strncmp(name, "fallow", 6) == 0) strange++;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, flag;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  struct sigaction action = {0};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every_2_ms = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every_2_ms, NULL);
  const int lowest = open("/dev/null", O_RDONLY);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCalls; ++i) {
      MPI_Iprobe(rank, i % 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      if (i % 100 == 0) {  // a file that is closed and opened again gets the number that it had
        close(lowest);
        CHECK(open("/dev/null", O_RDONLY) == lowest);
      }
    }
    const pid_t child = fork();
    if (child == 0) {
      char *memory = malloc(100000);
      _exit(memory != NULL ? 7 : 8);
    }
    int status = 0;
    while (waitpid(child, &status, 0) != child) {
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  setitimer(ITIMER_REAL, &off, NULL);
  CHECK(alarms > 0 && strange == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) puts("dense");
  return check_failures != 0;
}
