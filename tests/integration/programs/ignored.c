// Arguments that MPI says are ignored, or that libraries take as they come because there are no data, are null.
#include "check.h"

#include <mpi.h>

/// The library takes a null datatype for no data. (That is its courtesy, and only asked for where it is shown.)
static void nothing_of_no_type(int rank) {
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  const int courteous = MPI_Send(NULL, 0, MPI_DATATYPE_NULL, rank, 0, own) == MPI_SUCCESS;
  if (courteous) CHECK(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, rank, 0, own, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_Send(&rank, 1, MPI_DATATYPE_NULL, rank, 0, own) != MPI_SUCCESS);  // an error of `own`, not of another communicator
  if (rank == 0) printf("no data of no type: %s\n", courteous ? "taken" : "refused");
  MPI_Comm_free(&own);
}

static void reads_without_origin(int rank, int size) {
  long cell = 100 + rank, got = -1, same = -1;
  MPI_Win win;
  MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const int target = (rank + 1) % size;
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
  MPI_Get_accumulate(NULL, 7, MPI_DATATYPE_NULL, &got, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_NO_OP, win);
  MPI_Fetch_and_op(NULL, &same, MPI_LONG, target, 0, MPI_NO_OP, win);
  MPI_Win_unlock(target, win);
  CHECK(got == 100 + target && same == got);
  MPI_Win_free(&win);
}

static void collectives(int rank, int size) {
  int all[64], own = rank, ones[64], places[64];
  MPI_Datatype ints[64];
  for (int i = 0; i < size; ++i) all[i] = rank, ones[i] = 1, places[i] = i, ints[i] = MPI_INT;
  MPI_Allgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoall(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgatherv(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, ones, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, ones, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) places[i] = i * (int)sizeof(int);
  MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, ones, places, ints, MPI_COMM_WORLD);
  MPI_Gather(&own, 1, MPI_INT, rank ? NULL : all, rank ? -1 : 1, rank ? MPI_DATATYPE_NULL : MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
  } else {
    MPI_Gather(&own, 1, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, &own, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  CHECK(own == rank);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  nothing_of_no_type(rank);
  reads_without_origin(rank, size);
  collectives(rank, size);
  if (rank == 0) puts("ignored");
  MPI_Finalize();
  return check_failures != 0;
}
