// Rank 0 works, then sends to the others, which wait in a loop of tests that does nothing else. Rank 1 prints the part of its waiting
// time that it took from its core, and the mean time in microseconds from what rank 0 sends to the end of the loop.
// `apart` has 0.3 us between its tests; `counted` and `other` do something else now and then.
// `alone` looks for other messages once in a while, as it works, after each of its waits.
// usage: rests_in_tests recv|test|iprobe|testall|several|both|get_status|apart|counted|other|alone WAIT_US ROUNDS
#define _GNU_SOURCE
#include "check.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/// Waits for one number from rank 0, which it returns.
static double wait_for(const char *how) {
  double value = 0;
  int found = 0;
  if (strcmp(how, "recv") == 0) {  // for comparison: the library waits
    MPI_Recv(&value, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
  }
  if (strcmp(how, "iprobe") == 0) {
    MPI_Status status;
    while (!found) MPI_Iprobe(0, 1, MPI_COMM_WORLD, &found, &status);
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
    MPI_Recv(&value, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
  }
  MPI_Status statuses[2];
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Irecv(&value, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &requests[0]);
  if (strcmp(how, "testall") == 0) {
    while (!found) MPI_Testall(2, requests, &found, statuses);
  } else if (strcmp(how, "get_status") == 0) {
    while (!found) MPI_Request_get_status(requests[0], &found, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  } else if (strcmp(how, "apart") == 0) {
    while (!found) {
      const double tested = seconds_now();
      while (seconds_now() < tested + 0.3e-6) {}
      MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
    }
  } else if (strcmp(how, "counted") == 0) {  // works after so many tests
    for (int i = 0; !found; ++i) {
      MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
      if (i % 5000 == 4999) compute(100e-6);
    }
  } else if (strcmp(how, "other") == 0) {  // works between its tests, and finds something by another one
    MPI_Request own;
    MPI_Isend(&value, 0, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &own);
    for (int i = 0; !found; ++i) {
      MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
      if (i % 5000 == 4999) {
        int gone = 0;
        MPI_Test(&own, &gone, MPI_STATUS_IGNORE);
        CHECK(gone);
        MPI_Isend(&value, 0, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &own);
      }
    }
    MPI_Wait(&own, MPI_STATUS_IGNORE);
  } else if (strcmp(how, "alone") == 0) {
    while (!found) MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; ++i) {  // looks for messages between works, once each
      int other = 0;
      compute(300e-6);
      MPI_Iprobe(0, 2, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
      CHECK(!other);
    }
  } else if (strcmp(how, "several") == 0 || strcmp(how, "both") == 0) {  // the first waits for something that never comes
    while (!found) {
      int other = 0;
      MPI_Iprobe(0, 2, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
      CHECK(!other);
      if (*how == 's') MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
      else MPI_Testall(2, requests, &found, statuses);
    }
  } else {
    while (!found) MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
  }
  CHECK(requests[0] == MPI_REQUEST_NULL);
  return value;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 4);
  if (argc != 4) return 1;
  const double wait = 1e-6 * atof(argv[2]);
  const int rounds = atoi(argv[3]);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double cpu = 0, waited = 0, late = 0;
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) {
      compute(wait);
      const double now = seconds_now();
      for (int to = 1; to < size; ++to) MPI_Send(&now, 1, MPI_DOUBLE, to, 1, MPI_COMM_WORLD);
      continue;
    }
    const double began = seconds_now(), began_cpu = cpu_now();
    const double sent = wait_for(argv[1]);
    cpu += cpu_now() - began_cpu;
    const double end = seconds_now();
    waited += end - began;
    late += end - sent;
  }
  if (rank == 1) printf("awake %.3f late_us %.2f\n", cpu / waited, 1e6 * late / rounds);
  MPI_Finalize();
  return check_failures != 0;
}
