// MPI_THREAD_MULTIPLE: threads talk on communicators of their own, block on each other, and end early.
#include "check.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

enum { kThreads = 4, kRounds = 60, kShortLived = 100 };

static MPI_Comm comms[kThreads];
static int rank, size;

static void *exchange(void *argument) {
  const int me = *(int *)argument;
  MPI_Comm comm = comms[me];
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  for (int round = 0; round < kRounds; ++round) {
    int out[2] = {rank * 1000 + me, round}, in[2] = {-1, -1}, sum = 0;
    MPI_Sendrecv(out, 2, MPI_INT, next, me, in, 2, MPI_INT, last, me, comm, MPI_STATUS_IGNORE);
    CHECK(in[0] == last * 1000 + me && in[1] == round);
    if (round % 20 == me) compute(0.001);
    if (round % 10 == 0) {
      MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
      CHECK(sum == me * size);
    }
    MPI_Request request[2];
    MPI_Irecv(in, 2, MPI_INT, last, 50 + me, comm, &request[0]);
    MPI_Isend(out, 2, MPI_INT, next, 50 + me, comm, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    CHECK(in[0] == last * 1000 + me && in[1] == round);
  }
  return NULL;
}

// Blocks until another thread of the same process sends: a wait that holds a lock would never end.
static void *receive_from_self(void *argument) {
  int in = -1;
  MPI_Recv(&in, 1, MPI_INT, rank, 7, comms[0], MPI_STATUS_IGNORE);
  *(int *)argument = in;
  return NULL;
}

static void *wait_for_request(void *argument) {
  MPI_Wait(argument, MPI_STATUS_IGNORE);
  return NULL;
}

// More threads over a run than Fallow has blocks for counters, each with a small stack.
static void *short_lived(void *argument) {
  int in = -1, out = *(int *)argument;
  MPI_Sendrecv(&out, 1, MPI_INT, rank, 9, &in, 1, MPI_INT, rank, 9, comms[1], MPI_STATUS_IGNORE);
  CHECK(in == out);
  return NULL;
}

static int no_cancel(void *state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }
static int no_free(void *state) { return (void)state, MPI_SUCCESS; }
static int no_query(void *state, MPI_Status *status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("no MPI_THREAD_MULTIPLE here");
    MPI_Finalize();
    return 0;
  }
  pthread_t thread[kThreads], one;
  int number[kThreads];
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < kThreads; ++i) {
    number[i] = i;
    pthread_create(&thread[i], NULL, exchange, &number[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(thread[i], NULL);

  int got = 0, value = 33;
  pthread_create(&one, NULL, receive_from_self, &got);
  compute(0.01);
  MPI_Send(&value, 1, MPI_INT, rank, 7, comms[0]);
  pthread_join(one, NULL);
  CHECK(got == 33);

  MPI_Request request;
  MPI_Grequest_start(no_query, no_free, no_cancel, NULL, &request);
  MPI_Request kept = request;
  pthread_create(&one, NULL, wait_for_request, &request);
  compute(0.01);
  MPI_Grequest_complete(kept);
  pthread_join(one, NULL);
  CHECK(request == MPI_REQUEST_NULL);

  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 * 1024);
  for (int i = 0; i < kShortLived; ++i) {
    pthread_create(&one, &small, short_lived, &i);
    pthread_join(one, NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  if (rank == 0) puts("threads done");
  return check_failures != 0;
}
