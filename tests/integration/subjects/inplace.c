// Collectives whose buffers are in place, and the v and w forms.
#include "subject.h"

#include <stdlib.h>

static void fixed_sizes(MPI_Comm comm, int rank, int size) {
  int *all = malloc((size_t)size * sizeof *all);
  for (int i = 0; i < size; ++i) all[i] = i == rank ? rank * 3 : -1;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, comm);
  for (int i = 0; i < size; ++i) CHECK(all[i] == i * 3);
  for (int i = 0; i < size; ++i) all[i] = rank * 100 + i;
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, comm);
  for (int i = 0; i < size; ++i) CHECK(all[i] == i * 100 + rank);
  for (int i = 0; i < size; ++i) all[i] = rank + i;
  MPI_Allreduce(MPI_IN_PLACE, all, size, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < size; ++i) CHECK(all[i] == size * i + size * (size - 1) / 2);
  int value = rank + 1;
  MPI_Reduce(rank == 1 ? MPI_IN_PLACE : &value, &value, 1, MPI_INT, MPI_SUM, 1, comm);
  CHECK(rank != 1 || value == size * (size + 1) / 2);
  value = rank + 1;
  MPI_Scan(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm);
  CHECK(value == (rank + 1) * (rank + 2) / 2);
  for (int i = 0; i < size; ++i) all[i] = i;
  MPI_Reduce_scatter_block(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, comm);
  CHECK(all[0] == rank * size);
  for (int i = 0; i < size; ++i) all[i] = i == rank ? rank : -1;
  if (rank == 0) MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, comm);
  else MPI_Gather(&all[rank], 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, comm);
  for (int i = 0; rank == 0 && i < size; ++i) CHECK(all[i] == i);
  if (rank == 0) MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
  else MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &value, 1, MPI_INT, 0, comm);
  CHECK(rank == 0 || value == rank);
  free(all);
}

static void varying_sizes(MPI_Comm comm, int rank, int size) {
  const int total = size * (size + 1) / 2;
  int *counts = malloc((size_t)size * sizeof *counts), *at = malloc((size_t)size * sizeof *at), *all = malloc((size_t)(total + size * size) * sizeof *all);
  for (int i = 0, sum = 0; i < size; sum += ++i) {
    counts[i] = i + 1;
    at[i] = sum;
  }
  for (int i = 0; i < counts[rank]; ++i) all[at[rank] + i] = rank * 10 + i;
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, at, MPI_INT, comm);
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i <= r; ++i) CHECK(all[at[r] + i] == r * 10 + i);
  }
  int *mine = malloc((size_t)size * sizeof *mine);
  MPI_Scatterv(all, counts, at, MPI_INT, mine, rank + 1, MPI_INT, 0, comm);
  for (int i = 0; i <= rank; ++i) CHECK(mine[i] == rank * 10 + i);
  for (int i = 0; i < total; ++i) all[i] = i;
  MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i <= rank; ++i) CHECK(all[i] == size * (at[rank] + i));
  MPI_Gatherv(mine, rank + 1, MPI_INT, all, counts, at, MPI_INT, size - 1, comm);
  if (rank == size - 1) CHECK(all[at[size - 1] + size - 1] == (size - 1) * 11);

  // Alltoallw: one int to everybody, as bytes here and as an int there.
  int *ones = malloc((size_t)size * sizeof *ones), *fours = malloc((size_t)size * sizeof *fours), *bytes = malloc((size_t)size * sizeof *bytes);
  MPI_Datatype *ints = malloc((size_t)size * sizeof *ints), *chars = malloc((size_t)size * sizeof *chars);
  int *from = malloc((size_t)size * sizeof *from), *to = malloc((size_t)size * sizeof *to);
  for (int i = 0; i < size; ++i) {
    ones[i] = 1, fours[i] = 4, bytes[i] = 4 * i, ints[i] = MPI_INT, chars[i] = MPI_BYTE, from[i] = rank * 50 + i;
  }
  MPI_Alltoallw(from, fours, bytes, chars, to, fours, bytes, chars, comm);
  for (int i = 0; i < size; ++i) CHECK(to[i] == i * 50 + rank);
  for (int i = 0; i < size; ++i) at[i] = i;
  MPI_Alltoallv(from, ones, at, MPI_INT, to, ones, at, MPI_INT, comm);
  for (int i = 0; i < size; ++i) CHECK(to[i] == i * 50 + rank);
  free(counts), free(at), free(all), free(mine), free(ones), free(fours), free(bytes), free(ints), free(chars), free(from), free(to);
}

SUBJECT(inplace, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  fixed_sizes(comm, rank, size);
  varying_sizes(comm, rank, size);
}
