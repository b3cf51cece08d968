// What every hook does after a poll of the MPI library. The hot path of a wait: one counter until the time is due.
#pragma once

#include "pmpi/hooks.hpp"
#include "pmpi/runtime.hpp"

namespace fallow::pmpi {

/// In fallow_tls_block::polls_left: there may be events that are not in the totals yet, or not in the trace, and between two polls is
/// time for some.
inline constexpr std::uint32_t kCatchingUp = 1u << 31;

/// Whether the poll that is about to be made is none of a wait, and nobody sleeps whom it might serve: most are, in programs that test.
inline bool is_mere_poll() noexcept {
  if (this_thread().waiting != nullptr) return false;
  return this_thread().thread == nullptr || runtime().node.page().sleepers.load(std::memory_order_relaxed) == 0;
}

/// The library is about to poll. How long after the last look tells whether it did something in between. That it polls again
/// says that it waits; not all say so after a poll.
inline void before_poll() noexcept {
  const std::uint32_t left = this_thread().polls_left;
  if (left - 2 < kCatchingUp - 2) [[likely]] return;
  auto* const thread = static_cast<Thread*>(this_thread().waiting);
  if (thread == nullptr) return;
  if (left == 1) {
    thread->poll_began = runtime().clock.now();
  } else if (left != (kCatchingUp | runtime().first_polls.load(std::memory_order_relaxed))) {
    catch_up_in_wait(*thread);
  }
}

/// A poll that found nothing is over: whether slow_poll() is due.
inline bool poll_is_due() noexcept { return (--this_thread().polls_left & ~kCatchingUp) == 0; }

/// The library polled in a call that is not one that waits.
inline void poll_in_other_call() noexcept {
  auto* const thread = static_cast<Thread*>(this_thread().thread);  // null before anything is recorded
  if (thread == nullptr || this_thread().depth == 0) return;
  if (runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] wake_polled_for(*thread);
}

/// The library polled and found nothing.
inline void idle_poll() noexcept {
  auto* const thread = static_cast<Thread*>(this_thread().waiting);
  if (thread == nullptr) return poll_in_other_call();
  if (poll_is_due()) [[unlikely]] slow_poll(*thread);
}

/// The library polled and something moved: poll on before resting.
inline void busy_poll() noexcept {
  const std::uint32_t polls = runtime().first_polls.load(std::memory_order_relaxed);
  const std::uint32_t catching_up = this_thread().polls_left & kCatchingUp;
  if (this_thread().polls_left - catching_up < polls) this_thread().polls_left = polls | catching_up;
}

}  // namespace fallow::pmpi
