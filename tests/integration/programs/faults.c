// Says how many pages 20,000 calls of a rank have touched for the first time.
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

static void calls(int number) {
  for (int i = 0; i < number; ++i) {
    int found;
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  calls(200);
  const long before = faults();
  calls(20000);
  printf("faults %ld\n", faults() - before);
  MPI_Finalize();
  return 0;
}
