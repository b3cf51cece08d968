// Neighbourhood collectives on a periodic line and on a ring given as a graph.
#include "subject.h"

SUBJECT(neighbor, 2) {
  int size, rank, periodic = 1;
  MPI_Comm_size(comm, &size);
  MPI_Comm line, ring;
  MPI_Cart_create(comm, 1, &size, &periodic, 0, &line);
  MPI_Comm_rank(line, &rank);
  int left, right, in[2] = {-1, -1}, out[2] = {rank * 2, rank * 2 + 1};
  MPI_Cart_shift(line, 0, 1, &left, &right);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, line);
  CHECK(in[0] == left && in[1] == right);
  if (size > 2) {  // with two ranks both neighbours are the same one, and which message is which differs between MPIs
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, line);
    CHECK(in[0] == left * 2 + 1 && in[1] == right * 2);
  }
  MPI_Request request;
  if (rank == 0) compute(0.002);
  MPI_Ineighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, line, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(in[0] == left && in[1] == right);

  const int from = (rank + size - 1) % size, to = (rank + 1) % size;
  // Not of the line: on Open MPI 5.0 the graph of a communicator with a grid is that grid in parts.
  MPI_Dist_graph_create_adjacent(comm, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  const int one = 1, zero = 0;
  int got = -1;
  MPI_Neighbor_alltoallv(&rank, &one, &zero, MPI_INT, &got, &one, &zero, MPI_INT, ring);
  CHECK(got == from);
  got = -1;
  MPI_Neighbor_allgatherv(&rank, 1, MPI_INT, &got, &one, &zero, MPI_INT, ring);
  CHECK(got == from);
  got = -1;
  const MPI_Aint nowhere = 0;
  MPI_Datatype type = MPI_INT;
  MPI_Neighbor_alltoallw(&rank, &one, &nowhere, &type, &got, &one, &nowhere, &type, ring);
  CHECK(got == from);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&line);
}
