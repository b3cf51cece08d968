// A PMPI tool that takes its time once a handle has been given back: other threads may get the same one meanwhile.
#include <mpi.h>
#include <unistd.h>

static int linger(int result) {
  usleep(2000);
  return result;
}

int MPI_Mrecv(void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
  return linger(PMPI_Mrecv(data, count, type, message, status));
}

int MPI_Imrecv(void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {
  return linger(PMPI_Imrecv(data, count, type, message, request));
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) { return linger(PMPI_Wait(request, status)); }

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  const int result = PMPI_Test(request, flag, status);
  return *flag ? linger(result) : result;
}

int MPI_Request_free(MPI_Request *request) { return linger(PMPI_Request_free(request)); }
