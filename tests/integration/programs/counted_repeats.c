/* Messages at few places that are alike for long and then are not: for another type or communicator with the handle of the one before, another
 * function, count or rank, or one that the library refuses though those before it were just the same. With `jump`, the program jumps out of
 * these; then each such place is used by one rank only. Checks what arrives.
 *
 * usage: counted_repeats ROUNDS [jump] */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SELDOM = 300, MOST = 3 };

static int rank, other, refusals, looks, jumps, is_child;
static jmp_buf out;

static void handles_that_come_back(long rounds) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  int buffer[MOST] = {0};
  for (long i = 0; i < rounds; ++i) {
    const int ints = (int)(i / SELDOM % MOST) + 1;
    if (i % SELDOM == 0) {
      if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
      MPI_Type_contiguous(ints, MPI_INT, &type);
      MPI_Type_commit(&type);
      if (i % (2 * SELDOM) == 0) {
        if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      }
    }
    buffer[ints - 1] = (int)i;
    if (rank == 0) MPI_Send(buffer, 1, type, other, 0, comm);
    buffer[ints - 1] = -1;
    MPI_Recv(buffer, 1, type, other, 0, comm, MPI_STATUS_IGNORE);
    if (buffer[ints - 1] != i) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 1) MPI_Send(buffer, 1, type, other, 0, comm);
  }
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}

typedef int (*send_function)(const void*, int, MPI_Datatype, int, int, MPI_Comm);

/* The same instruction calls two functions by turns, short and long. */
static void functions_by_turns(long rounds) {
  const send_function functions[] = {MPI_Send, MPI_Ssend};
  for (long i = 0; i < rounds; ++i) {
    const send_function send = functions[i / 20 % 2];
    const int count = i % SELDOM == 0 ? MOST : 1, to = i % 7 == 0 ? MPI_PROC_NULL : other;
    int values[MOST] = {(int)i, 0, 0};
    if (rank == 0) send(values, count, MPI_INT, to, 0, MPI_COMM_WORLD);
    if (to != other) continue;
    values[0] = -1;
    MPI_Recv(values, count, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (values[0] != i) MPI_Abort(MPI_COMM_WORLD, 4);
    if (rank == 1) send(values, count, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
}

/* The child goes on in the call that the callback was made in, until that returns. */
static void fork_in_callback(void) {
  int status = 1;
  const pid_t child = fork();
  is_child = child == 0;
  if (!is_child && (waitpid(child, &status, 0) != child || status != 0)) MPI_Abort(MPI_COMM_WORLD, 6);
}

/* A call in a callback is one of the program. */
static void refused(MPI_Comm* comm, int* code, ...) {
  int found;
  (void)code;
  ++refusals;
  MPI_Iprobe(other, 99, *comm, &found, MPI_STATUS_IGNORE);
  ++looks;
  if (jumps) longjmp(out, 1);
  if (looks % 5 == 0) fork_in_callback();
}

/* Now and then more comes than there is room for. */
static void with_refusals(long rounds) {
  MPI_Errhandler handler;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(refused, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (volatile long i = 0; i < rounds; ++i) {
    int values[2] = {(int)i, 0};
    const int much = i % SELDOM == SELDOM - 1 ? 2 : 1;
    if (rank == 0) MPI_Send(values, much, MPI_INT, other, 0, comm);
    if (rank == 1 && setjmp(out) == 0) MPI_Recv(values, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
    if (is_child) _exit(0);
    if (rank == 1) MPI_Send(values, 1, MPI_INT, other, 1, comm);
    if (rank == 0) MPI_Recv(values, 1, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE);
  }
  if (refusals != (rank == 1 ? rounds / SELDOM : 0) || looks != refusals) MPI_Abort(MPI_COMM_WORLD, 5);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  const long rounds = atol(argv[1]);
  jumps = argc > 2;
  handles_that_come_back(rounds);
  functions_by_turns(rounds);
  with_refusals(rounds);
  MPI_Finalize();
  return 0;
}
