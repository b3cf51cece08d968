// A library that stops a program's clock, as tools do that let programs run at a certain date.
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *t) {
  (void)clock;
  t->tv_sec = 1600000000;
  t->tv_nsec = 0;
  return 0;
}
