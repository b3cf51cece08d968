// Looks MPI functions up by name in every way that programs do, and says what it found. Compiled three ways: with
// main(), as a library that an executable links, and as a plug-in that is opened at run time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open_mpi.h"

#define WEAK(name) extern __typeof__(int(void)) weak_##name __asm__(#name) __attribute__((weak));
#define WEAK_NAMES(X)                                                                                                   \
  X(MPI_Send) X(MPI_Send_c) X(PMPI_Send_c) X(MPI_Iallgather_c) X(MPI_Psend_init) X(MPI_Session_init) X(MPI_Comm_idup)  \
  X(MPI_Isendrecv) X(MPI_Barrier_init) X(PMPI_Barrier) X(MPIX_Barrier_init) X(MPI_Allreduce_c) X(mpi_send_)            \
  X(mpi_send_f08_) X(mpi_barrier_init_) X(opal_progress) X(ucp_worker_progress)
WEAK_NAMES(WEAK)

static const struct {
  const char *name;
  void *address;
} weak[] = {
#define ROW(name) {#name, (void *)&weak_##name},
    WEAK_NAMES(ROW)
};

/// One line a name: whether dlsym finds it, and for C names whether dlerror says that it does not.
static void look_up(FILE *out, const char *when, void *where, const char *names) {
  char line[256];
  FILE *file = fopen(names, "r");
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    dlerror();
    void *address = dlsym(where, line);
    const char *error = dlerror();
    const int is_c = strncmp(line, "MPI", 3) == 0 || strncmp(line, "PMPI", 4) == 0;
    fprintf(out, "%s %s %s%s\n", when, line, address ? "there" : "none", is_c && error ? " with error" : "");
  }
  fclose(file);
}

int probe(int argc, char **argv) {
  int rank, sum = 0, one = 1;
  char *text;
  size_t length;
  FILE *out = open_memstream(&text, &length);
  for (unsigned i = 0; i < sizeof weak / sizeof *weak; ++i) fprintf(out, "weak %s %s\n", weak[i].name, weak[i].address ? "there" : "none");
  look_up(out, "default", RTLD_DEFAULT, argv[1]);
  void *self = dlopen(NULL, RTLD_LAZY);
  look_up(out, "self", self, argv[1]);
  void *library = opened_mpi();
  look_up(out, "library", library, argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  __typeof__(MPI_Allreduce) *by_handle = (__typeof__(MPI_Allreduce) *)dlsym(library, "MPI_Allreduce");
  const char *error = dlerror();
  by_handle(&sum, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (error || one != 4) fprintf(out, "by handle %d %s\n", one, error ? error : "");
  fclose(out);
  if (rank == 0) printf("%ssum %d\n", text, sum);
  MPI_Finalize();
  return 0;
}

#ifdef WITH_MAIN
int main(int argc, char **argv) { return probe(argc, argv); }
#endif
