// Who is to blame when something that takes microseconds has taken milliseconds: so many other threads that they would have
// had this core without Fallow as well, or who would not: a few threads, which get no more than their share of it from ranks
// that do not give it up, or what lies below the operating system (a hypervisor that gave the processor away, a late interrupt).
// Or the kernel stood the process still, as its control group had taken the time that it may have, or somebody stopped it for a while.
#pragma once

#include <cstdint>
#include <string_view>

namespace fallow::pmpi {

enum class Interruption : std::uint8_t { none, others, elsewhere };

/// Threads that can run now, and processors to do so.
struct Crowd {
  double runnable = 0;  ///< 0: the kernel does not tell
  double processors = 1;
};

/// What the kernel counts of a thread and its process, in nanoseconds since they began.
struct KernelCounts {
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  std::uint64_t queued_ns = kUnknown;   ///< of the thread: ready to run while others had its core
  std::uint64_t throttled_ns = kUnknown;  ///< of the process's control groups: stood still for a limit of their time (power::CpuQuota)
};

/// What one thread knows of those who want its core.
class Contention {
 public:
  static constexpr std::uint64_t kUnknown = KernelCounts::kUnknown;
  static constexpr double kInterruptedNs = 1e6;  ///< eight polls or a wake-up never take longer by themselves
  static constexpr double kAgainNs = 100e6;      ///< one interruption may be anything, another this soon is somebody
  static constexpr double kContendedNs = 500e6;  ///< how long that is remembered
  static constexpr double kLimitedNs = 5e9;  ///< likewise that time is limited: forgotten too early, it costs half of a tenth of a second
  static constexpr double kSuspendedNs = 200e6;  ///< no hypervisor keeps a processor for so long: the process was stopped, or the machine was
  static constexpr double kManyPerProcessor = 1.75;  ///< threads that can run: between half as many again as processors and twice as many
  static constexpr double kSomeMore = 0.5;           ///< threads more than processors, on the mean: more than none, less than one

  /// The thread, or another in its place, begins with `queued_ns`, see below.
  void begin(std::uint64_t queued_ns) noexcept { queued_ns_ = queued_ns; }
  /// The process begins with so much, see KernelCounts.
  void begin_throttled(std::uint64_t throttled_ns) noexcept { throttled_ns_ = throttled_ns; }

  /// Something took `late_ns` too long until `now_ns`. Where the kernel does not tell how long the thread has waited for a core,
  /// others are to blame, if there are many. Of the crowds seen of late the mean counts. Whoever stands still for a limit of time
  /// would have stood still without Fallow as well, and sooner.
  Interruption judge(double late_ns, double now_ns, const KernelCounts& counts, const Crowd& crowd) noexcept;

  /// Whether many others are taken to want this core at `now_ns`: spinning would keep them from getting out of our way.
  bool contended(double now_ns) const noexcept { return now_ns < many_.until_ns; }
  /// Whether the process is taken to get less time at `now_ns` than it wants: what waits awake is lacking where there is something to do.
  bool limited(double now_ns) const noexcept { return now_ns < limited_until_ns_; }
  /// Until when a few others are, for any rank of the node: who sleeps loses its core to them, and takes that of another rank
  /// when it wakes.
  double rivals_until_ns() const noexcept { return few_.until_ns; }

 private:
  /// Interruptions of one kind.
  struct Spell {
    double last_ns = -1e18, until_ns = -1e18;
    void note(double now_ns) noexcept {
      if (now_ns - last_ns < kAgainNs) until_ns = now_ns + kContendedNs;
      last_ns = now_ns;
    }
  };

  std::uint64_t queued_ns_ = kUnknown, throttled_ns_ = kUnknown;
  double limited_until_ns_ = -1e18;
  double runnable_ = 0;  ///< usual number of late; 0: none seen
  Spell many_, few_;
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

/// Of this machine. Some microseconds.
Crowd crowd_now() noexcept;

/// The number of threads that can run, as the kernel's `text` of /proc/loadavg tells it; 0 if it does not.
unsigned runnable_threads(std::string_view text) noexcept;

}  // namespace fallow::pmpi
