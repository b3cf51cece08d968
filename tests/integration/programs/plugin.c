// A library for plugins.c; PART is the name of its part, LATER puts its calls elsewhere in the library.
#include <mpi.h>

int meet(void);

static __attribute__((noinline)) int PART(void) {
#ifdef LATER
  __asm__ volatile(".skip 64, 0x90");
#endif
  const int result = MPI_Barrier(MPI_COMM_WORLD);
  return result == MPI_SUCCESS ? MPI_Barrier(MPI_COMM_WORLD) : result;
}

int meet(void) { return PART(); }
