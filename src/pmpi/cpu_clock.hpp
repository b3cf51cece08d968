// CPU time of the calling thread between the end of one MPI call and the beginning of the next, less what taking it
// costs. Asking the kernel takes hundreds of nanoseconds, so that is done once a call, outside of what is measured:
// a page that the kernel changes whenever it puts the thread on a core tells whether the thread has had its core
// all the time since, and then the time stamp counter says the same more exactly.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

struct perf_event_mmap_page;

namespace fallow::pmpi {

class CpuClock {
 public:
  CpuClock() = default;
  CpuClock(const CpuClock&) = delete;
  CpuClock& operator=(const CpuClock&) = delete;
  ~CpuClock() { stop(); }

  /// Begins for the calling thread; a few milliseconds at most. Measures what a reading costs.
  void start(const TickClock& clock) noexcept;
  /// The thread ends.
  void stop() noexcept;

  bool active() const noexcept { return clock_ != nullptr; }
  void mark() noexcept {
    marked_ns_ = thread_ns();
    marked_page_ = page_version();
    marked_ticks_ = clock_->now();
  }
  /// Nanoseconds of CPU since mark().
  std::uint64_t since_mark() const noexcept {
    const std::uint64_t ticks = clock_->now() - marked_ticks_;
    if (page_ != nullptr && page_version() == marked_page_) [[likely]] return less(to_ns(ticks), tick_cost_ns_);
    return less(thread_ns() - marked_ns_, kernel_cost_ns_);
  }

 private:
  static std::uint64_t thread_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
  }
  static std::uint64_t less(std::uint64_t ns, std::uint64_t cost) noexcept { return ns > cost ? ns - cost : 0; }
  /// Without floating point, whose flags are the program's.
  std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(ticks) * ns_per_tick_) >> kFraction);
  }
  std::uint32_t page_version() const noexcept { return page_ != nullptr ? __atomic_load_n(version_, __ATOMIC_ACQUIRE) : 0; }
  void map_page() noexcept;

  static constexpr unsigned kFraction = 32;
  const TickClock* clock_ = nullptr;
  std::uint64_t ns_per_tick_ = 0;  ///< with kFraction bits behind the point
  perf_event_mmap_page* page_ = nullptr;
  const std::uint32_t* version_ = nullptr;
  std::uint64_t marked_ns_ = 0, marked_ticks_ = 0;
  std::uint32_t marked_page_ = 0;
  std::uint64_t kernel_cost_ns_ = 0, tick_cost_ns_ = 0;
};

}  // namespace fallow::pmpi
