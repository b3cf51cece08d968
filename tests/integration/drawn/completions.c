// Requests, and all ways to complete them.
#include "drawn.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4, WAYS = 9 };

static int neighbours(const struct place *p) { return 1 + p->shape % MOST; }

// The messages of a place are split evenly between its neighbours, so that one buffer serves.
static int part(const struct place *p) { return p->count / neighbours(p); }

static void check_part(const struct place *p, int by) { expect(p, p->in + (by - 1) * part(p), left_of(p, by), part(p)); }

static void one_by_one(const struct place *p, int n, MPI_Request *requests, int way) {
  int done = 0, index, some[2 * MOST], count;
  MPI_Status statuses[2 * MOST];
  while (done < n) switch (way) {
      case 0:
        MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
        EXPECT(index != MPI_UNDEFINED);
        done++;
        break;
      case 1:
        MPI_Waitsome(n, requests, &count, some, statuses);
        EXPECT(count > 0);
        done += count;
        break;
      case 2:
        MPI_Testany(n, requests, &index, &count, MPI_STATUS_IGNORE);
        if (count) done++;
        break;
      default:
        MPI_Testsome(n, requests, &count, some, MPI_STATUSES_IGNORE);
        done += count;
        if (!count) work(2);
    }
}

static void complete(const struct place *p, int n, MPI_Request *requests) {
  int flag = 0;
  const int way = (p->shape >> 3) % WAYS;
  switch (way) {
    case 4:
      for (int i = n - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      break;
    case 5:
      while (!flag) MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
      break;
    case 6:
      while (!flag) {
        work(3);
        MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
      }
      break;
    case 7:
      for (int i = 0; i < n; ++i)
        for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
      break;
    case 8: MPI_Waitall(n, requests, MPI_STATUSES_IGNORE); break;
    default: one_by_one(p, n, requests, way);
  }
}

static void exchanged(struct place *p) {
  MPI_Request requests[2 * MOST];
  const int k = neighbours(p);
  fill(p, p->out, p->rank, part(p));
  for (int by = 1; by <= k; ++by)
    MPI_Irecv(p->in + (by - 1) * part(p), part(p), MPI_INT, left_of(p, by), p->tag + by, p->comm, &requests[by - 1]);
  if (p->shape & 512) work(20);
  for (int by = 1; by <= k; ++by)
    if (p->shape & 1024) MPI_Issend(p->out, part(p), MPI_INT, right_of(p, by), p->tag + by, p->comm, &requests[k + by - 1]);
    else MPI_Isend(p->out, part(p), MPI_INT, right_of(p, by), p->tag + by, p->comm, &requests[k + by - 1]);
  if (p->shape & 2048) work((double)(own_random() % 100));
  complete(p, 2 * k, requests);
  for (int by = 1; by <= k; ++by) check_part(p, by);
}

static void again_and_again(struct place *p) {  // persistent requests
  const int k = neighbours(p);
  MPI_Request *requests = p->kept;
  if (!requests) {
    p->kept = requests = calloc(2 * MOST, sizeof *requests);
    for (int by = 1; by <= k; ++by) {
      MPI_Recv_init(p->in + (by - 1) * part(p), part(p), MPI_INT, left_of(p, by), p->tag + by, p->comm, &requests[by - 1]);
      MPI_Send_init(p->out, part(p), MPI_INT, right_of(p, by), p->tag + by, p->comm, &requests[k + by - 1]);
    }
  }
  fill(p, p->out, p->rank, part(p));
  if (p->shape & 512) {
    for (int i = 0; i < 2 * k; ++i) MPI_Start(&requests[i]);
  } else {
    MPI_Startall(2 * k, requests);
  }
  if (p->shape & 2048) work((double)(own_random() % 100));
  complete(p, 2 * k, requests);
  for (int by = 1; by <= k; ++by) check_part(p, by);
}

static void free_persistent(struct place *p) {
  MPI_Request *requests = p->kept;
  for (int i = 0; requests && i < 2 * neighbours(p); ++i) MPI_Request_free(&requests[i]);
  free(requests);
}

struct under_way {  // started in one turn, completed in the next one
  struct place at;
  MPI_Request requests[2];
};

static void complete_last(struct place *p) {
  struct under_way *last = p->kept;
  if (!last) return;
  complete(p, 2, last->requests);
  expect(&last->at, p->in, left_of(p, 1), p->count);
}

static void across_turns(struct place *p) {
  complete_last(p);
  struct under_way *next = p->kept;
  if (!next) p->kept = next = malloc(sizeof *next);
  next->at = *p;
  fill(p, p->out, p->rank, p->count);
  MPI_Irecv(p->in, p->count, MPI_INT, left_of(p, 1), p->tag, p->aside, &next->requests[0]);
  MPI_Isend(p->out, p->count, MPI_INT, right_of(p, 1), p->tag, p->aside, &next->requests[1]);
}

static void end_across(struct place *p) {
  complete_last(p);
  free(p->kept);
}

static void cancelled(struct place *p) {
  MPI_Request request;
  MPI_Status status;
  int yes, flag = 0;
  MPI_Irecv(p->in, p->count, MPI_INT, left_of(p, 1), p->tag + 9, p->comm, &request);
  if (p->shape & 1) MPI_Barrier(p->comm);
  MPI_Test(&request, &flag, &status);
  EXPECT(!flag);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &yes);
  EXPECT(yes);
}

static void looked_at_first(struct place *p) {
  MPI_Request requests[2];
  MPI_Status status;
  int flag = 0, count;
  fill(p, p->out, p->rank, p->count);
  MPI_Irecv(p->in, p->count, MPI_INT, MPI_ANY_SOURCE, p->tag, p->comm, &requests[0]);
  MPI_Isend(p->out, p->count, MPI_INT, right_of(p, 1), p->tag, p->comm, &requests[1]);
  while (!flag) MPI_Request_get_status(requests[0], &flag, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT(status.MPI_SOURCE == left_of(p, 1) && count == p->count);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect(p, p->in, left_of(p, 1), p->count);
}

static void strided(struct place *p) {  // every other int of a row of rows, as columns of a matrix
  MPI_Datatype type;
  MPI_Request request;
  const int n = p->count / 2;
  MPI_Type_vector(n, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  fill(p, p->in, p->rank, n);
  for (int i = 0; i < n; ++i) p->out[2 * i] = p->in[i];
  MPI_Isend(p->out, 1, type, right_of(p, 1), p->tag, p->comm, &request);
  MPI_Type_free(&type);
  memset(p->in, 0, (size_t)n * sizeof *p->in);
  MPI_Recv(p->in, n, MPI_INT, left_of(p, 1), p->tag, p->comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(p, p->in, left_of(p, 1), n);
}

const struct operation completions[] = {
    {"exchanged", exchanged, NULL, 0},
    {"exchanged", exchanged, NULL, 0},  // most programs' way
    {"again_and_again", again_and_again, free_persistent, 0},
    {"across_turns", across_turns, end_across, 0},
    {"cancelled", cancelled, NULL, 0},
    {"looked_at_first", looked_at_first, NULL, 0},
    {"strided", strided, NULL, 0},
    {NULL, NULL, NULL, 0},
};
