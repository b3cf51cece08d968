// Keeps a rank that sleeps on a processor of its own.
//
// A thread that is woken is put back on the processor where it slept, or on its waker's. Where the processors have been busy lately, Linux
// takes the waker's at times though the other is idle: seen on virtual machines. There the thread is queued behind its waker, as often as
// they wake each other, for milliseconds (docs/adr/0046).
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/clock.hpp"
#include "pmpi/node_page.hpp"

namespace fallow::pmpi {

/// The processor of `allowed` that is not in `taken` and whose number is nearest to that of `home`, which may be none; -1: there is none.
int free_processor(const cpu_set_t& allowed, const cpu_set_t& taken, int home) noexcept;

/// The processors of the one thread of the process that sleeps. Once it was queued behind its waker it is moved away, and from then on, for
/// as many sleeps as have shown to be needed, it cannot be put on the processor of another rank while it sleeps. A thread that is bound to
/// one processor stays there.
class OwnProcessor {
 public:
  static constexpr double kQueuedNs = 100e3;  ///< wakes that are this late are looked at
  static constexpr double kSeldomNs = 5e6;    ///< a move takes some 50 us
  static constexpr std::uint32_t kFewSleeps = 64, kManySleeps = 4096;

  /// The thread is about to sleep on processor `here`.
  void leave(const NodePage& page, std::uint32_t ranks, NodeSlot& own, int here) noexcept;

  /// It sleeps no more: what it may run on is as before, unless somebody else has changed it meanwhile.
  void widen() noexcept;

  /// At tick `now`, `late_ns` after a peer woke it, the thread is on processor `here`. If that is the peer's, it goes to one that no
  /// rank of the node is known to have: back, or near to where it was. True if it was moved.
  bool come_back(int here, const NodePage& page, std::uint32_t ranks, NodeSlot& own, double late_ns, std::uint64_t now,
                 const TickRate& rate) noexcept;

 private:
  bool narrow(const cpu_set_t& only) noexcept;

  int before_ = -1, home_ = -1;  ///< where it was before the latest sleep, and where it was last without a rank that it shared with
  std::uint64_t moved_ = 0;
  std::uint32_t kept_ = 0, keep_ = kFewSleeps;  ///< sleeps left in which it keeps others' processors off, and how many it will be next time
  std::uint32_t free_ = 0;                      ///< sleeps since
  bool narrowed_ = false;
  cpu_set_t allowed_{}, only_{};  ///< if `narrowed_`: what it may run on, and what meanwhile
};

}  // namespace fallow::pmpi
