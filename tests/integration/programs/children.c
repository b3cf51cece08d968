// Programs started from a rank see the environment that they would see without Fallow; forked copies of a
// rank may go on computing and end as they like.
#define _GNU_SOURCE
#include "check.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern int fallow_active(void) __attribute__((weak));  // as <fallow/fallow.h> has it

// Prints what of the environment could be Fallow's, one line a variable.
static char *const show[] = {"/bin/sh", "-c", "env | grep -E '^(LD_|FALLOW|OMPI_MCA_(orte_launch|mca_base_env)|PRTE_MCA_)' | sort | sed \"s/^/$WAY /\"; echo $WAY ended", NULL};

static int result_of(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void start_programs(void) {
  setenv("WAY", "system", 1);
  CHECK(system(show[2]) == 0);
  setenv("WAY", "popen", 1);
  FILE *pipe = popen(show[2], "r");
  char line[4096];
  while (fgets(line, sizeof line, pipe)) fputs(line, stdout);
  CHECK(pclose(pipe) == 0);
  fflush(stdout);
  setenv("WAY", "execv", 1);
  pid_t child = fork();
  if (child == 0) {
    execv(show[0], show);
    _exit(127);
  }
  CHECK(result_of(child) == 0);
  setenv("WAY", "posix_spawn", 1);
  CHECK(posix_spawn(&child, show[0], NULL, NULL, show, environ) == 0);
  CHECK(result_of(child) == 0);
  // The environment that the program itself sees.
  for (char **e = environ; *e; ++e) {
    if (strncmp(*e, "LD_", 3) == 0 || strncmp(*e, "FALLOW", 6) == 0) printf("own %s\n", *e);
  }
  printf("LD_PRELOAD here: %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none");
  fflush(stdout);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) start_programs();
  MPI_Barrier(MPI_COMM_WORLD);
  const int way = argc > 1 ? atoi(argv[1]) : 0;
  pid_t child = way == 4 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();  // with no handlers of fork() called
  if (child == 0) {  // a copy of the rank that makes no MPI call
    compute(0.02);
    if (way != 4 && fallow_active && fallow_active()) _exit(22);
    if (way == 0) _exit(21);
    if (way == 1 || way == 4) exit(21);  // exit handlers run in the copy too
    if (way == 3) pthread_exit(NULL);  // and what is called at a thread's end
    char *const again[] = {"/bin/sh", "-c", "exit 21", NULL};
    execv(again[0], again);
  }
  int sum = 0;
  for (int i = 0; i < 20; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(result_of(child) == (way == 3 ? 0 : 21));
  MPI_Barrier(MPI_COMM_WORLD);
  int token = rank;
  MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return check_failures != 0;
}
