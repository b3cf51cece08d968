// Two threads of one process take turns: each waits in MPI for what the other one sends, or completes.
#include "check.h"

#include <mpi.h>
#include <pthread.h>

enum { kRounds = 100 };
#define PERIOD_S 0.003

static MPI_Comm own;
static MPI_Request outside;

static int query(void *state, MPI_Status *status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = 0;
  return MPI_SUCCESS;
}
static int release(void *state) { return (void)state, MPI_SUCCESS; }
static int cancel(void *state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

static void *answer(void *unused) {
  (void)unused;
  for (int round = 0, got = -1; round < kRounds; ++round) {
    MPI_Recv(&got, 1, MPI_INT, 0, 1, own, MPI_STATUS_IGNORE);
    CHECK(got == round);
    compute(PERIOD_S);
    MPI_Ssend(&got, 1, MPI_INT, 0, 2, own);
    MPI_Recv(&got, 1, MPI_INT, 0, 3, own, MPI_STATUS_IGNORE);
    compute(PERIOD_S);
    MPI_Grequest_complete(outside);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  pthread_t other;
  pthread_create(&other, NULL, answer, NULL);
  for (int round = 0, got = -1; round < kRounds; ++round) {
    MPI_Send(&round, 1, MPI_INT, 0, 1, own);
    MPI_Recv(&got, 1, MPI_INT, 0, 2, own, MPI_STATUS_IGNORE);
    CHECK(got == round);
    MPI_Grequest_start(query, release, cancel, NULL, &outside);
    MPI_Request waited = outside;
    MPI_Send(&round, 1, MPI_INT, 0, 3, own);
    MPI_Wait(&waited, MPI_STATUS_IGNORE);
  }
  pthread_join(other, NULL);
  MPI_Comm_free(&own);
  puts("took turns");
  MPI_Finalize();
  return check_failures != 0;
}
