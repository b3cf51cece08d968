// The thread that called MPI first ends, and another one, whose storage the C library puts in the same place, goes on.
#include "check.h"

#include "mpi4.h"
#include <pthread.h>

enum { kCalls = 300 };

#if HAS_MPI4
static MPI_Session session;
static MPI_Comm comm;

static void communicate(void) {
  int rank, size, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < kCalls; ++i) {
    int got = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &got, 1, MPI_INT, (rank + size - 1) % size, i, comm, MPI_STATUS_IGNORE);
    CHECK(got == (rank + size - 1) % size);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size * (size - 1) / 2);
  if (rank == 0) puts("done");
}

static void* begin(void* unused) {
  (void)unused;
  MPI_Info info;
  MPI_Group group;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  CHECK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  CHECK(MPI_Comm_create_from_group(group, "fallow.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
  MPI_Group_free(&group);
  communicate();
  return NULL;
}

static void* end(void* first) {
  CHECK(pthread_equal(pthread_self(), *(pthread_t*)first));
  communicate();
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return NULL;
}
#endif

int main(void) {
#if HAS_MPI4
  pthread_t first, second;
  pthread_create(&first, NULL, begin, NULL);
  pthread_join(first, NULL);
  pthread_create(&second, NULL, end, &first);
  pthread_join(second, NULL);
#else
  puts("no sessions before MPI 4");
#endif
  return check_failures != 0;
}
