// Becomes another user, to whom its record is not open, and has a second thread make calls then.
#include "check.h"

#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

static void *look(void *unused) {
  for (int i = 0, flag; i < 100; ++i) MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  return unused;
}

int main(int argc, char **argv) {
  int provided;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(setuid(65534) == 0);
  CHECK(pthread_create(&thread, NULL, look, NULL) == 0 && pthread_join(thread, NULL) == 0);
  MPI_Finalize();
  return check_failures != 0;
}
