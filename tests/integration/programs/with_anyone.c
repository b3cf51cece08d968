// Each rank exchanges with its neighbours by non-blocking exchanges that receive from any source. MPICH gives such a request the
// status of whatever had it before: of a message of the other neighbour, of another tag.
#include "mpi4.h"

enum { kRounds = 5 };

int main(int argc, char **argv) {
  int rank, size, got[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < kRounds; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(&got[0], 1, MPI_INT, right, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, left, 9, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
#if HAS_MPI4
    MPI_Isendrecv(&rank, 1, MPI_INT, right, 3, &got[1], 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
#else
    MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD);
#endif
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    if (got[0] != right || got[1] != left) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
