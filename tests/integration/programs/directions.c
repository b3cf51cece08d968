// Two ranks send each other known numbers of bytes, which counting_test.py adds up.
#include <mpi.h>

enum { kTimes = 10 };

int main(int argc, char **argv) {
  static char out[1000], in[1000];
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
  MPI_Win_free(&window);
  int counts[2] = {70, 80}, starts[2] = {0, 70};
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_CHAR, in, counts, starts, MPI_CHAR, MPI_COMM_WORLD);
  int parts[2] = {3, 3}, values[6] = {0}, part[3];
  MPI_Reduce_scatter(values, part, parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(values, part, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
