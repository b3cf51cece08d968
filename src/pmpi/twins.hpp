// Blocking calls carried out as their non-blocking twins with tests, and rests between the tests. For MPI libraries that
// have no idle hook, and where the library holds a lock while it polls and other threads want it: here nothing of the
// library is held during a rest. Matching order, errors and statuses are those that MPI gives the twin, which are the same;
// only a message of an error handler names another function. Collective calls have no twin here: it may not match the
// blocking form on other ranks.
#pragma once

#include <algorithm>

#include "pmpi/hooks.hpp"
#include "pmpi/scope.hpp"

namespace fallow::pmpi {

/// Looks the library's functions up, for `g_own` too. False if it lacks one of them.
bool load_twins(Runtime& rt) noexcept;

namespace twin {

/// Smaller messages are sent by the library's blocking call, which does not wait with them.
inline constexpr std::uint64_t kSentAtOnce = 1024;

/// The library's functions, by their standard names.
struct Calls {
  decltype(&MPI_Isend) isend = nullptr, issend = nullptr, irsend = nullptr;
  decltype(&MPI_Irecv) irecv = nullptr;
  decltype(&MPI_Imrecv) imrecv = nullptr;
  decltype(&MPI_Iprobe) iprobe = nullptr;
  decltype(&MPI_Improbe) improbe = nullptr;
  decltype(&MPI_Request_get_status) get_status = nullptr;
  decltype(&MPI_Win_test) win_test = nullptr;
  decltype(&MPI_Cancel) cancel = nullptr;
  decltype(&MPI_Wait) wait = nullptr;
  decltype(&MPI_Test) test = nullptr;
  decltype(&MPI_Comm_get_errhandler) get_errhandler = nullptr;
  decltype(&MPI_Errhandler_free) free_errhandler = nullptr;
#if MPI_VERSION >= 4
  decltype(&MPI_Isend_c) isend_c = nullptr, issend_c = nullptr, irsend_c = nullptr;
  decltype(&MPI_Irecv_c) irecv_c = nullptr;
  decltype(&MPI_Imrecv_c) imrecv_c = nullptr;
#endif
  bool looks_end_persistent = false;  ///< a look at a persistent request that is complete makes it inactive, its outcome is lost
};
extern Calls g_calls;

/// A wait of the calling thread in which the idle hooks stand aside.
class Waiting {
 public:
  explicit Waiting(Thread& thread) noexcept : thread_(thread) { this_thread().waiting = nullptr; }

  /// Tests until one says that it is `done`, or fails; returns what the last test returned. One that called an error handler of the
  /// program's own may return success and say nothing.
  template <class Test>
  int until(int& done, Test test) noexcept {
    for (;;) {
      done = kUnsaid;
      const int result = test();
      if (result != MPI_SUCCESS || done != 0) return result;
      if ((this_thread().polls_left & kCatchingUp) != 0) catch_up_in_wait(thread_);
      if (poll_is_due()) slow_poll(thread_);
    }
  }

 private:
  static constexpr int kUnsaid = -1;
  Thread& thread_;
};

// Which error handler hears of a message that is too long: that of the communicator if it came with MPI_Recv. Otherwise Open MPI
// asks the same one, and none in a look; MPICH 5 asks that of MPI_COMM_SELF in a look and for several requests, and the
// communicator's in a test or wait for one, but that of MPI_COMM_WORLD where the rank has sent the message to itself; MPICH 4.0
// always that of MPI_COMM_WORLD.
inline constexpr bool kLooksAreSilent = FALLOW_FAMILY_NUMBER == static_cast<int>(trace::Family::openmpi);
inline constexpr bool kTestsTellTheRightOne = FALLOW_FAMILY_NUMBER == static_cast<int>(trace::Family::mpiabi);

/// Whether errors that looks find end as those of the call itself: no handler of the program's own hears of them twice.
bool looks_end_alike() noexcept;
/// The same of a receive on this communicator.
bool receives_end_alike(MPI_Comm comm, int source) noexcept;

/// Whether requests can be looked at, and how many at a time: each look makes the library progress.
inline bool can_look_at(int count) noexcept {
  constexpr int kAtOnce = 256;
  return count > 0 && count <= kAtOnce && !runtime().looks_may_harm.load(std::memory_order_relaxed) && looks_end_alike();
}

inline bool is_kept_by_looks(MPI_Request request) noexcept {
  return !g_calls.looks_end_persistent || runtime().prepared.find(handle_key(request)) == nullptr;
}

/// Until the request is complete or inactive; false on an error, which the call that follows finds again.
inline bool look_at(Waiting waiting, MPI_Request request) noexcept {
  int done = 0;
  MPI_Status status;
  return request == MPI_REQUEST_NULL || waiting.until(done, [&] { return g_calls.get_status(request, &done, &status); }) == MPI_SUCCESS;
}

/// Until one of the requests is complete or inactive, or an error is found.
inline void look_at_any(Thread& thread, int count, const MPI_Request* requests) noexcept {
  if (!can_look_at(count) || !std::all_of(requests, requests + count, is_kept_by_looks)) return;
  int done = 0;
  Waiting(thread).until(done, [&] {
    int result = MPI_SUCCESS, active = 0;
    MPI_Status status;
    done = 0;
    for (int i = 0; i < count && done == 0 && result == MPI_SUCCESS; ++i) {
      if (requests[i] == MPI_REQUEST_NULL) continue;
      ++active;
      result = g_calls.get_status(requests[i], &done, &status);
    }
    if (active == 0) done = 1;
    return result;
  });
}

/// MPI_Wait.
inline int wait_for(Waiting waiting, MPI_Request* request, MPI_Status* status) noexcept {
  if constexpr (kTestsTellTheRightOne) {
    int done = 0;
    return waiting.until(done, [&] { return g_calls.test(request, &done, status); });
  }
  look_at(waiting, *request);
  return g_calls.wait(request, status);
}

/// MPICH 5 returns success from a call that it refuses once an error handler of the program's own has heard of it.
inline bool has_started(int result, MPI_Request request) noexcept { return result == MPI_SUCCESS && request != MPI_REQUEST_NULL; }

template <class Start, class... Arguments>
int started(Thread& thread, Start start, MPI_Status* status, Arguments... arguments) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  const int result = start(arguments..., &request);
  return has_started(result, request) ? wait_for(Waiting(thread), &request, status) : result;
}

/// `next`: the blocking call, for messages that do not wait.
template <class Next, class Start, class Count>
int send(Thread& t, Next next, Start start, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) noexcept {
  if (is_at_most(kSentAtOnce, t, count, type)) return next(buffer, count, type, peer, tag, comm);
  return started(t, start, MPI_STATUS_IGNORE, buffer, count, type, peer, tag, comm);
}

template <class Next, class SendStart, class RecvStart, class Count>
int sendrecv(Thread& t, Next next, SendStart send_start, RecvStart recv_start, const void* out, Count out_count, MPI_Datatype out_type, int dest, int out_tag,
             void* in, Count in_count, MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status* status) noexcept {
  if (source == MPI_PROC_NULL || dest == MPI_PROC_NULL || !receives_end_alike(comm, source)) {
    return next(out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, status);
  }
  MPI_Request receive = MPI_REQUEST_NULL, sent = MPI_REQUEST_NULL;
  if (const int result = recv_start(in, in_count, in_type, source, in_tag, comm, &receive); !has_started(result, receive)) return result;
  if (const int result = send_start(out, out_count, out_type, dest, out_tag, comm, &sent); !has_started(result, sent)) {
    g_calls.cancel(&receive);
    g_calls.wait(&receive, MPI_STATUS_IGNORE);
    return result;
  }
  // Each by itself: a wait for both would give an error of either another class.
  const int receiving = wait_for(Waiting(t), &receive, status), sending = wait_for(Waiting(t), &sent, MPI_STATUS_IGNORE);
  return receiving != MPI_SUCCESS ? receiving : sending;
}

// What the wrappers call: the arguments of the blocking call after the thread and the library's own form of it.

template <class Next, class... A>
int MPI_Send(Thread& t, Next next, A... a) noexcept { return send(t, next, g_calls.isend, a...); }
template <class Next, class... A>
int MPI_Rsend(Thread& t, Next next, A... a) noexcept { return send(t, next, g_calls.irsend, a...); }
template <class Next, class... A>
int MPI_Ssend(Thread& t, Next, A... a) noexcept { return started(t, g_calls.issend, MPI_STATUS_IGNORE, a...); }

template <class Next, class Count>
int MPI_Recv(Thread& t, Next next, void* buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) noexcept {
  // MPICH 4.0 gives the twin no status.
  if (source == MPI_PROC_NULL || !receives_end_alike(comm, source)) return next(buffer, count, type, source, tag, comm, status);
  return started(t, g_calls.irecv, status, buffer, count, type, source, tag, comm);
}
template <class Next, class Count>
int MPI_Mrecv(Thread& t, Next next, void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) noexcept {
  if (*message == MPI_MESSAGE_NO_PROC || !looks_end_alike()) return next(buffer, count, type, message, status);
  return started(t, g_calls.imrecv, status, buffer, count, type, message);
}
template <class Next, class... A>
int MPI_Sendrecv(Thread& t, Next next, A... a) noexcept { return sendrecv(t, next, g_calls.isend, g_calls.irecv, a...); }

#if MPI_VERSION >= 4
template <class Next, class... A>
int MPI_Send_c(Thread& t, Next next, A... a) noexcept { return send(t, next, g_calls.isend_c, a...); }
template <class Next, class... A>
int MPI_Rsend_c(Thread& t, Next next, A... a) noexcept { return send(t, next, g_calls.irsend_c, a...); }
template <class Next, class... A>
int MPI_Ssend_c(Thread& t, Next, A... a) noexcept { return started(t, g_calls.issend_c, MPI_STATUS_IGNORE, a...); }
template <class Next>
int MPI_Recv_c(Thread& t, Next next, void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) noexcept {
  if (source == MPI_PROC_NULL || !receives_end_alike(comm, source)) return next(buffer, count, type, source, tag, comm, status);
  return started(t, g_calls.irecv_c, status, buffer, count, type, source, tag, comm);
}
template <class Next>
int MPI_Mrecv_c(Thread& t, Next next, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) noexcept {
  if (*message == MPI_MESSAGE_NO_PROC || !looks_end_alike()) return next(buffer, count, type, message, status);
  return started(t, g_calls.imrecv_c, status, buffer, count, type, message);
}
template <class Next, class... A>
int MPI_Sendrecv_c(Thread& t, Next next, A... a) noexcept { return sendrecv(t, next, g_calls.isend_c, g_calls.irecv_c, a...); }
#endif

// Waits: requests are looked at until the call would return at once, and then the call itself is made. So errors, statuses and
// what it frees are its own. (MPICH's tests are not as good: those of 4.0 lose the status of a receive from MPI_PROC_NULL,
// and MPI_Testall refuses persistent collective requests.) Persistent requests are not looked at since MPICH 4.2. Where there are generalized
// requests none is: a look asks them, which the program could count, and does not make MPICH's own for files progress.

template <class Next>
int MPI_Wait(Thread& t, Next next, MPI_Request* request, MPI_Status* status) noexcept {
  if constexpr (kTestsTellTheRightOne) {
    if (!runtime().looks_may_harm.load(std::memory_order_relaxed)) return wait_for(Waiting(t), request, status);
  } else if (can_look_at(1) && is_kept_by_looks(*request)) {
    look_at(Waiting(t), *request);
  }
  return next(request, status);
}
template <class Next>
int MPI_Waitall(Thread& t, Next next, int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  const int looks = can_look_at(1) ? count : 0;
  for (int i = 0; i < looks; ++i) {
    if (is_kept_by_looks(requests[i]) && !look_at(Waiting(t), requests[i])) break;
  }
  return next(count, requests, statuses);
}
template <class Next>
int MPI_Waitany(Thread& t, Next next, int count, MPI_Request* requests, int* index, MPI_Status* status) noexcept {
  look_at_any(t, count, requests);
  return next(count, requests, index, status);
}
template <class Next>
int MPI_Waitsome(Thread& t, Next next, int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) noexcept {
  look_at_any(t, count, requests);
  return next(count, requests, completed, indices, statuses);
}

template <class Next>
int MPI_Probe(Thread& t, Next next, int source, int tag, MPI_Comm comm, MPI_Status* status) noexcept {
  if (source == MPI_PROC_NULL) return next(source, tag, comm, status);
  int done = 0;
  return Waiting(t).until(done, [&] { return g_calls.iprobe(source, tag, comm, &done, status); });
}
template <class Next>
int MPI_Mprobe(Thread& t, Next next, int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) noexcept {
  if (source == MPI_PROC_NULL) return next(source, tag, comm, message, status);
  int done = 0;
  return Waiting(t).until(done, [&] { return g_calls.improbe(source, tag, comm, &done, message, status); });
}
template <class Next>
int MPI_Win_wait(Thread& t, Next, MPI_Win win) noexcept {
  int done = 0;
  return Waiting(t).until(done, [&] { return g_calls.win_test(win, &done); });
}

}  // namespace twin
}  // namespace fallow::pmpi
