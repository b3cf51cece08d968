// A session that outlives MPI_Finalize: calls on its communicators count, after that too.
#include "check.h"

#include "mpi4.h"

#if HAS_MPI4
static void sum_up(MPI_Session session, const char* tag, int late) {
  MPI_Group group;
  MPI_Comm comm;
  int rank, size, sum = 0;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  CHECK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (rank == late) compute(0.005);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size * (size - 1) / 2);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
}
#endif

int main(int argc, char** argv) {
#if HAS_MPI4
  MPI_Session session;
  int rank;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  sum_up(session, "fallow.before", 0);
  MPI_Finalize();
  sum_up(session, "fallow.after", 1);
  MPI_Session_finalize(&session);
  if (rank == 0) puts("done");
#else
  puts("no sessions before MPI 4");
  (void)argc, (void)argv;
#endif
  return check_failures != 0;
}
