#include "pmpi/cpu_clock.hpp"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace fallow::pmpi {
namespace {

constexpr std::size_t kTries = 255;
constexpr std::size_t kPage = 4096;

template <class Take>
std::uint64_t median(Take take) noexcept {
  std::array<std::uint64_t, kTries> costs;
  for (std::uint64_t& c : costs) c = take();
  std::nth_element(costs.begin(), costs.begin() + kTries / 2, costs.end());
  return costs[kTries / 2];
}

}  // namespace

void CpuClock::start(const TickClock& clock) noexcept {
  stop();
  clock_ = &clock;
  ns_per_tick_ = static_cast<std::uint64_t>(static_cast<double>(std::uint64_t{1} << kFraction) / clock.ticks_per_ns());
  kernel_cost_ns_ = median([] {
    const std::uint64_t before = thread_ns();
    return thread_ns() - before;
  });
  map_page();
  tick_cost_ns_ = median([this] {
    const std::uint64_t before = clock_->now();
    return to_ns(clock_->now() - before);
  });
  mark();
}

void CpuClock::stop() noexcept {
  if (page_ != nullptr) munmap(page_, kPage);
  page_ = nullptr;
  clock_ = nullptr;
}

/// A counter of the thread's own time, which every user may have; where it is not to be had, the kernel is asked each time.
void CpuClock::map_page() noexcept {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_TASK_CLOCK;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return;
  void* const memory = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);  // the mapping keeps the counter
  if (memory == MAP_FAILED) return;
  page_ = static_cast<perf_event_mmap_page*>(memory);
  version_ = &page_->lock;
  const std::uint32_t before = page_version();
  const timespec moment{0, 1000};
  nanosleep(&moment, nullptr);
  if (page_version() != before) return;  // it tells
  munmap(memory, kPage);
  page_ = nullptr;
}

}  // namespace fallow::pmpi
