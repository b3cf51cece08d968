/* To be preloaded: says that this process may run on sixteen processors, however many there are. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

enum { kProcessors = 16 };

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t* set) {
  (void)pid;
  memset(set, 0, size);
  for (int i = 0; i < kProcessors; ++i) CPU_SET_S(i, size, set);
  return 0;
}
