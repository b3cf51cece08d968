// A signal's handler jumps out of waits that have just begun, when the calls before them are added up. It does so from
// Fallow's code only: the MPI library is at a place then that it can be left from, as elsewhere it might not be.
//
// usage: left_adding WAITS
#define _GNU_SOURCE
#include <link.h>
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { kCallsBefore = 100, kSoonestNs = 1000, kLatestNs = 20000 };

static sigjmp_buf out;
static volatile sig_atomic_t waiting;
static timer_t timer;
static unsigned seed = 1;
static uintptr_t first, last;  // of Fallow's code

static int find_fallow(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (strstr(info->dlpi_name, "libfallow-rt") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    last = first + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

static void signal_in(long ns) {
  const struct itimerspec when = {{0, 0}, {0, ns}};
  timer_settime(timer, 0, &when, NULL);
}

// Where it is nowhere to be left from, another time is tried, soon and never after the same pause: a sleep that a signal ends is
// followed by a few instructions of Fallow's.
static void leave(int signal, siginfo_t *info, void *context) {
  (void)info;
  const uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  if (waiting && first <= at && at < last) siglongjmp(out, signal);
  if (waiting) signal_in(kSoonestNs + rand_r(&seed) % (kLatestNs - kSoonestNs));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int waits = atoi(argv[1]);
  if (dl_iterate_phdr(find_fallow, NULL) == 0) return 3;
  const struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  for (volatile int i = 0; i < waits; ++i) {
    for (int k = 0; k < kCallsBefore; ++k) {
      int found;
      MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    }
    if (sigsetjmp(out, 1) == 0) {
      waiting = 1;
      signal_in(kSoonestNs + rand_r(&seed) % (kLatestNs - kSoonestNs));
      MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    waiting = 0;
    signal_in(0);
  }
  printf("%d %d\n", waits * kCallsBefore, waits);
  MPI_Finalize();
  return 0;
}
