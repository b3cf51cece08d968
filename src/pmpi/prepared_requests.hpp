// Persistent requests of collective calls: who starts one wakes those who take part, as by any other collective call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace fallow::pmpi {

/// Requests and the communicators that they are on, by their handles. Reading takes no lock. Beyond `kMost` at a time they are
/// taken for other requests: whoever sleeps for one of them then wakes by its timer.
class PreparedCollectives {
 public:
  void made(std::uint64_t request, std::uint64_t comm) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint32_t used = used_.load(std::memory_order_relaxed);
    std::uint32_t i = 0;
    while (i < used && entries_[i].request.load(std::memory_order_relaxed) != 0) ++i;
    if (i == kMost) return;
    entries_[i].comm.store(comm, std::memory_order_relaxed);
    entries_[i].request.store(request, std::memory_order_release);
    if (i == used) used_.store(used + 1, std::memory_order_release);
  }

  void freed(std::uint64_t request) noexcept {
    if (!any()) return;
    const std::lock_guard lock(mutex_);
    for (Entry& e : entries_) {
      if (e.request.load(std::memory_order_relaxed) == request) e.request.store(0, std::memory_order_relaxed);
    }
  }

  /// False as long as there were none: then the others need not be asked.
  bool any() const noexcept { return used_.load(std::memory_order_relaxed) != 0; }

  /// 0: not a collective call's.
  std::uint64_t comm_of(std::uint64_t request) const noexcept {
    const std::uint32_t used = used_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) {
      if (entries_[i].request.load(std::memory_order_acquire) == request) return entries_[i].comm.load(std::memory_order_relaxed);
    }
    return 0;
  }

 private:
  static constexpr std::uint32_t kMost = 64;
  struct Entry {
    std::atomic<std::uint64_t> request{0};  ///< 0: free
    std::atomic<std::uint64_t> comm{0};
  };
  std::array<Entry, kMost> entries_;
  std::atomic<std::uint32_t> used_{0};
  std::mutex mutex_;
};

}  // namespace fallow::pmpi
