// Looks at what is open in the process, as programs do that close or pass on whatever they find.
#include "check.h"

#include <dirent.h>
#include <mpi.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, found = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  // Enough calls that a trace of them is packed and written meanwhile.
  for (int i = 0, flag; i < 40000; ++i) MPI_Iprobe(rank, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  DIR *folder = opendir("/proc/self/fd");
  CHECK(folder != NULL);
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    char path[300], target[4096] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    if (readlink(path, target, sizeof target - 1) > 0 && (strstr(target, "fallow") != NULL || strstr(target, ".ftr") != NULL)) {
      printf("open: %s\n", target);
      ++found;
    }
  }
  closedir(folder);
  CHECK(found == 0);
  MPI_Finalize();
  if (rank == 0) puts("looked");
  return check_failures != 0;
}
