// A counted call that is as the last one at its place: it is counted in a few instructions, and nothing is looked up. Of loops whose bodies take
// some ten nanoseconds every register that a wrapper has to keep can be seen (docs/adr/0008).
#pragma once

#include <cstddef>
#include <cstdint>

#include "pmpi/caches.hpp"
#include "pmpi/counting.hpp"

namespace fallow::pmpi {

/// Where a call that can be counted comes in. It is passed on by jumps, so that the wrapper returns to where it does; sanitizers
/// make calls of these.
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define FALLOW_ENTER(name) wrap_##name
#else
#define FALLOW_ENTER(name) enter_##name
#endif

/// Whether the call that returns to there may be such a one.
FALLOW_HOT bool is_expected(const void* returns_to) noexcept { return fallow_tls.expected == returns_to; }

/// The place of a call that is to be counted and is as the last one there; null: it is to be looked at. `given`: what its kind is told by.
template <CountedKind kKind, class... Given>
FALLOW_HOT CallPlace* repeated(std::uint16_t op, Given... given) noexcept {
  auto* const place = static_cast<CallPlace*>(fallow_tls.turn);
  const LastCall& last = place->last;
  if (place->op != op || last.bindings != fallow_tls.caller) return nullptr;
  if (std::size_t i = 0; !(is_given(last.given[i++], given) && ...)) return nullptr;
  if (has_handles(kKind) && last.handles != runtime().handle_generation.load(std::memory_order_relaxed)) return nullptr;
  // Nobody slept after the last call, and record_after_all() looks again where this one waits.
  if (wakes_before(kKind) && runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0) return nullptr;
  return place;
}

/// Around such a call.
template <CountedKind kKind>
class RepeatedCall {
 public:
  /// `above`: the stack pointer of the caller of the wrapper, before the call.
  FALLOW_HOT RepeatedCall(CallPlace& place, void* above) noexcept : place_(place) {
    constexpr std::size_t kAboveFrame = 2;  // the return address and the caller's frame pointer, of wrappers that keep one
    fallow_tls.expected = nullptr;
    fallow_tls.caller = nullptr;
    fallow_tls.frame = static_cast<void**>(above) - kAboveFrame;
    fallow_tls.depth = kRepeatedDepth;
    if constexpr (may_wait(kKind)) {
      fallow_tls.polls_left = runtime().first_polls.load(std::memory_order_relaxed);
      fallow_tls.waiting = fallow_tls.thread;
    }
  }

  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;

  /// The library has returned. `as_usual`: with success, and a test found nothing.
  FALLOW_HOT void end(bool as_usual, int tag = -1) noexcept {
    auto* const thread = static_cast<Thread*>(fallow_tls.thread);  // null in the child of a callback that has forked: so is the depth
    if constexpr (may_wait(kKind)) fallow_tls.waiting = nullptr;
    const bool wakes = wakes_after(kKind) && runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0;
    constexpr bool kTests = kKind == CountedKind::test || kKind == CountedKind::probe;
    if (!as_usual || wakes || fallow_tls.depth != kRepeatedDepth || !thread->counted.repeat(place_, kTests)) [[unlikely]] {
      return end_odd_repeat(kKind, as_usual, tag);
    }
    CallPlace* const next = place_.next;
    fallow_tls.turn = next;
    fallow_tls.expected = next->last.returns_to;
    fallow_tls.depth = 0;
  }

 private:
  CallPlace& place_;
};

}  // namespace fallow::pmpi
