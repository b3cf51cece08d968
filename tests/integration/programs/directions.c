// Two ranks send each other known numbers of bytes, which counting_test.py adds up.
#include "mpi4.h"
#include <stddef.h>
#if !HAS_MPI4
#include <mpi-ext.h>
#endif

enum { kTimes = 10 };

static char out[1000], in[1000];

// Rank 0 sends 7 and 3 bytes to rank 1; the rest goes nowhere and comes from nowhere.
static void to_the_right(int rank) {
  const int right = rank == 0 ? 1 : MPI_PROC_NULL, left = rank == 1 ? 0 : MPI_PROC_NULL;
  MPI_Send(out, 1000, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(in, 1000, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(out, 7, MPI_CHAR, right, 3, in, 7, MPI_CHAR, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(out, 3, MPI_CHAR, right, 4, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 20 bytes there and, into 40, back, three times.
static void again_and_again(int other) {
  MPI_Request request[3];
  MPI_Status status[2];
  MPI_Recv_init(in, 40, MPI_CHAR, other, 5, MPI_COMM_WORLD, &request[0]);
  MPI_Send_init(out, 20, MPI_CHAR, other, 5, MPI_COMM_WORLD, &request[1]);
  MPI_Send_init(out, 1000, MPI_CHAR, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &request[2]);
  for (int i = 0; i < 3; ++i) {
    if (i == 0) {
      MPI_Start(&request[0]);
      MPI_Start(&request[1]);
    } else {
      MPI_Startall(2, request);
    }
    MPI_Waitall(2, request, status);
  }
  MPI_Start(&request[2]);
  MPI_Wait(&request[2], MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; ++i) MPI_Request_free(&request[i]);
}

#if HAS_MPI4
// Four parts of 10 bytes each way, and a sum of 20 bytes, twice.
static void in_parts(int other) {
  MPI_Request request[3];
  MPI_Status status[3];
  int ones[5] = {1, 1, 1, 1, 1}, sums[5];
  MPI_Psend_init(out, 4, 10, MPI_CHAR, other, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
  MPI_Precv_init(in, 4, 10, MPI_CHAR, other, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
  MPI_Allreduce_init(ones, sums, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request[2]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(3, request);
    MPI_Pready_range(0, 3, request[0]);
    MPI_Waitall(3, request, status);
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&request[i]);
}
#else
// A sum of 20 bytes, twice.
static void in_parts(int other) {
  (void)other;
  MPI_Request request;
  int ones[5] = {1, 1, 1, 1, 1}, sums[5];
  MPIX_Allreduce_init(ones, sums, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 2; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
}
#endif

// 9 bytes from a group to the other one.
static void between_groups(int rank) {
  MPI_Comm both;
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 7, &both);
  MPI_Bcast(out, 9, MPI_CHAR, rank == 0 ? MPI_ROOT : 0, both);
  MPI_Comm_free(&both);
}

// Two elements of 4 bytes there, and three back.
static void one_by_one(int other, MPI_Win window) {
  int one = 1, none = 0, old[4];
  MPI_Fetch_and_op(&one, &old[0], MPI_INT, other, 0, MPI_SUM, window);
  MPI_Fetch_and_op(NULL, &old[1], MPI_INT, other, 4, MPI_NO_OP, window);
  MPI_Compare_and_swap(&one, &none, &old[2], MPI_INT, other, 8, window);
  MPI_Compare_and_swap(&one, &none, &old[3], MPI_INT, MPI_PROC_NULL, 8, window);
  MPI_Win_fence(0, window);
}

// 11, 13 and 17 bytes to the only neighbour: at the ends of a line there is no other.
static void to_neighbors(void) {
  MPI_Comm line;
  const int size = 2, periodic = 0, thirteens[2] = {13, 13}, seventeens[2] = {17, 17}, starts[2] = {0, 20};
  const MPI_Aint places[2] = {0, 20};
  const MPI_Datatype types[2] = {MPI_CHAR, MPI_CHAR};
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &line);
  MPI_Neighbor_alltoall(out, 11, MPI_CHAR, in, 11, MPI_CHAR, line);
  MPI_Neighbor_alltoallv(out, thirteens, starts, MPI_CHAR, in, thirteens, starts, MPI_CHAR, line);
  MPI_Neighbor_alltoallw(out, seventeens, places, types, in, seventeens, places, types, line);
  MPI_Comm_free(&line);
}

// A message that was looked for where none can come from.
static void from_nowhere(void) {
  MPI_Message message;
  MPI_Request request;
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, 1000, MPI_CHAR, &message, MPI_STATUS_IGNORE);
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(in, 1000, MPI_CHAR, &message, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Gathered and scattered where the root has its own block in place: 19 bytes of each rank, and 23 and 29.
static void in_place(int rank) {
  const int lengths[2] = {23, 29}, starts[2] = {0, 23};
  MPI_Request request;
  MPI_Status status;
  MPI_Gather(rank == 1 ? MPI_IN_PLACE : out, 19, MPI_CHAR, in, 19, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Scatter(in, 19, MPI_CHAR, rank == 1 ? MPI_IN_PLACE : out, 19, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Gatherv(rank == 1 ? MPI_IN_PLACE : out, lengths[rank], MPI_CHAR, in, lengths, starts, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Iscatterv(in, lengths, starts, MPI_CHAR, rank == 1 ? MPI_IN_PLACE : out, lengths[rank], MPI_CHAR, 1, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
}

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  for (int i = 0; i < kTimes; ++i) {
    MPI_Request request[2];
    MPI_Irecv(in, 1000, MPI_CHAR, other, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(out, 1000, MPI_CHAR, other, 0, MPI_COMM_WORLD, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(out, 100, MPI_CHAR, other, 1, in, 1000, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 10, MPI_CHAR, other, 2, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Win window;
  MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(out, 500, MPI_CHAR, other, 0, 500, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  MPI_Get(out, 200, MPI_CHAR, other, 0, 200, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  MPI_Get_accumulate(NULL, 0, MPI_CHAR, in + 500, 150, MPI_CHAR, other, 0, 150, MPI_CHAR, MPI_NO_OP, window);
  MPI_Put(out, 500, MPI_CHAR, MPI_PROC_NULL, 0, 500, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  one_by_one(other, window);
  MPI_Win_free(&window);
  to_the_right(rank);
  again_and_again(other);
  between_groups(rank);
  to_neighbors();
  from_nowhere();
  in_place(rank);
  in_parts(other);
  int counts[2] = {70, 80}, starts[2] = {0, 70};
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_CHAR, in, counts, starts, MPI_CHAR, MPI_COMM_WORLD);
  int parts[2] = {3, 3}, values[6] = {0}, part[3];
  MPI_Reduce_scatter(values, part, parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(values, part, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
