/* Tests for a message again and again with some work in between, at one place each, until it comes: MPI_Test, MPI_Testany,
 * and MPI_Iprobe on two communicators by turns. Prints how many of each were made.
 *
 * usage: works_between_tests TESTS [exit]   exit: without MPI_Finalize, in the middle of tests */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 3 };

static volatile unsigned work;

static void do_something(void) {
  for (int i = 0; i < 200; ++i) work = work * 1664525u + 1013904223u;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long most = atol(argv[1]);
  const int self = 0;
  int flag = 0, which = 0, in[2];
  MPI_Comm comms[2];
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  long tests = 0, any = 0, probes[2] = {0, 0};
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
  for (int message = 0; message < MESSAGES; ++message) {
    MPI_Irecv(&in[0], 1, MPI_INT, self, 1, comms[0], &requests[0]);
    for (long i = 0; i <= most; ++i) {
      if (i == most) MPI_Send(&message, 1, MPI_INT, self, 1, comms[0]);
      MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
      ++tests;
      if (flag) break;
      do_something();
    }
    if (!flag || in[0] != message) return 1;
    MPI_Irecv(&in[0], 1, MPI_INT, self, 1, comms[0], &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, self, 2, comms[1], &requests[1]);
    for (long i = 0, found = 0; found < 2; ++i) {
      if (i == most) {
        for (int k = 0; k < 2; ++k) MPI_Send(&message, 1, MPI_INT, self, 1 + k, comms[k]);
      }
      MPI_Testany(2, requests, &which, &flag, MPI_STATUS_IGNORE);
      ++any;
      if (flag) ++found;
      do_something();
    }
    if (in[0] != message || in[1] != message) return 1;
    for (long i = 0; i < 2 * most; ++i) {
      MPI_Iprobe(self, 1, comms[i % 2], &flag, MPI_STATUS_IGNORE);
      ++probes[i % 2];
      if (flag) return 1;
      do_something();
    }
    for (long i = 0; i < most; ++i) {
      MPI_Iprobe(self, 1, comms[1], &flag, MPI_STATUS_IGNORE);
      ++probes[1];
      do_something();
    }
  }
  printf("MPI_Test %ld MPI_Testany %ld MPI_Iprobe %ld %ld\n", tests, any, probes[0], probes[1]);
  if (argc > 2 && strcmp(argv[2], "exit") == 0) {
    fflush(stdout);
    exit(0);
  }
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return 0;
}
