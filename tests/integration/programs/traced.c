/* Calls whose every field the trace must have right; tests/integration/trace_test.py has the list. Four ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static char out[4096], in[4096];

static void messages(void) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request r[4];
  MPI_Status status;
  int index, count, indices[4], flag = 0;
  if (rank == 0) {
    for (int i = 1; i < size; ++i) MPI_Recv(in, 100, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(out, 10 * rank, MPI_CHAR, 0, rank, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* nothing else may match what rank 0 receives */
  MPI_Irecv(in, 8, MPI_INT, before, 5, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(out, 8, MPI_INT, next, 5, MPI_COMM_WORLD, &r[1]);
  r[2] = MPI_REQUEST_NULL; /* is no request that the trace has lost */
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
  MPI_Irecv(in, 2, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, &r[0]);
  MPI_Issend(out, 2, MPI_DOUBLE, next, 6, MPI_COMM_WORLD, &r[1]);
  MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
  MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(out, 3, MPI_INT, next, 7, in, 20, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(out, 4, MPI_INT, next, 8, before, 8, MPI_COMM_WORLD, &status);
  MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
  MPI_Send_init(out, 5, MPI_INT, next, 10, MPI_COMM_WORLD, &r[0]);
  MPI_Recv_init(in, 5, MPI_INT, before, 10, MPI_COMM_WORLD, &r[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, r);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Isend(out, 6, MPI_CHAR, next, 11, MPI_COMM_WORLD, &r[0]);
  MPI_Probe(before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(in, 6, MPI_CHAR, before, 11, MPI_COMM_WORLD, &status);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Irecv(in, 1, MPI_INT, before, 99, MPI_COMM_WORLD, &r[0]);
  MPI_Cancel(&r[0]);
  MPI_Wait(&r[0], &status);
  MPI_Isend(out, 7, MPI_CHAR, next, 12, MPI_COMM_WORLD, &r[0]);
  MPI_Message message;
  MPI_Mprobe(MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, 7, MPI_CHAR, &message, &status);
  while (!flag) MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
}

static void collectives(void) {
  int counts[4], displs[4], back[4], bdispls[4];
  for (int i = 0, at = 0; i < 4; ++i, at += 100) counts[i] = rank + i, back[i] = i + rank, displs[i] = bdispls[i] = at;
  MPI_Bcast(out, 16, MPI_INT, 1, MPI_COMM_WORLD);
  MPI_Reduce(out, in, 3, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, in, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Gather(out, 2, MPI_INT, in, 2, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatter(out, 3, MPI_CHAR, in, 3, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Allgather(out, 5, MPI_CHAR, in, 5, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Alltoall(out, 2, MPI_CHAR, in, 2, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Alltoallv(out, counts, displs, MPI_CHAR, in, back, bdispls, MPI_CHAR, MPI_COMM_WORLD);
  int blocks[4] = {1, 0, 3, 4}, at[4] = {0, 10, 20, 30};
  MPI_Gatherv(out, blocks[rank], MPI_CHAR, in, blocks, at, MPI_CHAR, 3, MPI_COMM_WORLD);
  MPI_Scatterv(out, blocks, at, MPI_CHAR, in, blocks[rank], MPI_CHAR, 3, MPI_COMM_WORLD);
  MPI_Allgatherv(out, blocks[rank], MPI_CHAR, in, blocks, at, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Reduce_scatter(out, in, blocks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Scan(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Request r;
  MPI_Ibarrier(MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Iallreduce(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void communicators(void) {
  MPI_Comm half, copy, later, inter, ring;
  MPI_Request r;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* {2, 0} and {3, 1} */
  MPI_Bcast(out, rank % 2 == 0 ? 4 : 5, MPI_CHAR, 0, half);
  MPI_Comm_dup(half, &copy);
  MPI_Bcast(out, 6, MPI_CHAR, 1, copy);
  MPI_Comm_idup(MPI_COMM_WORLD, &later, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Bcast(out, 7, MPI_CHAR, 0, later);
  MPI_Comm_free(&copy);
  MPI_Comm_dup(half, &copy);
  MPI_Bcast(out, 8, MPI_CHAR, 1, copy);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 3 : 2, 20, &inter);
  int other = 1 - (rank / 2); /* rank in the remote group of the neighbour in the world */
  MPI_Sendrecv(out, 9, MPI_CHAR, other, 21, in, 9, MPI_CHAR, other, 21, inter, MPI_STATUS_IGNORE);
  MPI_Bcast(out, 11, MPI_CHAR, rank % 2 == 0 ? (rank == 2 ? MPI_ROOT : MPI_PROC_NULL) : 0, inter);
  int dims[1] = {4}, periods[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
  MPI_Neighbor_allgather(out, 3, MPI_CHAR, in, 3, MPI_CHAR, ring);
  int self = 0;
  MPI_Bcast(&self, 1, MPI_INT, 0, MPI_COMM_SELF);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&later);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

static void memory_and_files(const char *name) {
  static int window[4];
  MPI_Win win;
  MPI_Comm half, turned; /* one window for all: Open MPI 4.1 confuses those of several communicators */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Win_create(window, sizeof window, sizeof(int), MPI_INFO_NULL, turned, &win);
  MPI_Win_fence(0, win);
  MPI_Put(out, 2, MPI_INT, 1, 0, 2, MPI_INT, win);
  MPI_Get(in, 1, MPI_INT, 0, 3, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
  MPI_Fetch_and_op(out, in, MPI_INT, 1, 2, MPI_SUM, win);
  MPI_Win_unlock(1, win);
  const int after = (rank + 1) % 4, before = (rank + 3) % 4;
  MPI_Group whole, targets, origins;
  MPI_Comm_group(MPI_COMM_WORLD, &whole);
  MPI_Group_incl(whole, 1, &after, &targets);
  MPI_Group_incl(whole, 1, &before, &origins);
  MPI_Win_post(origins, 0, win);
  MPI_Win_start(targets, 0, win);
  MPI_Put(out, 3, MPI_INT, 3 - after, 0, 3, MPI_INT, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Group_free(&whole);
  MPI_Group_free(&targets);
  MPI_Group_free(&origins);
  MPI_Win_free(&win);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_File file;
  MPI_File_open(half, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 64 * rank, out, 4, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Comm_free(&half);
  MPI_Comm_free(&turned);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 4) return 2;
  messages();
  collectives();
  communicators();
  char name[64];
  snprintf(name, sizeof name, "file-%d", rank % 2);
  memory_and_files(name);
  MPI_Finalize();
  return 0;
}
