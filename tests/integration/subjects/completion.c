// Wait, Test and their any, some and all forms over many requests at once.
#include "subject.h"

enum { kRequests = 24 };

static void post(MPI_Comm comm, int rank, int size, int *in, MPI_Request *requests) {
  for (int i = 0; i < kRequests; ++i) {
    in[i] = -1;
    MPI_Irecv(&in[i], 1, MPI_INT, (rank + size - 1) % size, i, comm, &requests[i]);
  }
}

static void send(MPI_Comm comm, int rank, int size) {
  for (int k = 0; k < kRequests; ++k) {
    const int tag = (k * 7 + rank) % kRequests, value = rank * 100 + tag;
    if (k % 8 == 3) compute(0.0003);
    MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, tag, comm);
  }
}

static void one_done(int index, const MPI_Status *status, const int *in, int *seen, int source) {
  CHECK(index >= 0 && index < kRequests && !seen[index]);
  CHECK(status->MPI_TAG == index && status->MPI_SOURCE == source && in[index] == source * 100 + index);
  seen[index] = 1;
}

SUBJECT(completion, 2) {
  int rank, size, in[kRequests], indices[kRequests];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int source = (rank + size - 1) % size;
  MPI_Request requests[kRequests];
  MPI_Status statuses[kRequests], status;
  for (int way = 0; way < 7; ++way) {
    int seen[kRequests] = {0}, done = 0, flag = 0, count, index;
    post(comm, rank, size, in, requests);
    send(comm, rank, size);
    while (done < kRequests) {
      count = 0;
      if (way == 0) {
        MPI_Waitany(kRequests, requests, &index, &status);
        one_done(index, &status, in, seen, source);
        done++;
      } else if (way == 1) {
        MPI_Testany(kRequests, requests, &index, &flag, &status);
        if (flag) one_done(index, &status, in, seen, source), done++;
      } else if (way == 2) {
        MPI_Waitsome(kRequests, requests, &count, indices, statuses);
        CHECK(count > 0);
      } else if (way == 3) {
        MPI_Testsome(kRequests, requests, &count, indices, statuses);
      } else if (way == 4) {
        MPI_Waitall(kRequests, requests, statuses);
        for (int i = 0; i < kRequests; ++i) one_done(i, &statuses[i], in, seen, source);
        done = kRequests;
      } else if (way == 5) {
        MPI_Testall(kRequests, requests, &flag, statuses);
        for (int i = 0; flag && i < kRequests; ++i) one_done(i, &statuses[i], in, seen, source);
        done = flag ? kRequests : 0;
      } else {
        MPI_Wait(&requests[done], &status);
        one_done(done++, &status, in, seen, source);
      }
      for (int i = 0; i < count; ++i) one_done(indices[i], &statuses[i], in, seen, source);
      done += count;
    }
    for (int i = 0; i < kRequests; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
    MPI_Barrier(comm);
  }
  // Request_get_status looks and does not touch.
  MPI_Request request;
  int value = rank, flag = 0;
  MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, comm, &request);
  MPI_Request_get_status(request, &flag, &status);
  CHECK(!flag);
  MPI_Send(&value, 1, MPI_INT, rank, 1, comm);
  while (!flag) MPI_Request_get_status(request, &flag, &status);
  CHECK(request != MPI_REQUEST_NULL && status.MPI_SOURCE == rank);
  MPI_Wait(&request, &status);
  CHECK(request == MPI_REQUEST_NULL && in[0] == rank);
}
