// Messages of more than 2^31 bytes: by a large datatype, and by a large count where the MPI has them.
#include "check.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

static const size_t kBytes = (size_t)2200 << 20;  // 2200 MiB: more than an int counts

static uint64_t sum_of(const unsigned char *data) {
  const uint64_t *word = (const uint64_t *)data;
  uint64_t sum = 0;
  for (size_t i = 0; i < kBytes / 8; i += 61) sum = sum * 31 + word[i];
  return sum;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char *data = malloc(kBytes);
  uint64_t *word = (uint64_t *)data;
  for (size_t i = 0; i < kBytes / 8; ++i) word[i] = rank ? 0 : i * UINT64_C(0x9e3779b97f4a7c15);
  uint64_t expect = sum_of(data);
  MPI_Bcast(&expect, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  MPI_Datatype mebibyte;
  MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte);
  MPI_Type_commit(&mebibyte);
  MPI_Status status;
  int count = -1;
  if (rank == 0) MPI_Send(data, (int)(kBytes >> 20), mebibyte, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Recv(data, (int)(kBytes >> 20), mebibyte, 0, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, mebibyte, &count);
    CHECK(count == (int)(kBytes >> 20) && sum_of(data) == expect);
    printf("datatype %d MiB\n", count);
  }
#if MPI_VERSION >= 4
  if (rank == 1) {
    for (size_t i = 0; i < kBytes / 8; ++i) word[i] = 0;
    MPI_Recv_c(data, (MPI_Count)kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
    MPI_Count bytes = -1;
    MPI_Get_count_c(&status, MPI_BYTE, &bytes);
    CHECK(bytes == (MPI_Count)kBytes && sum_of(data) == expect);
    printf("count %lld bytes\n", (long long)bytes);
  } else if (rank == 0) {
    MPI_Send_c(data, (MPI_Count)kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  }
#endif
  MPI_Type_free(&mebibyte);
  free(data);
  MPI_Finalize();
  return check_failures != 0;
}
