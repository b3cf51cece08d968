// Messages of one sender on one communicator do not overtake each other, whichever way they are received.
#include "subject.h"

#include <stdlib.h>

enum { kMessages = 60, kLong = 20000 };

static int length(int i) { return i % 7 == 3 ? kLong : 1 + i % 5; }  // some of them by rendezvous

static void send_all(MPI_Comm comm, int rank) {
  int *data = calloc(kLong, sizeof *data);
  for (int i = 0; i < kMessages; ++i) {
    data[0] = rank * kMessages + i;
    if (i % 11 == 5) compute(0.0005);
    MPI_Send(data, length(i), MPI_INT, 0, i % 3, comm);
  }
  free(data);
}

static void receive_any(MPI_Comm comm, int size) {
  int *data = malloc(kLong * sizeof *data), *next = calloc((size_t)size, sizeof *next);
  for (int n = 0; n < kMessages * (size - 1); ++n) {
    MPI_Status status;
    int count;
    MPI_Recv(data, kLong, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    const int i = next[status.MPI_SOURCE]++;
    CHECK(data[0] == status.MPI_SOURCE * kMessages + i);
    CHECK(status.MPI_TAG == i % 3 && count == length(i));
  }
  free(next);
  free(data);
}

// Receives by tag, posted against the order of sending: each tag has an order of its own.
static void receive_by_tag(MPI_Comm comm, int size) {
  int *data = malloc(kLong * sizeof *data);
  for (int peer = 1; peer < size; ++peer) {
    for (int tag = 2; tag >= 0; --tag) {
      for (int i = tag; i < kMessages; i += 3) {
        MPI_Recv(data, kLong, MPI_INT, peer, tag, comm, MPI_STATUS_IGNORE);
        CHECK(data[0] == peer * kMessages + i);
      }
    }
  }
  free(data);
}

// A blocking receive must take what was sent after what receives posted earlier took.
static void receive_mixed(MPI_Comm comm, int size) {
  int *data = malloc(3 * (size_t)kLong * sizeof *data);
  for (int peer = 1; peer < size; ++peer) {
    for (int i = 0; i < kMessages; i += 3) {
      MPI_Request request[2];
      MPI_Irecv(data, kLong, MPI_INT, peer, MPI_ANY_TAG, comm, &request[0]);
      MPI_Irecv(data + kLong, kLong, MPI_INT, peer, MPI_ANY_TAG, comm, &request[1]);
      MPI_Recv(data + 2 * kLong, kLong, MPI_INT, peer, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
      MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
      for (int k = 0; k < 3; ++k) CHECK(data[k * kLong] == peer * kMessages + i + k);
    }
  }
  free(data);
}

// What Probe shows is what the next matching receive takes.
static void receive_probed(MPI_Comm comm, int size) {
  int *data = malloc(kLong * sizeof *data), *next = calloc((size_t)size, sizeof *next);
  for (int n = 0; n < kMessages * (size - 1); ++n) {
    MPI_Status seen, got;
    int count, flag = 0;
    if (n % 2) {
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &seen);
    } else {
      while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &seen);
    }
    MPI_Get_count(&seen, MPI_INT, &count);
    MPI_Recv(data, count, MPI_INT, seen.MPI_SOURCE, seen.MPI_TAG, comm, &got);
    const int i = next[got.MPI_SOURCE]++;
    CHECK(got.MPI_SOURCE == seen.MPI_SOURCE && got.MPI_TAG == seen.MPI_TAG && count == length(i));
    CHECK(data[0] == got.MPI_SOURCE * kMessages + i);
  }
  free(next);
  free(data);
}

SUBJECT(wildcards, 2) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  void (*const receive[])(MPI_Comm, int) = {receive_any, receive_mixed, receive_probed};
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) receive[i](comm, size);
    else send_all(comm, rank);
    MPI_Barrier(comm);
  }
  // Against the order of sending only what needs no buffering: the sender's receives are all posted.
  if (rank == 0) {
    receive_by_tag(comm, size);
  } else {
    int *data = calloc((size_t)kMessages * kLong, sizeof *data);
    MPI_Request request[kMessages];
    for (int i = 0; i < kMessages; ++i) {
      data[i * kLong] = rank * kMessages + i;
      MPI_Isend(data + i * kLong, length(i), MPI_INT, 0, i % 3, comm, &request[i]);
    }
    MPI_Waitall(kMessages, request, MPI_STATUSES_IGNORE);
    free(data);
  }
}
