/* Communicators made from one with a topology: some have it, too, some another, some none. Each is used; nobody asks the library what
 * they have, for Open MPI is wrong about some. */
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

static int rank, size, from, to;

static void use(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  int mine = 1, sum = 0, members = 0;
  MPI_Comm_size(comm, &members);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == members);
}

static MPI_Comm with_topology(int kind) {
  const int periodic = 1;
  int index[64], edges[64];
  MPI_Comm made;
  for (int i = 0; i < size; ++i) index[i] = 2 * i + 2, edges[2 * i] = (i + size - 1) % size, edges[2 * i + 1] = (i + 1) % size;
  if (kind == 0) MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &made);
  if (kind == 1) MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made);
  if (kind == 2) MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  return made;
}

/* 8 bytes to each neighbour: two of the periodic line and of the graph, one of the distributed graph. */
static void send_to_neighbors(MPI_Comm comm) {
  long out[2] = {rank, rank}, in[2] = {-1, -1};
  MPI_Neighbor_alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, comm);
  CHECK(in[0] >= 0);
}

static void derive(MPI_Comm parent) {
  MPI_Comm made[7] = {MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Group all, some;
  MPI_Request request;
  const int last = size - 1;
  MPI_Comm_group(parent, &all);
  MPI_Group_excl(all, 1, &last, &some);
  if (rank != last) MPI_Comm_create_group(parent, some, 0, &made[0]);
  MPI_Comm_create(parent, some, &made[1]);
  MPI_Comm_split(parent, rank % 2, rank, &made[2]);
  MPI_Comm_dup(parent, &made[3]);
  MPI_Comm_idup(parent, &made[4], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Dist_graph_create_adjacent(parent, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[5]);
  MPI_Dist_graph_create_adjacent(made[3], 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[6]);
  for (int i = 0; i < 7; ++i) use(made[i]);
  send_to_neighbors(made[3]);
  send_to_neighbors(made[4]);
  for (int i = 0; i < 7; ++i) {
    if (made[i] != MPI_COMM_NULL) MPI_Comm_free(&made[i]);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  from = (rank + size - 1) % size, to = (rank + 1) % size;
  for (int kind = 0; kind < 3; ++kind) {
    MPI_Comm parent = with_topology(kind);
    derive(parent);
    MPI_Comm_free(&parent);
  }
  if (rank == 0) puts("used");
  MPI_Finalize();
  return check_failures != 0;
}
