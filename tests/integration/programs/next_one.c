// Which definition of a name is the next one depends on who asks. Compiled as two libraries, 1 and 2, that define the same function,
// and as the program that links them in this order, 0.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int chain(void);

#if NUMBER == 0
int main(void) { return printf("%d\n", chain()) < 0; }
#else
int chain(void) {
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "chain");
  return NUMBER + (next ? 10 * next() : 0);
}
#endif
