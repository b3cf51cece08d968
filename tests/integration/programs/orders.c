// Communicators of the same members, which half of the ranks make in another order than the others: MPI has an order only for those
// that are made from one communicator. A broadcast of 1, 2, ... integers on each.
#include "check.h"

#include <mpi.h>

enum { kMade = 5 };

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm parents[2], made[kMade];
  MPI_Request requests[3];
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);

  // One by all members of the world, and one by those of a group, which here are the same.
  if (rank % 2 == 0) MPI_Comm_create_group(MPI_COMM_WORLD, all, 3, &made[0]);
  MPI_Comm_idup(MPI_COMM_WORLD, &made[1], &requests[0]);
  if (rank % 2 != 0) MPI_Comm_create_group(MPI_COMM_WORLD, all, 3, &made[0]);
  // From two of them.
  for (int i = 0; i < 2; ++i) {
    const int which = rank % 2 == 0 ? i : 1 - i;
    MPI_Comm_idup(parents[which], &made[2 + which], &requests[1 + i]);
  }
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_dup(made[3], &made[4]);

  for (int i = 0; i < kMade; ++i) {
    int values[kMade] = {0};
    for (int k = 0; k <= i; ++k) values[k] = rank == i % 2 ? 10 * i + k : -1;
    MPI_Bcast(values, i + 1, MPI_INT, i % 2, made[i]);
    for (int k = 0; k <= i; ++k) CHECK(values[k] == 10 * i + k);
    MPI_Comm_free(&made[i]);
  }
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&parents[i]);
  MPI_Group_free(&all);
  MPI_Finalize();
  return check_failures != 0;
}
