// Handles whose values come back: communicators end inside callbacks, and later ones of another shape take their place.
#define _GNU_SOURCE
#include "subject.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int freed;

static int free_inner(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)extra;
  freed += MPI_Comm_free(value) == MPI_SUCCESS;
  return MPI_SUCCESS;
}

// As many elements as asked for; whoever reads one more meets a page without access.
struct guarded {
  void *pages, *first;
  size_t bytes;
};

static struct guarded guarded(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  struct guarded g = {mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), NULL, 2 * page};
  CHECK(g.pages != MAP_FAILED && bytes <= page);
  CHECK(mprotect((char *)g.pages + page, page, PROT_NONE) == 0);
  g.first = (char *)g.pages + page - bytes;
  return g;
}

static void exchange(MPI_Comm inter) {
  int n = 0;
  MPI_Comm_remote_size(inter, &n);
  struct guarded counts = guarded((size_t)n * sizeof(int)), offsets = guarded((size_t)n * sizeof(int));
  struct guarded types = guarded((size_t)n * sizeof(MPI_Datatype));
  struct guarded in = guarded((size_t)n * sizeof(int)), out = guarded((size_t)n * sizeof(int));
  for (int i = 0; i < n; i++) {
    ((int *)counts.first)[i] = 1;
    ((int *)offsets.first)[i] = i * (int)sizeof(int);
    ((MPI_Datatype *)types.first)[i] = MPI_INT;
    ((int *)out.first)[i] = 3 + i;
  }
  MPI_Alltoallw(out.first, counts.first, offsets.first, types.first, in.first, counts.first, offsets.first, types.first, inter);
  MPI_Alltoallv(out.first, counts.first, offsets.first, MPI_BYTE, in.first, counts.first, offsets.first, MPI_BYTE, inter);
  for (int i = 0; i < n; i++) note_int(((int *)in.first)[i]);
  struct guarded all[] = {counts, offsets, types, in, out};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) munmap(all[i].pages, all[i].bytes);
}

SUBJECT(handles, 2) {
  enum { kRounds = 8, kInner = 3 };
  int key, rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_inner, &key, NULL);
  freed = 0;
  for (int round = 0; round < kRounds; round++) {
    MPI_Comm inner[kInner], outer[kInner], local, inter;
    for (int i = 0; i < kInner; i++) {
      MPI_Comm_dup(comm, &inner[i]);
      MPI_Comm_split(comm, 0, rank, &outer[i]);
      MPI_Barrier(inner[i]);
      MPI_Comm_set_attr(outer[i], key, &inner[i]);
    }
    for (int i = 0; i < kInner; i++) MPI_Comm_free(&outer[i]);
    const int side = rank < size / 2;
    MPI_Comm_split(comm, side, rank, &local);
    MPI_Intercomm_create(local, 0, comm, side ? size / 2 : 0, 7, &inter);
    exchange(inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
  }
  CHECK(freed == kRounds * kInner);
  MPI_Comm_free_keyval(&key);
}
