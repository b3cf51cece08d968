// What every hook does after a poll of the MPI library. The hot path of a wait: one counter until the time is due.
#pragma once

#include <cerrno>

#include "pmpi/hooks.hpp"
#include "pmpi/runtime.hpp"

namespace fallow::pmpi {

/// In fallow_tls.polls_left: there may be events that are not in the totals yet, and each idle poll leaves time for some.
inline constexpr std::uint32_t kCatchingUp = 1u << 31;

/// A poll that found nothing is over: whether slow_poll() is due.
inline bool poll_is_due() noexcept { return static_cast<std::int32_t>(--fallow_tls.polls_left) <= 0; }

/// The library is about to poll. How long after the last look tells whether it did something in between.
inline void before_poll() noexcept {
  if (fallow_tls.polls_left != 1) [[likely]] return;
  if (auto* const thread = static_cast<Thread*>(fallow_tls.waiting); thread != nullptr) thread->poll_began = runtime().clock.now();
}

/// The library polled and found nothing.
inline void idle_poll() noexcept {
  auto* const thread = static_cast<Thread*>(fallow_tls.waiting);
  if (thread != nullptr && poll_is_due()) [[unlikely]] {
    const int error = errno;
    slow_poll(*thread);
    errno = error;
  }
}

/// The library polled and something moved: poll on before resting.
inline void busy_poll() noexcept {
  const std::uint32_t polls = runtime().first_polls.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(fallow_tls.polls_left) < static_cast<std::int32_t>(polls)) fallow_tls.polls_left = polls;
}

}  // namespace fallow::pmpi
