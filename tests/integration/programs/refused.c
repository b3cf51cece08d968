// Calls that the MPI library refuses, while the other rank waits: error handlers are called for them as often as the library does,
// and those that end the program not at all.
// usage: refused returns|counts [freed]
#include "check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int of_window, of_comm;

static void window_handler(MPI_Win *window, int *error, ...) { of_window += window != NULL && *error != MPI_SUCCESS; }
static void comm_handler(MPI_Comm *comm, int *error, ...) { of_comm += comm != NULL && *error != MPI_SUCCESS; }

static void set_handlers(MPI_Win window, int counts) {
  MPI_Errhandler handler = MPI_ERRORS_RETURN;
  if (!counts) {  // of the communicators the program's end
    MPI_Win_set_errhandler(window, handler);
    return;
  }
  MPI_Win_create_errhandler(window_handler, &handler);
  MPI_Win_set_errhandler(window, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_create_errhandler(comm_handler, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc >= 2);
  const int counts = argc >= 2 && strcmp(argv[1], "counts") == 0, freed = argc >= 3;
  int rank, size, number = 1, *memory;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win window;
  MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const MPI_Comm gone = copy;
  MPI_Comm_free(&copy);
  set_handlers(window, counts);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(300000);  // the other one sleeps
    MPI_Win_lock_all(0, window);
    MPI_Put(&number, 1, MPI_INT, size + 3, 0, 1, MPI_INT, window);
    MPI_Win_unlock_all(window);
    const int before = of_comm;
    if (freed) MPI_Send(&number, 1, MPI_INT, 1, 0, gone);
    printf("handlers: of the window %d, of communicators %d, for one that was freed %d\n", of_window, before, of_comm - before);
    MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Win_free(&window);
  MPI_Finalize();
  return check_failures != 0;
}
