// MPI-IO: independent, collective, non-blocking, shared and split file access.
#include "subject.h"

#include <stdio.h>
#include <string.h>

enum { kInts = 1000 };

static void fill(int *data, int seed) {
  for (int i = 0; i < kInts; ++i) data[i] = seed * 100000 + i;
}

static void holds(const int *data, int seed) {
  int expect[kInts];
  fill(expect, seed);
  CHECK(memcmp(data, expect, sizeof expect) == 0);
}

// What one rank has written may lie with another rank that writes for it: MPI promises it to readers after this.
static void settle(MPI_File file) {
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
}

static void through_views(MPI_File file, int rank, int size) {
  int out[kInts], in[kInts];
  MPI_Status status;
  int count = -1;
  MPI_Datatype every;
  MPI_Type_vector(kInts / 10, 10, 10 * size, MPI_INT, &every);
  MPI_Type_commit(&every);
  fill(out, rank);
  MPI_File_set_view(file, (MPI_Offset)rank * 10 * (MPI_Offset)sizeof(int), MPI_INT, every, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, out, kInts, MPI_INT, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == kInts);
  settle(file);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  memset(in, 0, sizeof in);
  MPI_File_read_all(file, in, kInts, MPI_INT, &status);
  holds(in, rank);
  memset(in, 0, sizeof in);
  MPI_File_read_at_all(file, 0, in, kInts, MPI_INT, &status);
  holds(in, rank);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_Type_free(&every);
}

static void by_offset(MPI_File file, int rank, int size) {
  const MPI_Offset at = (MPI_Offset)rank * kInts;  // in etypes of the view: ints
  const MPI_Offset other = (MPI_Offset)((rank + 1) % size) * kInts;
  int out[kInts], in[kInts];
  MPI_Request request;
  fill(out, rank + 20);
  MPI_File_iwrite_at(file, at, out, kInts, MPI_INT, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  settle(file);
  MPI_File_iread_at(file, other, in, kInts, MPI_INT, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  holds(in, (rank + 1) % size + 20);
  MPI_Barrier(MPI_COMM_WORLD);  // everyone has read before anyone writes
  fill(out, rank + 40);
  MPI_File_write_at_all(file, at, out, kInts, MPI_INT, MPI_STATUS_IGNORE);
  settle(file);
  MPI_File_read_at(file, at, in, kInts, MPI_INT, MPI_STATUS_IGNORE);
  holds(in, rank + 40);
  MPI_File_write_at_all_begin(file, at, out, kInts, MPI_INT);
  MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
  settle(file);
  MPI_File_iread_at_all(file, at, in, kInts, MPI_INT, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  holds(in, rank + 40);
}

static void shared_pointer(MPI_File file, int rank, int size) {
  int out = 900 + rank, in = -1;
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  MPI_File_write_ordered(file, &out, 1, MPI_INT, MPI_STATUS_IGNORE);
  settle(file);
  MPI_File_read_at(file, (rank + 1) % size, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(in == 900 + (rank + 1) % size);
}

SUBJECT(files, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_File file;
  const char *name = "files.data";
  CHECK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  through_views(file, rank, size);
  by_offset(file, rank, size);
  shared_pointer(file, rank, size);
  MPI_Offset bytes = 0;
  MPI_File_set_size(file, 4096);
  MPI_File_get_size(file, &bytes);
  CHECK(bytes == 4096);
  MPI_File_close(&file);
  CHECK(file == MPI_FILE_NULL);
  // Files return errors by default: no handler is needed and no rank ends.
  CHECK(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
}
