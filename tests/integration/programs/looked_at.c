// Requests that a look may change before the wait itself sees them: persistent ones that are complete, and generalized ones, which
// are asked; also where they were made in a callback. Those of MPICH's own kind are polled by the wait alone.
// usage: looked_at persistent|generalized|polled
#include "check.h"

#include <mpi.h>
#include <string.h>

enum { kCount = 5 };

static int queried;
static MPI_Request made;  // in the callback
static int in[kCount];

static int query(void *state, MPI_Status *status) {
  (void)state;
  queried++;
  MPI_Status_set_elements(status, MPI_INT, kCount);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}

static int release(void *state) {
  (void)state;
  return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
  (void)state, (void)complete;
  return MPI_SUCCESS;
}

#ifdef MPICH_VERSION
static int polled;

static int poll(void *state, MPI_Status *status) {
  (void)state, (void)status;
  if (++polled == kCount) MPI_Grequest_complete(made);
  return MPI_SUCCESS;
}

static int wait(int count, void **states, double timeout, MPI_Status *status) {
  (void)count, (void)states, (void)timeout;
  while (polled < kCount) poll(NULL, status);
  return MPI_SUCCESS;
}
#endif

static int copy_generalized(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag) {
  (void)comm, (void)key, (void)state, (void)value, (void)copy;
  MPI_Grequest_start(query, release, cancel, NULL, &made);
  *flag = 0;
  return MPI_SUCCESS;
}

static int copy_persistent(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag) {
  (void)comm, (void)key, (void)state, (void)value, (void)copy;
  MPI_Recv_init(in, kCount, MPI_INT, 0, 1, MPI_COMM_SELF, &made);
  *flag = 0;
  return MPI_SUCCESS;
}

static void call_back(MPI_Comm_copy_attr_function *copy) {
  int key;
  MPI_Comm duplicate;
  MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Comm_dup(MPI_COMM_SELF, &duplicate);
  MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&duplicate);
}

static int count_of(const MPI_Status *status) {
  int count = -1;
  MPI_Get_count(status, MPI_INT, &count);
  return count;
}

// One wait for the started receive and an inactive request beside it, and what it tells.
static void wait_each_way(MPI_Request receive) {
  const int out[kCount] = {1, 2, 3, 4, 5};
  MPI_Request both[2] = {receive};
  MPI_Status status[2];
  MPI_Recv_init(in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &both[1]);
  for (int way = 0; way < 4; ++way) {
    int index = -1, done = -1, indices[2] = {-1, -1};
    memset(in, 0, sizeof in);
    MPI_Start(&both[0]);
    MPI_Send(out, kCount, MPI_INT, 0, 1, MPI_COMM_SELF);
    if (way == 0) MPI_Wait(&both[0], status);
    if (way == 1) MPI_Waitall(2, both, status);
    if (way == 2) MPI_Waitany(2, both, &index, status);
    if (way == 3) MPI_Waitsome(2, both, &done, indices, status);
    CHECK(count_of(&status[0]) == kCount && status[0].MPI_SOURCE == 0 && status[0].MPI_TAG == 1 && in[kCount - 1] == kCount);
    CHECK(way != 1 || count_of(&status[1]) == 0);
    CHECK(way != 2 || index == 0);
    CHECK(way != 3 || (done == 1 && indices[0] == 0));
  }
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Status status;
  if (argc == 2 && strcmp(argv[1], "persistent") == 0) {
    MPI_Request receive;
    MPI_Recv_init(in, kCount, MPI_INT, 0, 1, MPI_COMM_SELF, &receive);
    wait_each_way(receive);
    call_back(copy_persistent);
    wait_each_way(made);
  } else if (argc == 2 && strcmp(argv[1], "polled") == 0) {
#ifdef MPICH_VERSION
    MPIX_Grequest_start(query, release, cancel, poll, wait, NULL, &made);
    MPI_Request waited = made;
    MPI_Waitall(1, &waited, &status);
    CHECK(queried == 1 && count_of(&status) == kCount);
#endif
  } else {
    call_back(copy_generalized);
    MPI_Grequest_complete(made);
    MPI_Wait(&made, &status);
    CHECK(queried == 1 && count_of(&status) == kCount);
  }
  printf("waited\n");
  MPI_Finalize();
  return check_failures != 0;
}
