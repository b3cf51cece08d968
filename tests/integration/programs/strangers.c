// A rank waits for what one that it has started sends, now after nothing, now after some milliseconds. Prints the time.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

enum { kRounds = 200 };

int main(int argc, char **argv) {
  MPI_Comm parent, child;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  const int started = parent != MPI_COMM_NULL;
  if (!started) MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
  MPI_Comm other = started ? parent : child;
  unsigned random = 1;
  const double start = seconds_now();
  for (int round = 0, got = -1; round < kRounds; ++round) {
    random = random * 1103515245u + 12345u;
    if (started) {
      compute(0.01 * (random >> 16) / 65536.0);
      MPI_Send(&round, 1, MPI_INT, 0, 0, other);
      MPI_Recv(&got, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&got, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
      MPI_Send(&got, 1, MPI_INT, 0, 0, other);
    }
    CHECK(got == round);
  }
  if (!started) printf("%.3f\n", seconds_now() - start);
  MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return check_failures != 0;
}
