// Time stamps for the hot path: the time stamp counter where it is invariant, else clock_gettime.
#pragma once

#include <cpuid.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

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

/// A source of ticks and its rate. now() takes about 10 ns from the counter, 30 ns from clock_gettime.
class TickClock {
 public:
  /// Chooses the source and calibrates it for about 200 us against CLOCK_MONOTONIC (error below 0.1 %;
  /// recalibrate() makes it exact later).
  explicit TickClock(ClockSource wanted = ClockSource::automatic) noexcept {
    tsc_ = wanted == ClockSource::tsc || (wanted != ClockSource::monotonic && tsc_is_invariant());
    start_ns_ = monotonic_ns();
    start_ticks_ = now();
    if (tsc_) {
      constexpr std::uint64_t kCalibrationNs = 200000;
      while (monotonic_ns() - start_ns_ < kCalibrationNs) _mm_pause();
      recalibrate();
    }
  }

  std::uint64_t now() const noexcept {
    if (tsc_) [[likely]] return __rdtsc();
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
  }

  /// Takes the rate from all the time since the start. Returns the instant used, in both scales.
  struct Instant {
    std::uint64_t ticks, ns;
  };
  Instant recalibrate() noexcept {
    const Instant i{now(), monotonic_ns()};
    if (tsc_ && i.ns > start_ns_ && i.ticks > start_ticks_) {
      ticks_per_ns_ = static_cast<double>(i.ticks - start_ticks_) / static_cast<double>(i.ns - start_ns_);
    }
    return i;
  }

  bool uses_tsc() const noexcept { return tsc_; }
  double ticks_per_ns() const noexcept { return ticks_per_ns_; }
  std::uint64_t start_ticks() const noexcept { return start_ticks_; }
  std::uint64_t start_ns() const noexcept { return start_ns_; }
  std::uint64_t to_ticks(double ns) const noexcept { return static_cast<std::uint64_t>(ns * ticks_per_ns_); }
  double to_ns(std::uint64_t ticks) const noexcept { return static_cast<double>(ticks) / ticks_per_ns_; }

 private:
  bool tsc_ = false;
  double ticks_per_ns_ = 1.0;
  std::uint64_t start_ticks_ = 0, start_ns_ = 0;
};

}  // namespace fallow
