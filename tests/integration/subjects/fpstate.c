// Rounding mode, exception flags and flush-to-zero bits are the program's own.
#include "subject.h"

#include <fenv.h>
#include <time.h>
#include <xmmintrin.h>

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void talk(MPI_Comm comm, int rank, int size) {
  int value = rank, got = 0;
  MPI_Status status;
  if (rank == 0) compute(0.003);
  MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &status);
  MPI_Barrier(comm);
  MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, comm);
  MPI_Request request;
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 1, comm, &request);
  if (rank == size - 1) compute(0.003);
  MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 1, comm);
  MPI_Wait(&request, &status);
}

/// Rank 0 tests in vain while the others sleep for what it sends.
static void test_in_vain(MPI_Comm comm, int rank, int size) {
  int value = rank, flag = 0;
  MPI_Status status;
  if (rank == 0) {
    const long long until = now_ns() + 10000000;
    while (now_ns() < until) MPI_Iprobe(MPI_ANY_SOURCE, 7, comm, &flag, &status);
    for (int r = 1; r < size; ++r) MPI_Send(&value, 1, MPI_INT, r, 2, comm);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 2, comm, &status);
  }
}

SUBJECT(fpstate, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const unsigned before = _mm_getcsr();
  const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (int i = 0; i < 4; ++i) {
    feclearexcept(FE_ALL_EXCEPT);
    fesetround(modes[i]);
    talk(comm, rank, size);
    CHECK(fegetround() == modes[i]);
    note_int(fetestexcept(FE_ALL_EXCEPT));  // an MPI may raise some of its own; Fallow may add none
  }
  fesetround(FE_TONEAREST);
  feclearexcept(FE_ALL_EXCEPT);
  test_in_vain(comm, rank, size);
  note_int(fetestexcept(FE_ALL_EXCEPT));
  feraiseexcept(FE_DIVBYZERO | FE_UNDERFLOW);
  talk(comm, rank, size);
  CHECK((fetestexcept(FE_ALL_EXCEPT) & (FE_DIVBYZERO | FE_UNDERFLOW | FE_INVALID)) == (FE_DIVBYZERO | FE_UNDERFLOW));
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
  talk(comm, rank, size);
  CHECK((_mm_getcsr() & 0xffc0) == ((before | 0x8040) & 0xffc0));
  _mm_setcsr(before);
}
