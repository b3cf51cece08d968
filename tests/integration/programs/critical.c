// Rank 1 waits for rank 0, which is late each time: first where nothing must be late, then elsewhere.
// Rank 0 writes a file.
// usage: critical FILE
#include "check.h"

#include <mpi.h>
#include <unistd.h>

extern void fallow_latency_critical_begin(void) __attribute__((weak));  // as <fallow/fallow.h> has them
extern void fallow_latency_critical_end(void) __attribute__((weak));

static int rank;

static void send_late(void) {
  if (rank == 0) usleep(10000);
  if (rank == 0) MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (fallow_latency_critical_begin) fallow_latency_critical_begin();
  for (int i = 0; i < 20; ++i) {
    send_late();
    if (rank == 1) MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (fallow_latency_critical_end) fallow_latency_critical_end();
  for (int i = 0; i < 20; ++i) {
    MPI_Status status;
    send_late();
    if (rank == 1) MPI_Probe(0, 0, MPI_COMM_WORLD, &status);
    if (rank == 1) MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_File file;
  char byte = 0;
  if (rank == 0 && argc > 1) {
    MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    for (int i = 0; i < 100; ++i) MPI_File_write(file, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }
  MPI_Finalize();
  return check_failures != 0;
}
