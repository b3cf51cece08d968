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

// fallow_tls_block::depth
inline constexpr std::uint32_t kCountedDepth = 2;
inline constexpr std::uint32_t kRepeatedDepth = 3;  ///< of a RepeatedCall, of which the thread's state says nothing yet

/// `start`: a message is sent or received, and a later `wait` or test ends that; `message`: it is when the call returns, or both are, or one is
/// there to be received.
enum class CountedKind : std::uint8_t { test, probe, start, wait, message, collective, one_sided, flush };
constexpr bool passes_messages(CountedKind kind) noexcept {
  return kind == CountedKind::start || kind == CountedKind::message || kind == CountedKind::collective;
}
constexpr bool may_wait(CountedKind kind) noexcept {
  return kind == CountedKind::message || kind == CountedKind::collective || kind == CountedKind::wait || kind == CountedKind::flush;
}
/// Whether communicators or datatypes are among what is remembered of it: another one may get a handle that was freed.
constexpr bool has_handles(CountedKind kind) noexcept {
  return kind != CountedKind::test && kind != CountedKind::wait && kind != CountedKind::flush;
}
/// Whether a rank that has begun to sleep while it was made may wait for just this call.
constexpr bool wakes_after(CountedKind kind) noexcept { return passes_messages(kind) || kind == CountedKind::wait; }
/// Whether those who sleep are woken before it is made: of a collective call the others are to see who has come.
constexpr bool wakes_before(CountedKind kind) noexcept { return !wakes_after(kind) || kind == CountedKind::collective; }
inline constexpr std::uint64_t kShortMessage = 4096;  ///< bytes: what takes no longer than usual where calls are so close

/// The repeated call under way becomes one as any other that is counted.
void take_up_repeat(Thread& thread) noexcept;
/// The end of a repeated call that is the last one for now, was recorded after all, failed or found something, or after which somebody sleeps.
void end_odd_repeat(CountedKind kind, bool as_usual, int tag) noexcept;
/// Wakes who may wait for what this thread has done of late.
void wake_those_met(Thread& thread) noexcept;
/// A message was passed on, or the library refused it.
void end_message(Thread& thread, bool well, const CallDetails& details) noexcept;

/// From now on the next call may be one that is as the last at the place whose turn it is.
FALLOW_HOT void expect_next(Thread& t) noexcept {
  CallPlace* const place = t.counted.turn();
  this_thread().turn = place;
  this_thread().expected = place != nullptr ? place->last.returns_to : nullptr;
}

/// Around a call that the wrapper does not record. It is counted, unless it is made by the library, in a callback, or once MPI has ended.
class CountedCall {
 public:
  FALLOW_HOT CountedCall() noexcept
      : thread_(std::exchange(this_thread().counted, 0u) != 0 ? static_cast<Thread*>(this_thread().thread) : nullptr) {}

  FALLOW_HOT bool counts() const noexcept { return thread_ != nullptr; }

  /// Of a one-sided call, before it is made.
  FALLOW_HOT void target(MPI_Win win, int rank) noexcept {
    if (rank >= 0) thread_->keep_recent(handle_key(win), rank);
  }
  /// The call that is about to be made may wait: then record_after_all() is called.
  FALLOW_HOT void may_wait() noexcept { may_wait(0, -1, 0); }
  FALLOW_HOT void waited() noexcept {
    this_thread().waiting = nullptr;
    counted_ = this_thread().depth == kCountedDepth;
    if (!counted_) [[unlikely]] return end_recorded_after_all(*thread_);
    this_thread().depth = 0;
  }
  /// The same of a wait, in which messages may have been passed on.
  FALLOW_HOT void waited_for_messages() noexcept {
    waited();
    if (counted_ && runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] wake_those_met(*thread_);
  }

  /// A message is about to be sent to this rank, or received from it; what may be a long one is recorded after all.
  template <class Count>
  FALLOW_HOT void message(MPI_Comm comm, int peer, Count count, MPI_Datatype type) noexcept {
    may_wait(handle_key(comm), peer, 1);
    if (!is_at_most(kShortMessage, *thread_, count, type)) [[unlikely]] record_after_all(*thread_);
  }
  /// The same of one that is sent and one that is received.
  template <class Count>
  FALLOW_HOT void exchange(MPI_Comm comm, int peer, Count sent, MPI_Datatype sent_type, Count received, MPI_Datatype received_type) noexcept {
    may_wait(handle_key(comm), peer, 2);
    const bool is_short = is_at_most(kShortMessage, *thread_, sent, sent_type) && is_at_most(kShortMessage, *thread_, received, received_type);
    if (!is_short) [[unlikely]] record_after_all(*thread_);
  }
  /// The same of a collective call in which a rank's part is so many elements.
  template <class Count = int>
  FALLOW_HOT void collective(MPI_Comm comm, Count part = 0, MPI_Datatype type = MPI_DATATYPE_NULL) noexcept {
    may_wait(handle_key(comm), kSeveralPeers, 0);
    thread_->part = size_as_u64(part);
    thread_->part_type = handle_key(type);
    if (!is_at_most(kShortMessage, *thread_, part, type)) [[unlikely]] record_after_all(*thread_);
  }
  /// The same of one that is only started. Waits for long ones may take long in a single poll: then none is counted for now.
  template <class Count>
  FALLOW_HOT void start(Count count, MPI_Datatype type) noexcept {
    if (is_at_most(kShortMessage, *thread_, count, type)) [[likely]] return;
    thread_->counted.stop();
    record_after_all(*thread_);
  }
  /// It has been, if `well`. It may be what a rank waits for that has begun to sleep meanwhile. `received`: beside `bytes`, which are sent.
  FALLOW_HOT void passed(bool well, MPI_Comm comm, int peer, int tag, std::uint64_t bytes, std::uint64_t received = 0) noexcept {
    this_thread().waiting = nullptr;
    Thread& t = *thread_;
    CallDetails details;
    if (well) [[likely]] {
      const CommInfo* const info = comm_info(t, comm);
      if (info != nullptr && peer >= 0) t.keep_recent(info->handle, peer);
      details = {bytes, peer >= 0 ? peer : -1, tag, id_of(info), received};
    }
    counted_ = well && this_thread().depth == kCountedDepth;
    bytes_ = bytes;
    received_ = received;
    end_message(t, well, details);
  }

  template <class Count>
  FALLOW_HOT std::uint64_t bytes(Count count, MPI_Datatype type) noexcept {
    return data_size(*thread_, count, type);
  }
  FALLOW_HOT std::int32_t peers(MPI_Comm comm) noexcept { return peers_of(*thread_, comm); }
  FALLOW_HOT void transferred(std::uint64_t bytes, std::uint64_t received = 0) noexcept {
    this_thread().depth = 0;
    CallPlace& place = thread_->counted.now();
    place.bytes += bytes_ = bytes;
    place.received += received_ = received;
  }

  /// A test is over. `comm`: MPI_COMM_NULL of those that name none.
  FALLOW_HOT void tested(bool found, MPI_Comm comm) noexcept {
    this_thread().depth = 0;
    Thread& t = *thread_;
    if (comm != MPI_COMM_NULL) {
      const std::uint16_t id = id_of(comm_info(t, comm));
      if (id != t.counted.now().comm) [[unlikely]] moved_to_comm(t, id);
    }
    if (found) [[unlikely]] found_in_counted(t);
  }

  /// After all of it: what the next one here is compared with, if it went `well`; see RepeatedCall. `peer` is a rank of `where`, or below 0.
  template <class Where, class... Given>
  FALLOW_HOT void remember(CountedKind kind, bool well, Where where, int peer, Given... given) noexcept {
    static_assert(sizeof...(given) <= kMostGiven);
    Thread& t = *thread_;
    if (well && counted_) [[likely]] {
      LastCall& last = t.counted.last();
      const void* const caller = t.counted.now().caller;
      last.given = {as_given(given)...};
      last.returns_to = this_thread().return_address;
      last.bindings = caller != last.returns_to ? caller : nullptr;
      last.handles = has_handles(kind) ? runtime().handle_generation.load(std::memory_order_relaxed) : 0;
      last.where = as_given(where);
      last.peer = peer;
      last.wanted_calls = pmpi::may_wait(kind) ? t.wanted_calls : 0;
      last.bytes = bytes_;
      last.received = received_;
    }
    expect_next(t);
  }

 private:
  /// What of the call is to be known where it does wait, see Thread.
  FALLOW_HOT void may_wait(std::uint64_t comm, int peer, std::uint32_t wanted_calls) noexcept {
    thread_->comm_handle = comm;
    thread_->peer = peer;
    thread_->wanted_calls = wanted_calls;
    this_thread().polls_left = runtime().first_polls.load(std::memory_order_relaxed);
    this_thread().waiting = thread_;
  }

  static std::uint16_t id_of(const CommInfo* info) noexcept {
    return info == nullptr ? 0 : info->event_id();
  }

  Thread* const thread_;
  std::uint64_t bytes_ = 0, received_ = 0;
  bool counted_ = true;
};

}  // namespace fallow::pmpi
