// Buffered sends by persistent requests, started again while the data of the last time may still be on their way: the library may
// put another request in place of the one that is started. One request alone, then two at a time.
// usage: buffered_again ROUNDS BYTES
#include "check.h"

#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rounds = argc == 3 ? atoi(argv[1]) : 0, bytes = argc == 3 ? atoi(argv[2]) : 1;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  char *data[2] = {calloc((size_t)bytes, 1), calloc((size_t)bytes, 1)};
  int room = 4 * rounds * (bytes + MPI_BSEND_OVERHEAD);
  void *const buffer = malloc((size_t)room);
  MPI_Buffer_attach(buffer, room);
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) {
    if (rank == 0) MPI_Bsend_init(data[i], bytes, MPI_CHAR, other, i, MPI_COMM_WORLD, &requests[i]);
    if (rank == 1) MPI_Recv_init(data[i], bytes, MPI_CHAR, other, i, MPI_COMM_WORLD, &requests[i]);
  }
  if (rank == 1) compute(20e-3);  // the sender has made all its sends by then
  for (int round = 0; round < rounds; ++round) {
    data[0][0] = rank == 0 ? (char)round : 0;
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(data[0][0] == (char)round);
  }
  for (int round = 0; round < rounds; ++round) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
  MPI_Buffer_detach(&buffer, &room);
  free(buffer);
  for (int i = 0; i < 2; ++i) free(data[i]);
  MPI_Finalize();
  return check_failures != 0;
}
