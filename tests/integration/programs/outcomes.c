/* Receives that do not say what they take, and cancelled requests. Three ranks; rank 0 writes to the file argv[1], a line
   for each request that completes, what became of it: source and tag, or "cancelled". */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

#include "check.h"

static int rank, in[8], one = 1;
static FILE* said;

static void tell(const MPI_Status* status) {
  int cancelled;
  MPI_Test_cancelled(status, &cancelled);
  if (cancelled) {
    fprintf(said, "cancelled\n");
  } else {
    fprintf(said, "%d %d\n", status->MPI_SOURCE, status->MPI_TAG);
  }
}

/* Rank 1 comes last here, for it rests; by the CPU's clock it would come first. */
static void who_is_next(void) {
  if (rank == 0) {
    for (int i = 0; i < 2; ++i) {
      MPI_Request r;
      MPI_Status status;
      MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &r);
      MPI_Wait(&r, &status);
      tell(&status);
      MPI_Recv(in, 1, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return;
  }
  if (rank == 1) nanosleep(&(struct timespec){0, 200000000}, NULL);
  if (rank == 2) compute(0.02);
  for (int i = 0; i < 2; ++i) MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

/* The program ignores the status; only rank 2 sends. */
static void not_asked(void) {
  MPI_Request r;
  if (rank == 2) MPI_Send(&one, 1, MPI_INT, 0, 50, MPI_COMM_WORLD);
  if (rank != 0) return;
  MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  fprintf(said, "2 50\n");
}

static void of_several(void) {
  MPI_Request r[3];
  MPI_Status status[3];
  int index, count, indices[3];
  if (rank != 0) {
    MPI_Send(&one, 1, MPI_INT, 0, 10 + rank, MPI_COMM_WORLD);
    MPI_Send(&one, 1, MPI_INT, 0, 20, MPI_COMM_WORLD);
    MPI_Send(&one, 1, MPI_INT, 0, 30, MPI_COMM_WORLD);
    return;
  }
  MPI_Irecv(&in[0], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &r[0]);
  MPI_Irecv(&in[1], 1, MPI_INT, 2, 12, MPI_COMM_WORLD, &r[1]); /* of which all is known */
  MPI_Irecv(&in[2], 1, MPI_INT, MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &r[2]);
  MPI_Waitall(3, r, status);
  tell(&status[0]);
  tell(&status[2]);
  r[0] = MPI_REQUEST_NULL; /* so that the other's number is not 0 */
  MPI_Recv_init(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&r[1]);
    if (i == 0) {
      MPI_Waitany(2, r, &index, &status[0]);
    } else {
      count = 0;
      while (count == 0) MPI_Testsome(2, r, &count, indices, status);
    }
    tell(&status[0]);
  }
  MPI_Request_free(&r[1]);
}

/* Requests whose status the program looks at before it gives them back. */
static void looked_at(void) {
  MPI_Request r;
  MPI_Status status;
  if (rank == 0) {
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &r);
    MPI_Cancel(&r);
    for (int done = 0; !done;) MPI_Request_get_status(r, &done, &status);
    tell(&status);
    MPI_Request_free(&r);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) MPI_Send(&one, 1, MPI_INT, 0, 50, MPI_COMM_WORLD);
  if (rank == 1) MPI_Send(&one, 1, MPI_INT, 0, 51, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
    for (int done = 0; !done;) MPI_Request_get_status(r, &done, &status);
    tell(&status);
    MPI_Request_free(&r);
    const int first = status.MPI_TAG;
    MPI_Recv(in, 1, MPI_INT, first == 50 ? 1 : 2, first == 50 ? 51 : 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void cancelled(void) {
  MPI_Request r;
  MPI_Status status;
  if (rank == 1) {
    MPI_Send(&one, 1, MPI_INT, 0, 41, MPI_COMM_WORLD);
    MPI_Send(&one, 1, MPI_INT, 0, 42, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, &r);
    MPI_Cancel(&r);
    MPI_Wait(&r, &status);
    tell(&status);
    MPI_Irecv(in, 1, MPI_INT, 1, 41, MPI_COMM_WORLD, &r);
    MPI_Recv(in, 1, MPI_INT, 1, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Cancel(&r); /* too late: what it waited for came before that */
    MPI_Wait(&r, &status);
    tell(&status);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) MPI_Send(&one, 1, MPI_INT, 0, 40, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(argc == 2);
  if (rank == 0) CHECK((said = fopen(argv[1], "w")) != NULL);
  who_is_next();
  MPI_Barrier(MPI_COMM_WORLD);
  not_asked();
  MPI_Barrier(MPI_COMM_WORLD);
  of_several();
  MPI_Barrier(MPI_COMM_WORLD);
  looked_at();
  MPI_Barrier(MPI_COMM_WORLD);
  cancelled();
  if (rank == 0) fclose(said);
  MPI_Finalize();
  return check_failures;
}
