// Derived datatypes: what arrives is what the type map says, and the rest of the buffer stays.
#include "subject.h"

#include <stdlib.h>
#include <string.h>

static void column(MPI_Comm comm, int rank) {
  enum { n = 200 };
  double *matrix = malloc(n * n * sizeof *matrix);
  for (int i = 0; i < n * n; ++i) matrix[i] = rank ? -1 : i;
  MPI_Datatype type;
  MPI_Type_vector(n, 1, n, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  if (rank == 0) MPI_Send(matrix + 3, 1, type, 1, 0, comm);
  if (rank == 1) {
    MPI_Recv(matrix + 5, 1, type, 0, 0, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < n * n; ++i) CHECK(matrix[i] == (i % n == 5 ? i - 2 : -1));
  }
  MPI_Type_free(&type);
  free(matrix);
}

static void structure(MPI_Comm comm, int rank) {
  struct item {
    char c;
    double d;
    short s[3];
  } item[10], got[10];
  int lengths[3] = {1, 1, 3};
  MPI_Aint at[3] = {offsetof(struct item, c), offsetof(struct item, d), offsetof(struct item, s)};
  MPI_Datatype parts[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, packed, type;
  MPI_Type_create_struct(3, lengths, at, parts, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(struct item), &type);
  MPI_Type_commit(&type);
  memset(item, 0, sizeof item);
  memset(got, 0, sizeof got);
  for (int i = 0; i < 10; ++i) {
    item[i].c = (char)('a' + i);
    item[i].d = i * 0.5;
    for (int k = 0; k < 3; ++k) item[i].s[k] = (short)(i * 3 + k);
  }
  if (rank == 0) MPI_Ssend(item, 10, type, 1, 1, comm);
  if (rank == 1) {
    MPI_Status status;
    int count, elements;
    MPI_Recv(got, 10, type, 0, 1, comm, &status);
    MPI_Get_count(&status, type, &count);
    MPI_Get_elements(&status, type, &elements);
    CHECK(count == 10 && elements == 50);
    for (int i = 0; i < 10; ++i) CHECK(got[i].c == item[i].c && got[i].d == item[i].d && memcmp(got[i].s, item[i].s, sizeof got[i].s) == 0);
  }
  MPI_Bcast(rank == 1 ? got : item, 10, type, 0, comm);
  MPI_Type_free(&packed);
  MPI_Type_free(&type);
}

static void subarray(MPI_Comm comm, int rank, int size) {
  const int whole[2] = {12, 12}, part[2] = {4, 5}, start[2] = {2, 6};
  MPI_Datatype type;
  MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_commit(&type);
  int grid[144], *all = calloc(144 * (size_t)size, sizeof *all);
  for (int i = 0; i < 144; ++i) grid[i] = rank * 1000 + i;
  MPI_Allgather(grid, 1, type, all, 20, MPI_INT, comm);
  for (int r = 0; r < size; ++r) CHECK(all[r * 20] == r * 1000 + 2 * 12 + 6 && all[r * 20 + 19] == r * 1000 + 5 * 12 + 10);
  free(all);
  MPI_Type_free(&type);
}

SUBJECT(types, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  column(comm, rank);
  structure(comm, rank);
  subarray(comm, rank, size);
  if (rank < 2) {  // packed by hand
    char buffer[200];
    int at = 0, i = 41;
    double d = 2.5;
    if (rank == 0) {
      MPI_Pack(&i, 1, MPI_INT, buffer, sizeof buffer, &at, comm);
      MPI_Pack(&d, 1, MPI_DOUBLE, buffer, sizeof buffer, &at, comm);
      MPI_Send(buffer, at, MPI_PACKED, 1, 2, comm);
    } else {
      MPI_Recv(buffer, sizeof buffer, MPI_PACKED, 0, 2, comm, MPI_STATUS_IGNORE);
      i = 0, d = 0;
      MPI_Unpack(buffer, sizeof buffer, &at, &i, 1, MPI_INT, comm);
      MPI_Unpack(buffer, sizeof buffer, &at, &d, 1, MPI_DOUBLE, comm);
      CHECK(i == 41 && d == 2.5);
    }
  }
}
