// Every rank in turn is late for a collective call, which is started and waited for, or tested for, or started by a persistent
// request, or takes place in one call; at a fence; or where a window is made. Rank 0 says by how many microseconds the rounds last longer than the pause.
// usage: started ROUNDS PAUSE_US sum|started|tested|persistent|fence|window
#include "check.h"

#include "mpi4.h"
#include <stdlib.h>
#include <string.h>

enum { LONG = 2048 };

static double mine[LONG], sum[LONG];
static MPI_Request again = MPI_REQUEST_NULL;

static void meet(const char *how, MPI_Win window) {
  MPI_Request request;
  if (strcmp(how, "fence") == 0) {
    CHECK(MPI_Win_fence(0, window) == MPI_SUCCESS);
  } else if (strcmp(how, "window") == 0) {
    MPI_Win another;
    CHECK(MPI_Win_create(mine, sizeof mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &another) == MPI_SUCCESS);
    CHECK(MPI_Win_free(&another) == MPI_SUCCESS);
  } else if (strcmp(how, "tested") == 0) {
    CHECK(MPI_Iallreduce(mine, sum, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    for (int over = 0; !over;) CHECK(MPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  } else if (strcmp(how, "persistent") == 0) {
    CHECK(MPI_Start(&again) == MPI_SUCCESS);
    CHECK(MPI_Wait(&again, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  } else if (strcmp(how, "started") == 0) {
    CHECK(MPI_Iallreduce(mine, sum, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  } else {
    CHECK(MPI_Allreduce(mine, sum, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 4);
  const int rounds = argc == 4 ? atoi(argv[1]) : 0;
  const double usual = argc == 4 ? atof(argv[2]) * 1e-6 : 0;
  const int irregular = argc == 4 && strcmp(argv[3], "persistent") == 0;  // so that nobody knows when to wake by itself
  unsigned seed = 7;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win window;
  MPI_Win_create(sum, sizeof sum, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
#if HAS_MPI4
  MPI_Allreduce_init(mine, sum, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &again);
#endif
  double more = 0;
  for (int round = 0; round < rounds && argc == 4; ++round) {
    const double pause = irregular ? usual * (0.1 + 1.8 * rand_r(&seed) / RAND_MAX) : usual;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    if (rank == round % size) {
      const struct timespec t = {(time_t)pause, (long)((pause - (double)(time_t)pause) * 1e9)};
      nanosleep(&t, NULL);
    }
    meet(argv[3], window);
    more += seconds_now() - begin - pause;
  }
  double most = 0;
  MPI_Reduce(&more, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("us a round %.1f\n", most * 1e6 / rounds);
  if (again != MPI_REQUEST_NULL) MPI_Request_free(&again);
  MPI_Win_free(&window);
  MPI_Finalize();
  return check_failures != 0;
}
