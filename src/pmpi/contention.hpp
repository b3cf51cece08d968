// Who is to blame when something that takes microseconds has taken milliseconds: so many other threads that they would have
// had this core without Fallow as well, or who would not: a few threads, which get no more than their share of it from ranks
// that do not give it up, or what lies below the operating system (a hypervisor that gave the processor away, a late interrupt).
#pragma once

#include <cstdint>
#include <string_view>

namespace fallow::pmpi {

enum class Interruption : std::uint8_t { none, others, elsewhere };

/// What one thread knows of those who want its core.
class Contention {
 public:
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  static constexpr double kUncountable = 1e9;    ///< threads that can run: as if they were many
  static constexpr double kInterruptedNs = 1e6;  ///< eight polls or a wake-up never take longer by themselves
  static constexpr double kAgainNs = 100e6;      ///< one interruption may be anything, another this soon is somebody
  static constexpr double kContendedNs = 500e6;  ///< how long that is remembered
  static constexpr double kManyPerProcessor = 1.75;  ///< of half as many again as processors, as a rule, to twice as many

  /// The thread, or another in its place, begins with `queued_ns`, see below.
  void begin(std::uint64_t queued_ns) noexcept { queued_ns_ = queued_ns; }

  /// Something took `late_ns` too long until `now_ns`. `queued_ns`: what the thread has waited for a core until now in
  /// all, or kUnknown: then others are to blame, if there are many. `crowd`: threads that can run now, of each processor, see
  /// runnable_per_processor(). Of those seen of late the mean counts.
  Interruption judge(double late_ns, double now_ns, std::uint64_t queued_ns, double crowd) noexcept;

  /// Whether many others are taken to want this core at `now_ns`: spinning would keep them from getting out of our way.
  bool contended(double now_ns) const noexcept { return now_ns < until_ns_; }

 private:
  std::uint64_t queued_ns_ = kUnknown;
  double last_ns_ = -1e18;
  double until_ns_ = -1e18;
  double crowd_ = 0;  ///< usual one of late; 0: none seen
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

/// How many threads can run, for each of the machine's processors; Contention::kUncountable where the kernel does not tell. Some
/// microseconds.
double runnable_per_processor() noexcept;

/// The number of threads that can run, as the kernel's `text` of /proc/loadavg tells it; 0 if it does not.
unsigned runnable_threads(std::string_view text) noexcept;

}  // namespace fallow::pmpi
