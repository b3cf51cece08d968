// Persistent and, where the MPI has them, partitioned requests and persistent collectives.
#include "subject.h"

#ifdef OPEN_MPI
#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Barrier_init MPIX_Barrier_init
#endif
#define HAS_PERSISTENT_COLLECTIVES
#elif MPI_VERSION >= 4
#define HAS_PERSISTENT_COLLECTIVES
#endif

static void point_to_point(MPI_Comm comm, int rank, int size) {
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  int out[3] = {0}, in[3] = {0}, flag = 0;
  MPI_Request request[6];
  MPI_Status status[6];
  MPI_Send_init(&out[0], 1, MPI_INT, next, 0, comm, &request[0]);
  MPI_Ssend_init(&out[1], 1, MPI_INT, next, 1, comm, &request[1]);
  MPI_Send_init(&out[2], 1, MPI_INT, next, 2, comm, &request[2]);
  for (int i = 0; i < 3; ++i) MPI_Recv_init(&in[i], 1, MPI_INT, last, i, comm, &request[3 + i]);
  MPI_Waitall(6, request, status);  // inactive: returns at once with empty statuses
  CHECK(status[0].MPI_SOURCE == MPI_ANY_SOURCE && status[5].MPI_SOURCE == MPI_ANY_SOURCE);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) out[i] = rank * 1000 + round * 10 + i;
    if (round % 3 == rank % 3) compute(0.0005);
    if (round % 2) {
      MPI_Startall(6, request);
    } else {
      for (int i = 5; i >= 0; --i) MPI_Start(&request[i]);
    }
    if (round % 3 == 0) {
      MPI_Waitall(6, request, status);
    } else if (round % 3 == 1) {
      flag = 0;
      while (!flag) MPI_Testall(6, request, &flag, status);
    } else {
      for (int i = 0; i < 6; ++i) MPI_Wait(&request[i], &status[i]);
    }
    for (int i = 0; i < 3; ++i) CHECK(in[i] == last * 1000 + round * 10 + i);
    CHECK(request[0] != MPI_REQUEST_NULL);
  }
  for (int i = 0; i < 6; ++i) MPI_Request_free(&request[i]);
}

#if MPI_VERSION >= 4
static void partitioned(MPI_Comm comm, int rank) {
  enum { parts = 8, each = 500 };
  static double data[parts * each];
  MPI_Request request;
  for (int round = 0; round < 2; ++round) {
    if (rank == 0) {
      MPI_Psend_init(data, parts, each, MPI_DOUBLE, 1, 11, comm, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      for (int p = parts - 1; p >= 0; --p) {
        for (int i = 0; i < each; ++i) data[p * each + i] = round + p * 1e3 + i;
        if (p == 3) compute(0.001);
        MPI_Pready(p, request);
      }
    } else {
      MPI_Precv_init(data, parts, each, MPI_DOUBLE, 0, 11, comm, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      for (int p = 0; p < parts; ++p) {
        int flag = 0;
        while (!flag) MPI_Parrived(request, p, &flag);
        CHECK(data[p * each + 5] == round + p * 1e3 + 5);
      }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
}

#endif

#ifdef HAS_PERSISTENT_COLLECTIVES
static void collectives(MPI_Comm comm, int rank, int size) {
  int value = 0, sum = 0, token = 0;
  MPI_Request request[3];
  MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request[0]);
  MPI_Bcast_init(&token, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request[1]);
  MPI_Barrier_init(comm, MPI_INFO_NULL, &request[2]);
  for (int round = 0; round < 5; ++round) {
    value = rank + round;
    token = rank == 0 ? round : -1;
    MPI_Startall(3, request);
    if (rank == round % size) compute(0.001);
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    CHECK(sum == size * round + size * (size - 1) / 2 && token == round);
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&request[i]);
}
#endif

SUBJECT(persistent, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  point_to_point(comm, rank, size);
#if MPI_VERSION >= 4
  if (rank < 2) partitioned(comm, rank);
#endif
#ifdef HAS_PERSISTENT_COLLECTIVES
  collectives(comm, rank, size);
#endif
}
