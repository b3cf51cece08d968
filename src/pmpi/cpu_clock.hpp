// CPU time of the calling thread between two instants, less what reading it takes.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace fallow::pmpi {

class CpuClock {
 public:
  /// Measures what a reading costs: the median of some hundred. To be called by the thread that is to be measured.
  void start() noexcept {
    constexpr int kTries = 255;
    std::uint64_t cost[kTries];
    for (std::uint64_t& c : cost) {
      const std::uint64_t before = now_ns();
      c = now_ns() - before;
    }
    std::nth_element(cost, cost + kTries / 2, cost + kTries);
    overhead_ns_ = cost[kTries / 2];
    active_ = true;
    mark();
  }

  bool active() const noexcept { return active_; }
  void mark() noexcept { marked_ns_ = now_ns(); }
  /// Nanoseconds of CPU since mark(), the readings themselves left out.
  std::uint64_t since_mark() const noexcept {
    const std::uint64_t passed = now_ns() - marked_ns_;
    return passed > overhead_ns_ ? passed - overhead_ns_ : 0;
  }

 private:
  static std::uint64_t now_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
  }
  std::uint64_t marked_ns_ = 0, overhead_ns_ = 0;
  bool active_ = false;
};

}  // namespace fallow::pmpi
