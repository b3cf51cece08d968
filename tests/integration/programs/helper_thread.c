// MPI_THREAD_MULTIPLE: one thread waits for other ranks while another one calls MPI now and then.
#include "check.h"

#include <mpi.h>
#include <pthread.h>

enum { kRounds = 40 };

static MPI_Comm own, others;
static int rank, size;

static void *help(void *argument) {
  int *const sum = argument;
  for (int round = 0; round < kRounds; ++round) {
    int out = round, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, rank, 1, &in, 1, MPI_INT, rank, 1, own, MPI_STATUS_IGNORE);
    CHECK(in == round);
    *sum += in;
    compute(0.002);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided, sum = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("no MPI_THREAD_MULTIPLE here");
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_dup(MPI_COMM_WORLD, &others);
  pthread_t helper;
  pthread_create(&helper, NULL, help, &sum);
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  for (int round = 0; round < kRounds; ++round) {
    int in[2] = {-1, -1}, out[2] = {rank, round};
    MPI_Status status;
    MPI_Request request[2];
    if (rank == round % size) compute(0.003);  // the others wait for this one
    MPI_Irecv(in, 2, MPI_INT, last, round, others, &request[0]);
    MPI_Isend(out, 2, MPI_INT, next, round, others, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    CHECK(in[0] == last && in[1] == round);
    if (rank == round % size) {
      compute(0.003);
      for (int r = 0; r < size; ++r) {
        if (r != rank) MPI_Ssend(out, 2, MPI_INT, r, kRounds, others);
      }
    } else {
      MPI_Recv(in, 2, MPI_INT, MPI_ANY_SOURCE, kRounds, others, &status);
      CHECK(in[0] == round % size && in[1] == round && status.MPI_SOURCE == in[0]);
    }
  }
  pthread_join(helper, NULL);
  printf("%d: sum %d\n", rank, sum);
  MPI_Finalize();
  return 0;
}
