/* A partitioned send whose partitions are ready one by one, in a range and in a list, where the MPI has such. */
#include "mpi4.h"
#include <stdio.h>
#include <time.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if HAS_MPI4
  enum { kParts = 6, kEach = 4096 };
  static double data[kParts * kEach];
  const struct timespec ms100 = {0, 100000000};
  int list[] = {5, 0};
  MPI_Request request;
  if (rank == 0) {
    MPI_Psend_init(data, kParts, kEach, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Pready(4, request);
    nanosleep(&ms100, NULL);
    MPI_Pready_range(1, 3, request);
    MPI_Pready_list(2, list, request);
  } else {
    MPI_Precv_init(data, kParts, kEach, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
#endif
  MPI_Finalize();
  if (rank == 0) puts("done");
  return 0;
}
