// Reduce_scatter between groups of different sizes: its counts are those of the caller's own group, and nothing behind them is read.
#define _GNU_SOURCE
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kEach = 12 };  // numbers that all ranks of a group get together

// `n` counts of which the last ends where the memory does.
static int *counts_before_the_end(int n) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *const memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
  int *const counts = (int *)(memory + page) - n;
  for (int i = 0; i < n; ++i) counts[i] = kEach / n;
  return counts;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, own, others, in[kEach], out[kEach];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm group, bridge;
  const int first = rank == 0;
  MPI_Comm_split(MPI_COMM_WORLD, first, rank, &group);
  MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, first ? 1 : 0, 3, &bridge);
  MPI_Comm_size(bridge, &own);
  MPI_Comm_remote_size(bridge, &others);
  int *const counts = counts_before_the_end(own);
  for (int i = 0; i < kEach; ++i) in[i] = 1, out[i] = 0;
  MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, bridge);
  CHECK(out[0] == others);
  MPI_Request request;
  MPI_Ireduce_scatter(in, out, counts, MPI_INT, MPI_PROD, bridge, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(out[0] == 1);
  MPI_Comm_free(&bridge);
  MPI_Comm_free(&group);
  MPI_Finalize();
  if (rank == 0) puts("reduced");
  return check_failures != 0;
}
