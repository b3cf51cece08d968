// Sends that are complete at once, for which libraries have one handle: some are completed by other threads, one of them together with
// a receive that takes longer than all the others are made and completed.
#include "check.h"

#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { kMore = 6, kQuick = 1, kSlow = 9, kAnswer = 77 };

static sem_t made_both, made_one, completed_one;
static MPI_Request both[2], one;
static int answer;

static void *complete_both(void *unused) {
  (void)unused;
  sem_wait(&made_both);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  CHECK(answer == kAnswer);
  return NULL;
}

static void *complete_each(void *unused) {
  (void)unused;
  for (int i = 0; i < kMore; ++i) {
    sem_wait(&made_one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    sem_post(&completed_one);
  }
  return NULL;
}

static void send_all(void) {
  const int value = 1;
  pthread_t threads[2];
  sem_init(&made_both, 0, 0);
  sem_init(&made_one, 0, 0);
  sem_init(&completed_one, 0, 0);
  pthread_create(&threads[0], NULL, complete_both, NULL);
  pthread_create(&threads[1], NULL, complete_each, NULL);
  MPI_Irecv(&answer, 1, MPI_INT, 1, kSlow, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(&value, 1, MPI_INT, 1, kQuick, MPI_COMM_WORLD, &both[0]);
  sem_post(&made_both);
  usleep(20000);
  for (int i = 0; i < kMore; ++i) {
    MPI_Isend(&value, 1, MPI_INT, 1, kQuick, MPI_COMM_WORLD, &one);
    sem_post(&made_one);
    sem_wait(&completed_one);
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void answer_all(void) {
  int value = 0;
  for (int i = 0; i <= kMore; ++i) MPI_Recv(&value, 1, MPI_INT, 0, kQuick, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  value = kAnswer;
  MPI_Send(&value, 1, MPI_INT, 0, kSlow, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  int level, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) send_all();
  else answer_all();
  MPI_Finalize();
  if (rank == 0 && check_failures == 0) puts("handed done");
  return check_failures != 0;
}
