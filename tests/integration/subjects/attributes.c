// Attribute callbacks and the handles a program may keep: nothing is called twice.
#include "subject.h"

static int copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)key, (void)extra;
  copied++;
  *(void **)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

// Talks while the communicator is taken down, as MPI allows.
static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
  (void)key, (void)value, (void)extra;
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  deleted += sum > 0;
  return MPI_SUCCESS;
}

SUBJECT(attributes, 1) {
  int key, flag;
  long stored = 5, *found = NULL;
  MPI_Comm first, second;
  copied = deleted = 0;
  MPI_Comm_create_keyval(copy, on_delete, &key, NULL);
  MPI_Comm_dup(comm, &first);
  MPI_Comm_set_attr(first, key, &stored);
  MPI_Comm_dup(first, &second);
  MPI_Comm_get_attr(second, key, &found, &flag);
  CHECK(flag && found == &stored && copied == 1);
  MPI_Comm_free(&first);
  MPI_Comm_free(&second);
  CHECK(deleted == 2);
  MPI_Comm_free_keyval(&key);
  int *bound = NULL;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  CHECK(flag && *bound >= 32767);
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Comm_set_name(comm, "of a subject");
  MPI_Comm_get_name(comm, name, &length);
  CHECK(length == 12);
  MPI_Pcontrol(1);
}
