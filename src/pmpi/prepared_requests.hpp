// Persistent requests: whom a call that starts one sends to, and how much, which that call itself does not say.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace fallow::pmpi {

/// What a persistent request does each time that it is started.
struct Prepared {
  std::uint64_t comm = 0;                ///< its communicator's handle
  std::int32_t peer = 0;                 ///< as it was given, kSeveralPeers: a collective call
  std::uint64_t sent = 0, received = 0;  ///< bytes, as counts and datatypes say
};

/// By the requests' handles. Reading takes no lock. What finds no room is taken for a request of no bytes, whose peers wake
/// by their timers.
class PreparedRequests {
 public:
  void made(std::uint64_t request, const Prepared& what) noexcept {
    const std::lock_guard lock(mutex_);
    for (Entry& e : set_of(request)) {
      const std::uint64_t held = e.request.load(std::memory_order_relaxed);
      if (held != 0 && held != request) continue;
      e.what = what;
      e.request.store(request, std::memory_order_release);
      any_.store(true, std::memory_order_release);
      return;
    }
  }

  void freed(std::uint64_t request) noexcept {
    if (!any()) return;
    const std::lock_guard lock(mutex_);
    for (Entry& e : set_of(request)) {
      if (e.request.load(std::memory_order_relaxed) == request) e.request.store(0, std::memory_order_relaxed);
    }
  }

  /// False as long as there were none: then the others need not be asked.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  /// Null where it is not known. It stays as it is until the request is freed.
  const Prepared* find(std::uint64_t request) const noexcept {
    for (const Entry& e : sets_[index_of(request)]) {
      if (request != 0 && e.request.load(std::memory_order_acquire) == request) return &e.what;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kSets = 256, kWays = 8;
  struct Entry {
    std::atomic<std::uint64_t> request{0};  ///< 0: free
    Prepared what;
  };
  using Set = std::array<Entry, kWays>;
  static std::size_t index_of(std::uint64_t request) noexcept { return (request * 0x9e3779b97f4a7c15u >> 40) % kSets; }
  Set& set_of(std::uint64_t request) noexcept { return sets_[index_of(request)]; }

  std::array<Set, kSets> sets_;
  std::atomic<bool> any_{false};
  std::mutex mutex_;
};

}  // namespace fallow::pmpi
