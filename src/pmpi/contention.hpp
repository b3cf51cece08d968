// Who is to blame when something that takes microseconds has taken milliseconds: another thread on this core, which would
// have had it without Fallow as well, or what lies below the operating system (a hypervisor that gave the processor away,
// a late interrupt), which comes more often to those who sleep.
#pragma once

#include <cstdint>
#include <string_view>

namespace fallow::pmpi {

enum class Interruption : std::uint8_t { none, others, elsewhere };

/// What one thread knows of those who want its core.
class Contention {
 public:
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  static constexpr double kInterruptedNs = 1e6;  ///< eight polls or a wake-up never take longer by themselves
  static constexpr double kAgainNs = 100e6;      ///< one interruption may be anything, another this soon is somebody
  static constexpr double kContendedNs = 500e6;  ///< how long that is remembered

  /// The thread, or another in its place, begins with `queued_ns`, see below.
  void begin(std::uint64_t queued_ns) noexcept { queued_ns_ = queued_ns; }

  /// Something took `late_ns` too long until `now_ns`. `queued_ns`: what the thread has waited for a core until now in
  /// all, or kUnknown: then others are to blame, if `others_want_cores`.
  Interruption judge(double late_ns, double now_ns, std::uint64_t queued_ns, bool others_want_cores) noexcept;

  /// Whether others are taken to want this core at `now_ns`: spinning would keep them from getting out of our way.
  bool contended(double now_ns) const noexcept { return now_ns < until_ns_; }

 private:
  std::uint64_t queued_ns_ = kUnknown;
  double last_ns_ = -1e18;
  double until_ns_ = -1e18;
};

/// Whether it pays, where others want the core, to keep it a little longer before a wait gives it up: it comes back only after
/// their time slice. It does not where the one that is waited for wants this very core.
class Holding {
 public:
  static constexpr double kHoldNs = 100e3;  ///< a context switch each way is some microseconds, a time slice milliseconds

  /// Before a wait sleeps. Tries now and then where it has not paid.
  bool pays() noexcept { return ended_ >= kOften || ++declined_ % kTryEvery == 0; }

  /// Of a wait in which it was tried: whether it ended before the core was given up.
  void tell(bool ended) noexcept { ended_ += ((ended ? 1.0 : 0.0) - ended_) * kSmoothing; }

 private:
  static constexpr double kOften = 0.25, kSmoothing = 1.0 / 8;
  static constexpr unsigned kTryEvery = 16;
  double ended_ = 1.0;  ///< share of the waits that ended in time, recent ones above all
  unsigned declined_ = 0;
};

/// How long the calling thread has been ready to run while others had its core, in nanoseconds since it began; kUnknown
/// where the kernel does not tell. Some microseconds.
std::uint64_t queued_ns() noexcept;

/// Whether threads other than the node's ranks are likely to want this thread's core. Under a hypervisor a thread that is
/// woken counts as queued until its virtual processor gets a real one, so there it takes more threads that can run than
/// processors; on bare metal being queued says it already. Some microseconds.
bool others_want_cores() noexcept;

/// Whether so many threads that can run, 0 if that is not known, are more than these processors run at a time.
constexpr bool may_be_queued(unsigned runnable, long processors) noexcept {
  return runnable == 0 || processors <= 0 || runnable > static_cast<unsigned long>(processors);
}

/// The number of threads that can run, as the kernel's `text` of /proc/loadavg tells it; 0 if it does not.
unsigned runnable_threads(std::string_view text) noexcept;

}  // namespace fallow::pmpi
