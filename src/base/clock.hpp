// Time stamps for the hot path: the time stamp counter where it is invariant, else clock_gettime.
#pragma once

#include <cpuid.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>

#include "base/options.hpp"

namespace fallow {

/// Of the kernel itself, for slow paths: what fakes a program's time takes clock_gettime's place, and may stop the clock.
inline std::uint64_t monotonic_ns() noexcept {
  timespec t{};
  if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) != 0) clock_gettime(CLOCK_MONOTONIC, &t);  // a sandbox refuses it
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t wall_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

/// True if the counter runs at one rate in every power state (AMD and Intel manuals: CPUID 8000_0007H:EDX[8]).
inline bool tsc_is_invariant() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

/// The same moment on two clocks.
struct Instant {
  std::uint64_t ticks, ns;
};

/// Reads `ns` between two readings of `ticks`, several times, and keeps the closest: a process that loses its core in between
/// would take the time until it has it back for none.
template <class Ticks, class Ns>
Instant same_moment(Ticks ticks, Ns ns) noexcept {
  constexpr int kTries = 8;
  Instant best{};
  std::uint64_t closest = ~std::uint64_t{0};
  std::uint64_t before = ticks();
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t at = ns();
    const std::uint64_t after = ticks();
    if (after - before < closest) {
      closest = after - before;
      best = {before + closest / 2, at};
    }
    before = after;
  }
  return best;
}

/// How long ticks are.
struct TickRate {
  double ticks_per_ns = 1.0;

  std::uint64_t to_ticks(double ns) const noexcept { return static_cast<std::uint64_t>(ns * ticks_per_ns); }
  double to_ns(std::uint64_t ticks) const noexcept { return static_cast<double>(ticks) / ticks_per_ns; }
};

/// A source of ticks and its rate. now() takes about 10 ns from the counter, 30 ns from clock_gettime.
class TickClock {
 public:
  /// Chooses the source and calibrates it for about 200 us against CLOCK_MONOTONIC (error below 0.1 %;
  /// recalibrate() makes it exact later).
  explicit TickClock(ClockSource wanted = ClockSource::automatic) noexcept {
    tsc_ = wanted == ClockSource::tsc || (wanted != ClockSource::monotonic && tsc_is_invariant());
    start_ = instant();
    if (tsc_) {
      constexpr std::uint64_t kCalibrationNs = 200000;
      while (monotonic_ns() - start_.ns < kCalibrationNs) _mm_pause();
      recalibrate();
    }
  }

  std::uint64_t now() const noexcept {
    if (tsc_) [[likely]] return __rdtsc();
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
  }

  /// Now, on this clock and on CLOCK_MONOTONIC; takes a few microseconds.
  Instant instant() const noexcept {
    return same_moment([this] { return now(); }, [] { return monotonic_ns(); });
  }
  /// Takes the rate from all the time since the start. Returns the instant used, in both scales.
  Instant recalibrate() noexcept {
    const Instant i = instant();
    if (tsc_ && i.ns > start_.ns && i.ticks > start_.ticks) {
      const double found = static_cast<double>(i.ticks - start_.ticks) / static_cast<double>(i.ns - start_.ns);
      std::atomic_ref(ticks_per_ns_).store(found, std::memory_order_relaxed);
    }
    return i;
  }

  bool uses_tsc() const noexcept { return tsc_; }
  TickRate rate() const noexcept { return {ticks_per_ns()}; }
  double ticks_per_ns() const noexcept { return std::atomic_ref(ticks_per_ns_).load(std::memory_order_relaxed); }
  std::uint64_t start_ticks() const noexcept { return start_.ticks; }
  std::uint64_t start_ns() const noexcept { return start_.ns; }
  std::uint64_t to_ticks(double ns) const noexcept { return rate().to_ticks(ns); }
  double to_ns(std::uint64_t ticks) const noexcept { return rate().to_ns(ticks); }

 private:
  bool tsc_ = false;
  mutable double ticks_per_ns_ = 1.0;  // a thread may recalibrate while others ask
  Instant start_{};
};

}  // namespace fallow
