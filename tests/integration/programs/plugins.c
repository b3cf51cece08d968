// Loads the libraries that it is given one after the other, each where the one before was, and calls them.
// usage: plugins LIBRARY...
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  for (int i = 1; i < argc; ++i) {
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    if (library == NULL) break;
    int (*meet)(void) = (int (*)(void))dlsym(library, "meet");
    CHECK(meet != NULL && meet() == MPI_SUCCESS);
    for (int n = 0; n < 130; ++n) {  // so that the library's calls are looked up while it is there
      int found;
      errno = EDOM;
      MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
      CHECK(errno == EDOM);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    dlclose(library);
  }
  MPI_Finalize();
  return check_failures != 0;
}
