// Rank 0 accepts the others of its own world: the two sides make one intercommunicator from different communicators.
#include "check.h"

#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size, remote, value = 0;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm side, between;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &side);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, side, &between);
    MPI_Close_port(port);
  } else {
    if (rank == 1) MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, side, &between);
  }
  MPI_Comm_remote_size(between, &remote);
  CHECK(remote == (rank == 0 ? size - 1 : 1));
  if (rank == 0) value = 7;
  MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : 0, between);
  CHECK(value == 7);
  MPI_Comm_disconnect(&between);
  MPI_Comm_free(&side);
  MPI_Finalize();
  return check_failures != 0;
}
