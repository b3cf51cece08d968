// Rank 0 is late each time with a message that takes long to move. It prints the seconds for which it sent.
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBytes = 96 << 20, kRounds = 4, kLateUs = 20000 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  double sending = 0;
  char *const data = malloc(kBytes);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(data, rank, kBytes);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      usleep(kLateUs);
      const double began = seconds_now();
      MPI_Send(data, kBytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      sending += seconds_now() - began;
    } else {
      MPI_Recv(data, kBytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(data[0] == 0 && data[kBytes - 1] == 0);
    }
  }
  if (rank == 0) printf("%.6f\n", sending);
  free(data);
  MPI_Finalize();
  return check_failures != 0;
}
