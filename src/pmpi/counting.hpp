// Programs that make short calls again and again: most of their tests, messages and one-sided calls are counted only, see CountedCalls.
#pragma once

#include <cstdint>
#include <utility>

#include "pmpi/caches.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/thread_state.hpp"

namespace fallow::pmpi {

/// Sets how close calls are that are counted, once it is known which loops of tests rest.
void allow_counting() noexcept;

/// Once so many calls lie in the ring since the last time: whether most of them could have been counted only, as most of those to come are to be then.
void consider_counting(Thread& thread) noexcept;

/// The same as admit_nested(), of a thread that counts calls: null too for those, of which the wrapper tells by a CountedCall.
Thread* admit_counting(const void* frame, const void* caller, std::uint16_t op) noexcept;

/// Adds what the ring holds to the totals, and then the calls that were counted since, at this tick.
void add_counted(Thread& thread, std::uint64_t now) noexcept;

void found_in_counted(Thread& thread) noexcept;
void moved_to_comm(Thread& thread, std::uint16_t comm) noexcept;
/// The call under way, which is counted only, waits: from now on it is one that is recorded.
void record_after_all(Thread& thread) noexcept;
/// Such a call is over.
void end_recorded_after_all(Thread& thread, const CallDetails& details = {}) noexcept;

inline constexpr std::uint32_t kCountedDepth = 2;  ///< fallow_tls.depth

/// Around a call that the wrapper does not record. It is counted, unless it is made by the library, in a callback, or once MPI has ended.
class CountedCall {
 public:
  FALLOW_HOT CountedCall() noexcept
      : thread_(std::exchange(fallow_tls.counted, 0u) != 0 ? static_cast<Thread*>(fallow_tls.thread) : nullptr) {}

  FALLOW_HOT bool counts() const noexcept { return thread_ != nullptr; }

  /// Of a one-sided call, before it is made.
  FALLOW_HOT void target(MPI_Win win, int rank) noexcept {
    if (rank >= 0) thread_->keep_recent(handle_key(win), rank);
  }
  /// The call that is about to be made may wait: then record_after_all() is called.
  FALLOW_HOT void may_wait() noexcept { may_wait(0, -1, 0); }
  FALLOW_HOT void waited() noexcept {
    fallow_tls.waiting = nullptr;
    if (fallow_tls.depth != kCountedDepth) [[unlikely]] return end_recorded_after_all(*thread_);
    fallow_tls.depth = 0;
  }

  /// A message is about to be sent to this rank, or received from it; what may be a long one is recorded after all.
  template <class Count>
  FALLOW_HOT void message(MPI_Comm comm, int peer, Count count, MPI_Datatype type) noexcept {
    may_wait(handle_key(comm), peer, 1);
    if (!is_at_most(kShortMessage, *thread_, count, type)) [[unlikely]] record_after_all(*thread_);
  }
  /// It has been, if `well`. It may be what a rank waits for that has begun to sleep meanwhile.
  template <class Count>
  FALLOW_HOT void passed(bool well, MPI_Comm comm, int peer, int tag, Count count, MPI_Datatype type) noexcept {
    fallow_tls.waiting = nullptr;
    Thread& t = *thread_;
    if (!well && fallow_tls.depth == kCountedDepth) [[unlikely]] record_after_all(t);  // its communicator may be none
    const bool counted = fallow_tls.depth == kCountedDepth;
    CallDetails details;
    if (well) [[likely]] {
      const CommInfo* const info = comm_info(t, comm);
      if (info != nullptr && peer >= 0) t.keep_recent(info->handle, peer);
      details = {peer == MPI_PROC_NULL ? 0 : data_size(t, count, type), peer >= 0 ? peer : -1, tag, id_of(info)};
      if (counted && details.comm != t.counted.now().comm) [[unlikely]] moved_to_comm(t, details.comm);
    }
    if (!counted) [[unlikely]] return end_recorded_after_all(t, details);
    t.counted.now().bytes += details.bytes;
    if (runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] wake_recent_slow(t);
    fallow_tls.depth = 0;
  }

  template <class Count>
  FALLOW_HOT std::uint64_t bytes(Count count, MPI_Datatype type) noexcept {
    return data_size(*thread_, count, type);
  }
  /// `received`: beside `bytes`, which are sent.
  FALLOW_HOT void transferred(std::uint64_t bytes, std::uint64_t received = 0) noexcept {
    fallow_tls.depth = 0;
    thread_->counted.now().bytes += bytes;
    thread_->received_too += received;
  }

  /// A test is over. `comm`: MPI_COMM_NULL of those that name none.
  FALLOW_HOT void tested(bool found, MPI_Comm comm) noexcept {
    fallow_tls.depth = 0;
    Thread& t = *thread_;
    if (comm != MPI_COMM_NULL) {
      const std::uint16_t id = id_of(comm_info(t, comm));
      if (id != t.counted.now().comm) [[unlikely]] moved_to_comm(t, id);
    }
    if (found) [[unlikely]] found_in_counted(t);
  }

 private:
  static constexpr std::uint64_t kShortMessage = 4096;  ///< bytes: what takes no longer than usual where calls are so close

  /// What of the call is to be known where it does wait, see Thread.
  FALLOW_HOT void may_wait(std::uint64_t comm, int peer, std::uint32_t wanted_calls) noexcept {
    thread_->comm_handle = comm;
    thread_->peer = peer;
    thread_->wanted_calls = wanted_calls;
    fallow_tls.polls_left = runtime().first_polls.load(std::memory_order_relaxed);
    fallow_tls.waiting = thread_;
  }

  static std::uint16_t id_of(const CommInfo* info) noexcept {
    return info == nullptr ? 0 : info->event_id();
  }

  Thread* const thread_;
};

}  // namespace fallow::pmpi
