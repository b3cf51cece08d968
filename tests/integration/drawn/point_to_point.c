// Messages from one rank to another, by blocking calls.
#include "drawn.h"

#include <stdlib.h>

static void ring(struct place *p) {
  const int by = 1 + p->shape % 3;
  fill(p, p->out, p->rank, p->count);
  MPI_Sendrecv(p->out, p->count, MPI_INT, right_of(p, by), p->tag, p->in, p->count, MPI_INT, left_of(p, by), p->tag, p->comm,
               MPI_STATUS_IGNORE);
  expect(p, p->in, left_of(p, by), p->count);
}

static void replaced(struct place *p) {
  fill(p, p->in, p->rank, p->count);
  MPI_Sendrecv_replace(p->in, p->count, MPI_INT, right_of(p, 1), p->tag, left_of(p, 1), p->tag, p->comm, MPI_STATUS_IGNORE);
  expect(p, p->in, left_of(p, 1), p->count);
}

static void send_to(struct place *p, int peer) {
  fill(p, p->out, p->rank, p->count);
  if (p->shape & 4) MPI_Ssend(p->out, p->count, MPI_INT, peer, p->tag, p->comm);
  else MPI_Send(p->out, p->count, MPI_INT, peer, p->tag, p->comm);
}

static void receive_from(struct place *p, int peer) {
  MPI_Status status;
  const int anyone = p->shape & 8, anything = !anyone && p->shape & 16;  // nobody else sends with this tag
  MPI_Recv(p->in, p->count, MPI_INT, anyone ? MPI_ANY_SOURCE : peer, anything ? MPI_ANY_TAG : p->tag, p->comm, &status);
  EXPECT(status.MPI_SOURCE == peer && status.MPI_TAG == p->tag);
  expect(p, p->in, peer, p->count);
}

static void there_and_back(struct place *p) {  // pairs; the last of an odd number is alone
  const int peer = p->rank ^ 1;
  if (peer >= p->size) return;
  if ((p->rank & 1) == (p->shape & 1)) {
    send_to(p, peer);
    receive_from(p, peer);
  } else {
    receive_from(p, peer);
    send_to(p, peer);
  }
}

static void chain(struct place *p) {  // each waits for all before it
  if (p->rank > 0) receive_from(p, p->rank - 1);
  if (p->shape & 1) work(5);
  if (p->rank < p->size - 1) send_to(p, p->rank + 1);
}

static void gathered_as_they_come(struct place *p) {
  const int root = root_of(p);
  if (p->rank != root) {
    fill(p, p->out, p->rank, p->count);
    MPI_Send(p->out, p->count, MPI_INT, root, p->tag + p->rank % 10, p->comm);
  } else {
    for (int i = 1; i < p->size; ++i) {
      MPI_Status status;
      int count;
      MPI_Recv(p->in, p->count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, p->comm, &status);
      MPI_Get_count(&status, MPI_INT, &count);
      EXPECT(count == p->count && status.MPI_TAG == p->tag + status.MPI_SOURCE % 10);
      expect(p, p->in, status.MPI_SOURCE, p->count);
    }
  }
  MPI_Barrier(p->comm);  // the next turn's messages are none of this one's
}

static void probed(struct place *p) {
  const int to = right_of(p, 1), from = left_of(p, 1), mine = p->count / (1 + p->rank % 3);
  MPI_Request request;
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;
  int count, flag = 0;
  fill(p, p->out, p->rank, mine);
  MPI_Isend(p->out, mine, MPI_INT, to, p->tag, p->comm, &request);
  switch (p->shape % 4) {
    case 0: MPI_Probe(from, p->tag, p->comm, &status); break;
    case 1:
      while (!flag) MPI_Iprobe(from, MPI_ANY_TAG, p->comm, &flag, &status);
      break;
    case 2: MPI_Mprobe(from, p->tag, p->comm, &message, &status); break;
    default:
      while (!flag) MPI_Improbe(MPI_ANY_SOURCE, p->tag, p->comm, &flag, &message, &status);
  }
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT(count == p->count / (1 + from % 3) && status.MPI_SOURCE == from);
  if (message == MPI_MESSAGE_NULL) MPI_Recv(p->in, count, MPI_INT, from, p->tag, p->comm, MPI_STATUS_IGNORE);
  else MPI_Mrecv(p->in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
  expect(p, p->in, from, count);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void buffered(struct place *p) {
  const int bytes = p->count * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
  void *buffer = malloc((size_t)bytes);
  MPI_Buffer_attach(buffer, bytes);
  fill(p, p->out, p->rank, p->count);
  MPI_Bsend(p->out, p->count, MPI_INT, right_of(p, 1), p->tag, p->comm);
  for (int i = 0; i < p->count; ++i) p->out[i] = -1;
  receive_from(p, left_of(p, 1));
  int size;
  MPI_Buffer_detach(&buffer, &size);
  free(buffer);
}

static void ready(struct place *p) {
  MPI_Request request;
  MPI_Irecv(p->in, p->count, MPI_INT, left_of(p, 1), p->tag, p->comm, &request);
  MPI_Barrier(p->comm);
  fill(p, p->out, p->rank, p->count);
  MPI_Rsend(p->out, p->count, MPI_INT, right_of(p, 1), p->tag, p->comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(p, p->in, left_of(p, 1), p->count);
}

enum { TASKS = 12, STOP = 1 };

static void tasks(struct place *p) {  // who is free asks for the next one
  int task = 0, answer[2] = {-1, 0};
  MPI_Status status;
  if (p->size < 2) return;
  if (p->rank == 0) {
    int sum = 0, sent = 0, stopped = 0;
    while (stopped < p->size - 1) {
      MPI_Recv(answer, 2, MPI_INT, MPI_ANY_SOURCE, p->tag, p->aside, &status);
      if (answer[0] >= 0) sum += answer[1];
      const int ends = sent == TASKS;
      task = ends ? STOP : (int)p->key + sent++;
      MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, p->tag + (ends ? STOP : 0), p->aside);
      stopped += ends;
    }
    EXPECT(sum == TASKS * (2 * (int)p->key + TASKS - 1));  // twice each
  }
  while (p->rank) {
    MPI_Send(answer, 2, MPI_INT, 0, p->tag, p->aside);
    MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, p->aside, &status);
    if (status.MPI_TAG == p->tag + STOP) break;
    work((double)(own_random() % 60));
    answer[0] = task;
    answer[1] = 2 * task;
  }
  MPI_Barrier(p->aside);  // nobody asks for one of the next turn yet
}

const struct operation point_to_point[] = {
    {"ring", ring, NULL, 0},         {"replaced", replaced, NULL, 0}, {"there_and_back", there_and_back, NULL, 0},
    {"chain", chain, NULL, 0},       {"probed", probed, NULL, 0},     {"gathered_as_they_come", gathered_as_they_come, NULL, 0},
    {"buffered", buffered, NULL, 0}, {"ready", ready, NULL, 0},       {"tasks", tasks, NULL, 0},
    {NULL, NULL, NULL, 0},
};
