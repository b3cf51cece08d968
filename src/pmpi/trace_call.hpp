// Fills the trace's record of one call, for the generated wrappers. See trace::CallEvent for what each field means.
#pragma once

#include <cstdint>
#include <type_traits>

#include "pmpi/caches.hpp"
#include "pmpi/runtime.hpp"

namespace fallow::pmpi {

class TraceCall {
 public:
  FALLOW_HOT TraceCall(Thread& thread, ThreadTrace& trace, trace::Op op, int result, const CallSpan& span) noexcept
      : thread_(thread), t_(trace), r_(trace.begin(op, result == MPI_SUCCESS ? 0 : trace::kEventFailed, span)) {}

  void flag(trace::EventFlags f) noexcept { r_.flags = static_cast<std::uint16_t>(r_.flags | f); }
  void flag_if(bool set, trace::EventFlags f) noexcept {
    if (set) flag(f);
  }

  // --- where it goes
  void comm(MPI_Comm c) noexcept {
    info_ = comm_info(thread_, c);
    r_.comm = info_ != nullptr ? info_->traced : trace::kCommNone;
  }
  void comm_number(std::uint32_t number) noexcept { r_.comm = number; }
  void peer(int rank) noexcept { r_.peer = peer_of(rank, trace::kEventAnySource); }
  void recv_peer(int rank) noexcept { r_.extra().recv_peer = peer_of(rank, trace::kEventAnySource); }
  void root(int rank) noexcept { r_.extra().root = peer_of(rank, trace::kEventAnySource); }
  void tag(int t) noexcept { r_.tag = tag_of(t, r_.peer); }
  void recv_tag(int t) noexcept { r_.extra().recv_tag = tag_of(t, r_.extra().recv_peer); }

  /// What a receive or probe matched; the call's own peer and tag are in place.
  void matched(const MPI_Status* status) noexcept {
    if (!has_status(status)) return;
    if (r_.peer == trace::kAnyPeer) r_.peer = status->MPI_SOURCE;
    if (r_.tag == trace::kAnyTag) r_.tag = status->MPI_TAG;
  }
  void recv_matched(const MPI_Status* status) noexcept {
    if (!has_status(status)) return;
    if (r_.extra().recv_peer == trace::kAnyPeer) r_.extra().recv_peer = status->MPI_SOURCE;
    if (r_.extra().recv_tag == trace::kAnyTag) r_.extra().recv_tag = status->MPI_TAG;
  }

  // --- how much
  void bytes(std::uint64_t n) noexcept { r_.bytes = n; }
  void recv_bytes(std::uint64_t n) noexcept { r_.extra().recv_bytes = n; }
  template <class Count>
  std::uint64_t size(Count count, MPI_Datatype type) noexcept {
    if (count < 0 || (count > 0 && type == MPI_DATATYPE_NULL)) [[unlikely]] refused();
    return data_size(thread_, count, type);
  }
  /// Ranks that a collective sends to and receives from.
  std::int32_t peers() const noexcept { return info_ != nullptr ? info_->peers : 0; }
  /// Of the caller's own group.
  std::int32_t own_group() const noexcept { return info_ != nullptr ? info_->size : 0; }
  std::int32_t neighbors() const noexcept { return info_ != nullptr ? info_->neighbors : 0; }
  std::int32_t in_neighbors() const noexcept { return info_ != nullptr ? info_->in_neighbors : 0; }
  std::uint64_t each(std::int32_t ranks, std::uint64_t block) const noexcept { return size_as_u64(ranks) * block; }
  std::int32_t own() const noexcept { return info_ != nullptr ? info_->rank : 0; }
  /// This rank has the data of a rooted collective.
  bool is_root(int root) const noexcept { return root == MPI_ROOT || (info_ != nullptr && !info_->inter && root == info_->rank); }

  /// Bytes per peer, and their sum.
  template <class Count>
  std::uint64_t counts(std::int32_t n, const Count* counts, MPI_Datatype type) noexcept {
    return each_count(n, [&](std::int32_t i) { return size(counts[i], type); }, false);
  }
  template <class Count>
  std::uint64_t counts(std::int32_t n, const Count* counts, const MPI_Datatype* types) noexcept {
    return each_count(n, [&](std::int32_t i) { return size(counts[i], types[i]); }, false);
  }
  template <class Count, class Type>
  std::uint64_t recv_counts(std::int32_t n, const Count* counts, Type type) noexcept {
    if constexpr (std::is_same_v<Type, MPI_Datatype>) {
      return each_count(n, [&](std::int32_t i) { return size(counts[i], type); }, true);
    } else {
      return each_count(n, [&](std::int32_t i) { return size(counts[i], type[i]); }, true);
    }
  }

  /// Partitions that a request has, or that are ready.
  void parts(std::int64_t n) noexcept {
    if (n > 0) t_.recorder.add_count(r_, static_cast<std::uint64_t>(n));
  }

  /// A communicator was made from the call's own one, and by all of its members.
  void made_comm(MPI_Comm made) noexcept { runtime().comms.insert_made(made, {.parent = r_.comm}); }
  /// By those members that called with this tag.
  void made_comm(MPI_Comm made, int tag) noexcept { runtime().comms.insert_made(made, {r_.comm, static_cast<std::uint32_t>(tag) + 1}); }
  /// By those processes that called with this tag, whatever their own communicators are.
  void made_between(MPI_Comm made, int tag) noexcept { runtime().comms.insert_made(made, {.tag = static_cast<std::uint32_t>(tag) + 1}); }
  void made_between(MPI_Comm made, const char* tag) noexcept;
  void made_copy(MPI_Comm copy, MPI_Comm comm) noexcept { runtime().comms.insert_copy(copy, comm, {.parent = r_.comm}); }
  /// A communicator with a topology was made: it is the call's, with the neighbours in it.
  void topology(MPI_Comm made) noexcept;
  /// The group of a win_start or win_post.
  void members(MPI_Group group) noexcept;

  // --- requests
  void created(const MPI_Request* request, bool persistent) noexcept {
    if (request == nullptr || *request == MPI_REQUEST_NULL) return;
    TraceShared& s = shared();
    s.lock.lock();
    const std::uint32_t id = s.requests.add(handle_key(*request), persistent, own_thread());
    if (s.doubts.any()) [[unlikely]] s.doubts.forget(id);
    if ((r_.flags & (trace::kEventAnySource | trace::kEventAnyTag)) != 0 && !is_told_wrong()) [[unlikely]] s.doubts.open(id, persistent);
    s.lock.unlock();
    name(id);
  }
  /// The call starts, cancels or looks at the request.
  void uses(MPI_Request request) noexcept {
    if (request == MPI_REQUEST_NULL) return;
    TraceShared& s = shared();
    s.lock.lock();
    const std::uint32_t id = s.requests.find(handle_key(request));
    s.lock.unlock();
    name(id);
  }
  void cancels(MPI_Request request) noexcept;
  void uses_all(std::int64_t count, const MPI_Request* requests) noexcept {
    for (std::int64_t i = 0; i < count; ++i) uses(requests[i]);
  }
  /// The program gives back the request that it gave to the call.
  void freed() noexcept {
    TraceShared& s = shared();
    s.lock.lock();
    const std::uint32_t id = s.requests.free(t_.handles[0], own_thread());
    if (s.doubts.any()) [[unlikely]] s.doubts.forget(id);
    s.lock.unlock();
    if (t_.handles[0] != 0) name(id);
  }
  /// Before the next four: what became of those requests that the trace has to tell it of. `count` requests have completed, of
  /// those given to the call the numbers `indices` (null: the first ones).
  void outcomes(std::int64_t count, const int* indices, const MPI_Status* statuses) noexcept {
    if (shared().doubts.any()) [[unlikely]] add_outcomes(count, indices, statuses);
  }
  /// Request number `i` of those given to the call has completed.
  void completed(std::int64_t i) noexcept {
    const std::uint64_t handle = i >= 0 && static_cast<std::size_t>(i) < t_.handles.size() ? t_.handles[static_cast<std::size_t>(i)] : 0;
    if (handle == 0) return;
    TraceShared& s = shared();
    s.lock.lock();
    const std::uint32_t id = s.requests.complete(handle, own_thread());
    if (s.doubts.any()) [[unlikely]] s.doubts.completed(id);
    s.lock.unlock();
    if (id != trace::kNoRequest) [[likely]] {
      t_.recorder.add_completed(r_, id);
    } else {
      flag(trace::kEventRequestsLost);
    }
  }
  void completed_all(std::int64_t count) noexcept {
    for (std::int64_t i = 0; i < count; ++i) completed(i);
  }
  void completed_some(std::int64_t count, const int* indices) noexcept {
    if (count == MPI_UNDEFINED) return;
    for (std::int64_t i = 0; i < count; ++i) completed(indices[i]);
  }
  /// After an error: those that are gone have completed.
  void completed_gone(std::int64_t count, const MPI_Request* requests) noexcept {
    for (std::int64_t i = 0; i < count; ++i) {
      if (requests[i] == MPI_REQUEST_NULL) completed(i);
    }
  }

  // --- windows, files, probed messages
  void made_window(MPI_Win window) noexcept { shared_set(shared().windows, handle_key(window), {r_.comm, peers()}); }
  void made_file(MPI_File file) noexcept { shared_set(shared().files, handle_key(file), r_.comm); }
  void window(MPI_Win w) noexcept {
    window_ = shared_find(shared().windows, handle_key(w));
    r_.comm = window_.comm;
  }
  void file(MPI_File f) noexcept { r_.comm = shared_find(shared().files, handle_key(f)); }
  void probed(MPI_Message message) noexcept;
  /// The call receives a message that was probed for.
  void receives(const ProbedMessage& message) noexcept {
    r_.comm = message.comm;
    r_.peer = message.peer;
    r_.tag = message.tag;
  }

 private:
  std::uint16_t own_thread() const noexcept { return static_cast<std::uint16_t>(thread_.index); }
  TraceShared& shared() noexcept { return runtime().tracer.shared(); }

  /// A library may return success from a call that it refuses, once the program's error handler has been called.
  void refused() noexcept {
    flag(trace::kEventFailed);
    r_.comm = trace::kCommNone;
    r_.peer = r_.extra().recv_peer = trace::kNoPeer;
  }
  std::int32_t peer_of(int rank, trace::EventFlags any) noexcept {
    if (rank >= 0) [[likely]] {
      if (r_.comm == trace::kCommNone) return trace::kNoPeer;
      const std::int32_t ranks = info_ != nullptr ? info_->peers : window_.peers;
      if (rank < ranks) [[likely]] return rank;
      flag(trace::kEventFailed);  // see refused()
      return trace::kNoPeer;
    }
    if (rank == MPI_PROC_NULL) return trace::kNullPeer;
    if (rank == MPI_ROOT) return trace::kRootHere;
    if (rank != MPI_ANY_SOURCE) return trace::kNoPeer;
    flag(any);
    return r_.comm != trace::kCommNone ? trace::kAnyPeer : trace::kNoPeer;
  }
  std::int32_t tag_of(int t, std::int32_t peer) noexcept {
    if (t >= 0) [[likely]] return t;
    if (t != MPI_ANY_TAG) {
      if (peer != trace::kNullPeer) refused();
      return trace::kNoTag;
    }
    flag(trace::kEventAnyTag);
    return trace::kAnyTag;
  }
  /// From MPI_PROC_NULL: there is no doubt of what it matches, and MPICH 4.0 gives it the status of a message from rank 0.
  /// MPICH (4.0 to 5.0) gives an exchange the status of whatever had its request before; Open MPI that of the receive.
  bool is_told_wrong() noexcept {
    const trace::Op op = r_.op;
    const bool exchanges = op == trace::Op::isendrecv || op == trace::Op::isendrecv_replace;
#ifndef OPEN_MPI
    if (exchanges) return true;
#endif
    return (exchanges ? r_.extra().recv_peer : r_.peer) == trace::kNullPeer;
  }
  static bool has_status(const MPI_Status* status) noexcept { return status != nullptr && status != MPI_STATUS_IGNORE; }

  void add_outcomes(std::int64_t count, const int* indices, const MPI_Status* statuses) noexcept;
  std::uint64_t outcome_of(std::int64_t i, const MPI_Status& status) noexcept;

  template <class Size>
  std::uint64_t each_count(std::int32_t n, Size size_of, bool received) noexcept {
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < n; ++i) {
      const std::uint64_t b = size_of(i);
      sum += b;
      if (received) {
        t_.recorder.add_recv_count(r_, b);
      } else {
        t_.recorder.add_count(r_, b);
      }
    }
    return sum;
  }
  void name(std::uint32_t id) noexcept {
    if (id != trace::kNoRequest) [[likely]] {
      t_.recorder.add_request(r_, id);
    } else {
      flag(trace::kEventRequestsLost);
    }
  }
  template <class Value>
  void shared_set(HandleList<Value>& list, std::uint64_t handle, const std::type_identity_t<Value>& value) noexcept {
    shared().lock.lock();
    list.set(handle, value);
    shared().lock.unlock();
  }
  template <class Value>
  Value shared_find(HandleList<Value>& list, std::uint64_t handle) noexcept {
    shared().lock.lock();
    const Value found = list.find(handle);
    shared().lock.unlock();
    return found;
  }

  Thread& thread_;
  ThreadTrace& t_;
  trace::RawRecord& r_;
  const CommInfo* info_ = nullptr;
  TracedWindow window_;
};

/// Keeps the requests that a call is given, which it may overwrite.
void keep_requests(ThreadTrace& trace, std::int64_t count, const MPI_Request* requests) noexcept;
/// Number of a communicator in the trace.
inline std::uint32_t traced_comm(Thread& thread, MPI_Comm comm) noexcept {
  const CommInfo* const info = comm_info(thread, comm);
  return info != nullptr ? info->traced : trace::kCommNone;
}
/// The same before the library has accepted it: what it refuses, it is not asked about.
inline std::uint32_t known_comm(MPI_Comm comm) noexcept {
  const CommInfo* const info = runtime().comms.known(handle_key(comm));
  return info != nullptr ? info->traced : trace::kCommNone;
}
/// Of a window or file that the call gives back: its communicator.
std::uint32_t take_window(MPI_Win window) noexcept;
std::uint32_t take_file(MPI_File file) noexcept;
/// Of a probed message that the call receives.
ProbedMessage take_message(MPI_Message message) noexcept;

}  // namespace fallow::pmpi
