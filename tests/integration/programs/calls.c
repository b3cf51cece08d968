// The same known numbers of calls as calls_body.h makes, in C; two ranks.
#include "check.h"

#include <mpi.h>

static int me, peer, values[1000], other[1000];

static void point_to_point(void) {
  MPI_Status status, statuses[4];
  MPI_Request requests[4];
  MPI_Message message;
  int got, index, count, flag, indices[4];
  for (int i = 1; i <= 5; ++i) {
    values[0] = me * 10 + i;
    if (me == 0) MPI_Send(values, i, MPI_INT, peer, i, MPI_COMM_WORLD);
    MPI_Recv(other, 1000, MPI_INT, peer, i, MPI_COMM_WORLD, &status);
    if (me == 1) MPI_Send(values, i, MPI_INT, peer, i, MPI_COMM_WORLD);
    CHECK(other[0] == peer * 10 + i);
  }
  if (me == 0) MPI_Ssend(values, 1, MPI_INT, peer, 6, MPI_COMM_WORLD);
  MPI_Recv(other, 1, MPI_INT, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 1) MPI_Ssend(values, 1, MPI_INT, peer, 6, MPI_COMM_WORLD);
  for (int i = 1; i <= 5; ++i) {
    MPI_Irecv(other, 1000, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(values, 1000, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[1]);
    if (i <= 3) MPI_Waitall(2, requests, statuses);
    if (i > 3) MPI_Wait(&requests[0], &status), MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  }
  MPI_Irecv(other, 1000, MPI_INT, peer, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(values, 1000, MPI_INT, peer, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitany(2, requests, &index, &status);
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  MPI_Irecv(other, 1, MPI_INT, me, 8, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(values, 1, MPI_INT, me, 8, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Waitsome(1, requests, &count, indices, statuses);
  CHECK(count == 1);
  for (int i = 0; i < 4; ++i) MPI_Test(&requests[0], &flag, &status);
  for (int i = 0; i < 2; ++i) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  MPI_Testany(2, requests, &index, &flag, &status);
  MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 6; ++i) MPI_Sendrecv(&me, 1, MPI_INT, peer, i, &got, 1, MPI_INT, peer, i, MPI_COMM_WORLD, &status);
  CHECK(got == peer);
  for (int i = 0; i < 2; ++i) MPI_Sendrecv_replace(&got, 1, MPI_INT, peer, i, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 1; i <= 2; ++i) {
    MPI_Isend(values, i, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[0]);
    MPI_Probe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &status);
    MPI_Recv(other, i, MPI_INT, status.MPI_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 3; ++i) MPI_Iprobe(peer, 999, MPI_COMM_WORLD, &flag, &status);
  MPI_Isend(values, 3, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(other, 3, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void collectives(void) {
  int sum = 0, one = 1, got = 0;
  const int counts[2] = {1, 1}, displs[2] = {0, 1};
  MPI_Request requests[3];
  for (int i = 0; i < 7; ++i) MPI_Bcast(&got, 1, MPI_INT, 1, MPI_COMM_WORLD);
  for (int i = 0; i < 9; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 5; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == 16);
  for (int i = 0; i < 2; ++i) MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Gather(&me, 1, MPI_INT, other, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatter(values, 1, MPI_INT, &got, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) MPI_Allgather(&me, 1, MPI_INT, other, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) MPI_Alltoall(values, 1, MPI_INT, other, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == me + 1);
  MPI_Allgatherv(&me, 1, MPI_INT, other, counts, displs, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoallv(values, counts, displs, MPI_INT, other, counts, displs, MPI_INT, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(values, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Ibcast(&got, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void handles(void) {
  MPI_Request requests[2];
  MPI_Send_init(values, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(other, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 1; i >= 0; --i) MPI_Start(&requests[i]);
  for (int i = 0; i < 2; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm half, copy, pair, line;
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, me, 0, &half);
    MPI_Comm_free(&half);
  }
  MPI_Group group;
  const int dims = 2, periodic = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_group(copy, &group);
  MPI_Comm_create(copy, group, &pair);
  MPI_Group_free(&group);
  MPI_Cart_create(copy, 1, &dims, &periodic, 0, &line);
  MPI_Comm_free(&line);
  MPI_Comm_free(&pair);
  MPI_Comm_free(&copy);
}

static void windows_and_files(void) {
  MPI_Win win;
  int one = 1, got = -1;
  MPI_Win_create(other, sizeof other, sizeof *other, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 3; ++i) MPI_Put(&values[i], 1, MPI_INT, peer, i, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Accumulate(&one, 1, MPI_INT, peer, 3, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Get(&got, 1, MPI_INT, peer, 2, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  CHECK(got == values[2]);
  MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win);
  MPI_Win_unlock(peer, win);
  MPI_Win_free(&win);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "calls.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < 2; ++i) MPI_File_write_at_all(file, 400 * (2 * i + me), values, 100, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_File_read_at(file, 400 * (2 + me), other, 100, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(other[2] == values[2]);
  MPI_File_close(&file);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  peer = 1 - me;
  for (int i = 0; i < 1000; ++i) values[i] = i;
  point_to_point();
  collectives();
  handles();
  windows_and_files();
  MPI_Finalize();
  if (me == 0) puts("calls done");
  return check_failures != 0;
}
