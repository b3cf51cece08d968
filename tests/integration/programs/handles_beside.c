// Threads get messages and requests, whose handles libraries give to the next one as soon as they can.
#include "check.h"

#include <mpi.h>
#include <pthread.h>

enum { kThreads = 3, kRounds = 30 };

static int rank;

static void exchange(int round, int tag) {
  if (rank == 1) {
    for (int i = 0; i < 3; ++i) MPI_Send(&round, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    return;
  }
  int got = -1;
  MPI_Message message;
  MPI_Mprobe(1, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  CHECK(got == round);
  MPI_Request request;
  MPI_Irecv(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Recv_init(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(got == round);
  MPI_Request_free(&request);
}

static void *work(void *own) {
  for (int round = 0; round < kRounds; ++round) exchange(round, (int)(size_t)own);
  return NULL;
}

int main(int argc, char **argv) {
  int provided;
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t t = 0; t < kThreads; ++t) pthread_create(&threads[t], NULL, work, (void *)t);
  for (int t = 0; t < kThreads; ++t) pthread_join(threads[t], NULL);
  MPI_Finalize();
  if (rank == 0) puts("received");
  return check_failures != 0;
}
