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

/// All of such a function, which touches no argument: whether the call that returns to there may be as the last at its place.
#define FALLOW_ENTER_BY(repeat, wrap)                                                                  \
  asm("movq %%fs:0, %%r11\n\t"                                                                          \
      "cmpq fallow_first+%c0(%%rip), %%r11\n\t"                                                         \
      "jne 1f\n\t"                                                                                      \
      "movq (%%rsp), %%r11\n\t"                                                                         \
      "cmpq fallow_first+%c4+%c1(%%rip), %%r11\n\t"                                                         \
      "je %P2\n\t"                                                                                      \
      "jmp %P3\n"                                                                                       \
      "1:\tmovq fallow_tls@gottpoff(%%rip), %%r11\n\t"                                                 \
      "movq %%fs:%c1(%%r11), %%r11\n\t"                                                                 \
      "cmpq (%%rsp), %%r11\n\t"                                                                         \
      "je %P2\n\t"                                                                                      \
      "jmp %P3"                                                                                         \
      ::"i"(offsetof(fallow::pmpi::FirstThread, owner)), "i"(offsetof(fallow_tls_block, expected)), "i"(repeat), "i"(wrap), \
        "i"(offsetof(fallow::pmpi::FirstThread, block)))

/// The place of a call that is to be counted and is as the last one there; null: it is to be looked at. `given`: what its kind is told by.
template <CountedKind kKind, class... Given>
FALLOW_HOT CallPlace* repeated(fallow_tls_block& own, std::uint16_t op, Given... given) noexcept {
  auto* const place = static_cast<CallPlace*>(own.turn);
  const LastCall& last = place->last;
  if (place->op != op || last.bindings != own.caller) return nullptr;
  if ([[maybe_unused]] std::size_t i = 0; !(is_given(last.given[i++], given) && ...)) return nullptr;
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
  FALLOW_HOT RepeatedCall(fallow_tls_block& own, CallPlace& place, void* above) noexcept : own_(own), place_(place) {
    constexpr std::size_t kAboveFrame = 2;  // the return address and the caller's frame pointer, of wrappers that keep one
    own_.expected = nullptr;
    own_.caller = nullptr;
    own_.frame = static_cast<void**>(above) - kAboveFrame;
    own_.depth = kRepeatedDepth;
    if constexpr (may_wait(kKind)) {
      own_.polls_left = runtime().first_polls.load(std::memory_order_relaxed);
      own_.waiting = own_.thread;
    }
  }

  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;

  /// The library has returned. `as_usual`: with success, and a test found nothing.
  FALLOW_HOT void end(bool as_usual, int tag = -1) noexcept {
    auto* const thread = static_cast<Thread*>(own_.thread);  // null in the child of a callback that has forked: so is the depth
    if constexpr (may_wait(kKind)) own_.waiting = nullptr;
    const bool wakes = wakes_after(kKind) && runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0;
    constexpr bool kTests = kKind == CountedKind::test || kKind == CountedKind::probe;
    if (!as_usual || wakes || own_.depth != kRepeatedDepth || !thread->counted.repeat(place_, kTests)) [[unlikely]] {
      return end_odd_repeat(kKind, as_usual, tag);
    }
    CallPlace* const next = place_.next;
    own_.turn = next;
    own_.expected = next->last.returns_to;
    own_.depth = 0;
  }

 private:
  fallow_tls_block& own_;
  CallPlace& place_;
};

}  // namespace fallow::pmpi
