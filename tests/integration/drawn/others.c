// Communicators that come and go, two groups, neighbours, files, and memory that ranks share.
#include "drawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void sum_in(const struct place *p, MPI_Comm comm, int expected) {
  const int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  EXPECT(sum == expected);
}

static void doubled(struct place *p) {
  MPI_Comm comm;
  MPI_Request request;
  if (p->shape & 1) {
    MPI_Comm_dup(p->comm, &comm);
  } else {
    MPI_Comm_idup(p->comm, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  sum_in(p, comm, p->size);
  MPI_Comm_free(&comm);
}

static void divided(struct place *p) {
  MPI_Comm comm;
  const int color = p->rank % (1 + p->shape % 3);
  int size;
  MPI_Comm_split(p->comm, color == 2 ? MPI_UNDEFINED : color, 0, &comm);
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_size(comm, &size);
  sum_in(p, comm, size);
  MPI_Comm_free(&comm);
}

static void two_groups(struct place *p) {
  MPI_Comm half, across, merged;
  if (p->size < 2) return;
  const int color = p->rank % 2, there = color ? (p->size + 1) / 2 : p->size / 2;
  MPI_Comm_split(p->comm, color, 0, &half);
  MPI_Intercomm_create(half, 0, p->comm, !color, p->tag, &across);
  sum_in(p, across, there);
  MPI_Intercomm_merge(across, color, &merged);
  sum_in(p, merged, p->size);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&across);
  MPI_Comm_free(&half);
}

static void neighbours(struct place *p) {
  MPI_Comm *cart = p->kept;
  const int periodic = 1, n = p->count / 2;
  int from, to;
  if (!cart) {
    p->kept = cart = malloc(sizeof *cart);
    MPI_Cart_create(p->comm, 1, &p->size, &periodic, 0, cart);
  }
  MPI_Cart_shift(*cart, 0, 1, &from, &to);
  fill(p, p->out, p->rank, n);
  fill(p, p->out + n, p->rank, n);
  if (p->shape & 1) {
    MPI_Neighbor_alltoall(p->out, n, MPI_INT, p->in, n, MPI_INT, *cart);
  } else {
    MPI_Request request;
    int flag = 0;
    MPI_Ineighbor_allgather(p->out, n, MPI_INT, p->in, n, MPI_INT, *cart, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  if (p->size > 2) {  // of two, MPI libraries differ in which message is whose
    expect(p, p->in, from, n);
    expect(p, p->in + n, to, n);
  }
}

static void end_neighbours(struct place *p) {
  if (p->kept) MPI_Comm_free(p->kept);
  free(p->kept);
}

static void written(struct place *p) {
  char name[64];
  MPI_File file;
  const int n = p->count % 5000;
  int who = (int)getpid();
  MPI_Bcast(&who, 1, MPI_INT, 0, p->comm);
  snprintf(name, sizeof name, "drawn.%d.%d", who, p->tag);
  if (MPI_File_open(p->comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file)) {
    EXPECT(!"the file opens");
    return;
  }
  fill(p, p->out, p->rank, n);
  const MPI_Offset size = (MPI_Offset)sizeof(int) * n;
  if (p->shape & 1) MPI_File_write_at_all(file, p->rank * size, p->out, n, MPI_INT, MPI_STATUS_IGNORE);
  else MPI_File_write_at(file, p->rank * size, p->out, n, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(p->comm);
  MPI_File_sync(file);
  MPI_File_read_at(file, left_of(p, 1) * size, p->in, n, MPI_INT, MPI_STATUS_IGNORE);
  expect(p, p->in, left_of(p, 1), n);
  MPI_Barrier(p->comm);
  MPI_File_close(&file);
}

static void seen_in_memory(struct place *p) {  // waits without an MPI call that waits, for ranks of the same host
  MPI_Win win;
  volatile int *mine, *theirs;
  MPI_Aint bytes;
  int unit, rank, size;
  MPI_Comm *host = p->kept;
  if (!host) {
    p->kept = host = malloc(sizeof *host);
    MPI_Comm_split_type(p->comm, MPI_COMM_TYPE_SHARED, p->rank, MPI_INFO_NULL, host);
  }
  MPI_Comm_rank(*host, &rank);
  MPI_Comm_size(*host, &size);
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, *host, (void *)&mine, &win);
  MPI_Win_shared_query(win, (rank + size - 1) % size, &bytes, &unit, (void *)&theirs);
  *mine = -1;
  MPI_Barrier(*host);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  *mine = (int)p->key;
  MPI_Win_sync(win);
  while (*theirs != (int)p->key) {
    MPI_Win_sync(win);
    if (p->shape & 1) usleep(20);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

static void end_seen_in_memory(struct place *p) {
  if (p->kept) MPI_Comm_free(p->kept);
  free(p->kept);
}

static void alone(struct place *p) {  // to itself, and to nobody
  int got = -1;
  MPI_Request request;
  MPI_Irecv(&got, 1, MPI_INT, 0, p->tag, MPI_COMM_SELF, &request);
  MPI_Send(&p->shape, 1, MPI_INT, 0, p->tag, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(got == p->shape);
  MPI_Sendrecv(&got, 1, MPI_INT, MPI_PROC_NULL, p->tag, &got, 1, MPI_INT, MPI_PROC_NULL, p->tag, p->comm, MPI_STATUS_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  EXPECT(got == p->shape);
}

const struct operation others[] = {
    {"doubled", doubled, NULL, 0},
    {"divided", divided, NULL, 0},
    {"two_groups", two_groups, NULL, 0},
    {"neighbours", neighbours, end_neighbours, 0},
    {"written", written, NULL, 0},
    {"seen_in_memory", seen_in_memory, end_seen_in_memory, 1},
    {"alone", alone, NULL, 0},
    {NULL, NULL, NULL, 0},
};
