// Each of two ranks has a neighbour on one side only and receives from the other one all the same, with any tag. Some libraries never
// name a persistent request with MPI_PROC_NULL in a wait, or give the receive from there the status of a message from rank 0.
#include <mpi.h>

enum { kRounds = 5 };

int main(int argc, char **argv) {
  int rank, data = 7, got[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int left = rank == 1 ? 0 : MPI_PROC_NULL, right = rank == 0 ? 1 : MPI_PROC_NULL;
  MPI_Request requests[4];
  MPI_Status statuses[4];
  for (int i = 0; i < kRounds; ++i) {
    MPI_Irecv(&got[0], 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, right, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&data, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&data, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
  }
  MPI_Recv_init(&got[0], 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&got[1], 1, MPI_INT, right, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(&data, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[2]);
  MPI_Send_init(&data, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[3]);
  for (int i = 0; i < kRounds; ++i) {
    int index;
    MPI_Startall(4, requests);
    do MPI_Waitany(4, requests, &index, statuses);
    while (index != MPI_UNDEFINED);
  }
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
  MPI_Finalize();
  return 0;
}
