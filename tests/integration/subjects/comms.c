// Communicators made and freed over and over: nothing may run out.
#include "subject.h"

extern int scale;

SUBJECT(comms, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  enum { base = 100 };
  for (int i = 0; i < base * scale; ++i) {
    MPI_Comm half;
    MPI_Comm_split(comm, (rank + i) % 2, -rank, &half);
    int members = 0;
    if (i % 20 == 0) {
      const int one = 1;
      MPI_Allreduce(&one, &members, 1, MPI_INT, MPI_SUM, half);
      CHECK(members == size / 2 + ((rank + i) % 2 == 0 ? (size % 2 && i % 2 == 0) : (size % 2 && i % 2 == 1)));
    }
    MPI_Comm_free(&half);
    CHECK(half == MPI_COMM_NULL);
  }
  MPI_Comm odd, node, made;
  MPI_Comm_split(comm, rank % 2 ? 1 : MPI_UNDEFINED, rank, &odd);
  CHECK((odd == MPI_COMM_NULL) == (rank % 2 == 0));
  if (odd != MPI_COMM_NULL) MPI_Comm_free(&odd);
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int there = 0;
  MPI_Comm_size(node, &there);
  CHECK(there == size);
  MPI_Comm_free(&node);
  MPI_Group all, first;
  const int members[2] = {0, 1};
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, 2, members, &first);
  MPI_Comm_create(comm, first, &made);
  if (made != MPI_COMM_NULL) {
    MPI_Barrier(made);
    MPI_Comm_free(&made);
  }
  if (rank < 2) {
    MPI_Comm_create_group(comm, first, 5, &made);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&first);
  MPI_Group_free(&all);
}
