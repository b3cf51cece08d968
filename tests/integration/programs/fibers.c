// Threads of the program's own making take turns on stacks of their own. One of them leaves a call for ever by its error
// handler, and its stack is given back; the others, whose stacks lie below it, go on.
#include "check.h"

#include <mpi.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { kFibers = 4, kRounds = 50, kLeaves = 20, kStack = 256 * 1024 };

static ucontext_t turns, fibers[kFibers];
static int rank, size, running, left;

static void leaving(MPI_Comm *comm, int *error, ...) {
  (void)comm;
  (void)error;
  left = 1;
  setcontext(&turns);
}

static void give_way(void) { swapcontext(&fibers[running], &turns); }

static void exchange(int fiber) {
  int mine = 100 * rank + fiber, got = -1, done = 0;
  MPI_Request requests[2];
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, fiber, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&mine, 1, MPI_INT, (rank + 1) % size, fiber, MPI_COMM_WORLD, &requests[1]);
  for (;;) {
    MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    if (done) break;
    give_way();
  }
  CHECK(got == 100 * ((rank + size - 1) % size) + fiber);
}

static void run(int fiber) {
  for (int i = 0; i < kRounds; ++i) {
    exchange(fiber);
    if (fiber == 0 && i == kLeaves) MPI_Ssend(&i, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD);
    give_way();
  }
  running = -1;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(leaving, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  char *const stacks = mmap(NULL, kFibers * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < kFibers; ++i) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stacks + (kFibers - 1 - i) * kStack;
    fibers[i].uc_stack.ss_size = kStack;
    fibers[i].uc_link = &turns;
    makecontext(&fibers[i], (void (*)(void))run, 1, i);
  }
  static int over[kFibers], alive = kFibers, next = -1;
  while (alive > 0) {
    next = (next + 1) % kFibers;
    if (over[next]) continue;
    running = next;
    swapcontext(&turns, &fibers[next]);
    if (!left && running >= 0) continue;
    if (left) munmap(fibers[next].uc_stack.ss_sp, kStack);
    left = 0;
    over[next] = 1;
    --alive;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  if (rank == 0) puts("fibers done");
  return check_failures != 0;
}
