// Exceptions and long jumps leave MPI calls through Fallow; every call after them is made and counted as before.
#include "check.h"

#include <csetjmp>
#include <mpi.h>
#include <stdexcept>

static jmp_buf landing;
static int freed;

struct Guard {  // destructors run on the way out
  ~Guard() { freed++; }
};

static void throwing_op(void*, void*, int*, MPI_Datatype*) { throw std::runtime_error("from an operation"); }
static void throwing_handler(MPI_Comm*, int*, ...) { throw std::runtime_error("from an error handler"); }
static void jumping_handler(MPI_Comm*, int*, ...) { longjmp(landing, 1); }

static int send_to_nowhere(int size) {
  Guard guard;
  int value = 0;
  return MPI_Send(&value, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
}

static void exchange(int rank, int size) {
  int value = rank, got = -1, sum = 0;
  if (rank == 0) compute(0.003);
  MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(got == (rank + size - 1) % size && sum == size * (size - 1) / 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, caught = 0, jumped = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op op;
  MPI_Op_create(throwing_op, 1, &op);
  MPI_Errhandler throwing, jumping;
  MPI_Comm_create_errhandler(throwing_handler, &throwing);
  MPI_Comm_create_errhandler(jumping_handler, &jumping);
  for (int i = 0; i < 3; ++i) {
    try {
      int in = 1, out = 2;
      MPI_Reduce_local(&in, &out, 1, MPI_INT, op);
    } catch (const std::runtime_error&) {
      caught++;
    }
    exchange(rank, size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, throwing);
    try {
      send_to_nowhere(size);
    } catch (const std::runtime_error&) {
      caught++;
    }
    exchange(rank, size);
    try {  // from a call that blocks
      int value;
      MPI_Recv(&value, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } catch (const std::runtime_error&) {
      caught++;
    }
    exchange(rank, size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, jumping);
    if (setjmp(landing) == 0) {
      int value = 0;
      MPI_Ssend(&value, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
    } else {
      jumped++;
    }
    exchange(rank, size);
  }
  CHECK(caught == 9 && jumped == 3 && freed == 3);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&throwing);
  MPI_Errhandler_free(&jumping);
  MPI_Op_free(&op);
  MPI_Finalize();
  if (rank == 0) std::puts("throws done");
  return check_failures != 0;
}
