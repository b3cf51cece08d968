// Two halves of the world talk through an intercommunicator.
#include "subject.h"

SUBJECT(intercomm, 2) {
  int rank, size, side, local_rank, local_size, remote_size, is_inter;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  side = rank < size / 2 ? 0 : 1;
  MPI_Comm local, inter, merged, copy;
  MPI_Comm_split(comm, side, rank, &local);
  MPI_Intercomm_create(local, 0, comm, side ? 0 : size / 2, 17, &inter);
  MPI_Comm_test_inter(inter, &is_inter);
  MPI_Comm_rank(inter, &local_rank);
  MPI_Comm_size(inter, &local_size);
  MPI_Comm_remote_size(inter, &remote_size);
  CHECK(is_inter && local_size + remote_size == size);

  // Point to point: to the remote group's rank 0 and back.
  if (local_rank == 0) {
    int out = 10 + side, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 3, &in, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
    CHECK(in == 11 - side);
  }
  // Each side receives the sum of the other.
  int mine = rank + 1, sum = 0, expect = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
  for (int r = 0; r < size; ++r) {
    if ((r < size / 2 ? 0 : 1) != side) expect += r + 1;
  }
  CHECK(sum == expect);
  // Rooted: side 0's rank 0 broadcasts to side 1.
  int value = side == 0 ? 99 : -1;
  const int root = side ? 0 : local_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&value, 1, MPI_INT, root, inter);
  CHECK(value == 99);
  if (side == 1 && local_rank == 0) compute(0.003);
  MPI_Barrier(inter);
  MPI_Comm_dup(inter, &copy);
  MPI_Intercomm_merge(copy, side, &merged);
  int merged_rank, merged_size;
  MPI_Comm_rank(merged, &merged_rank);
  MPI_Comm_size(merged, &merged_size);
  CHECK(merged_size == size && merged_rank == rank);
  MPI_Request request;
  MPI_Ibarrier(inter, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}
