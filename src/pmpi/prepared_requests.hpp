// Persistent requests: whom a call that starts one sends to, and how much, which that call itself does not say.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "base/signal_guard.hpp"

namespace fallow::pmpi {

/// What a persistent request does each time that it is started.
struct Prepared {
  std::uint64_t comm = 0;                ///< its communicator's handle
  std::int32_t peer = 0;                 ///< as it was given, kSeveralPeers: a collective call
  std::uint64_t sent = 0, received = 0;  ///< bytes, as counts and datatypes say
};

/// By the requests' handles. Reading takes no lock. What finds no room in a table goes into the next, larger one, which is made
/// then. What finds none at all is taken for a request of no bytes, whose peers wake by their timers.
class PreparedRequests {
 public:
  /// False if there is no room for it.
  bool made(std::uint64_t request, const Prepared& what) noexcept {
    const WholeLock lock(mutex_);
    forget(request);
    for (std::size_t i = 0; i < kTables; ++i) {
      Set* const sets = table(i);
      if (sets == nullptr) return false;
      for (Entry& e : sets[index_of(request, i)]) {
        if (e.request.load(std::memory_order_relaxed) != 0) continue;
        e.what = what;
        e.request.store(request, std::memory_order_release);
        any_.store(true, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

  void freed(std::uint64_t request) noexcept {
    if (!any()) return;
    const WholeLock lock(mutex_);
    forget(request);
  }

  /// The library has given it another handle.
  void moved(std::uint64_t from, std::uint64_t to) noexcept {
    const Prepared* const one = find(from);
    if (one == nullptr) return;
    const Prepared what = *one;
    freed(from);
    made(to, what);
  }

  /// False as long as there were none: then the others need not be asked.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  /// Null where it is not known. It stays as it is until the request is freed.
  const Prepared* find(std::uint64_t request) const noexcept {
    if (request == 0) return nullptr;
    for (std::size_t i = 0; i < kTables; ++i) {
      const Set* const sets = tables_[i].load(std::memory_order_acquire);
      if (sets == nullptr) return nullptr;
      for (const Entry& e : sets[index_of(request, i)]) {
        if (e.request.load(std::memory_order_acquire) == request) return &e.what;
      }
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kFirstSets = 256, kWays = 8, kTables = 3, kLarger = 8;
  struct Entry {
    std::atomic<std::uint64_t> request{0};  ///< 0: free
    Prepared what;
  };
  using Set = std::array<Entry, kWays>;
  static constexpr std::size_t sets_in(std::size_t table) noexcept { return table == 0 ? kFirstSets : kLarger * sets_in(table - 1); }
  static std::size_t index_of(std::uint64_t request, std::size_t table) noexcept {
    return (request * 0x9e3779b97f4a7c15u >> 40) % sets_in(table);
  }

  /// Null if there is no memory for it.
  Set* table(std::size_t i) noexcept {
    if (owned_[i] == nullptr) {
      owned_[i].reset(new (std::nothrow) Set[sets_in(i)]);
      tables_[i].store(owned_[i].get(), std::memory_order_release);
    }
    return owned_[i].get();
  }
  void forget(std::uint64_t request) noexcept {
    for (std::size_t i = 0; i < kTables && owned_[i] != nullptr; ++i) {
      for (Entry& e : owned_[i][index_of(request, i)]) {
        if (e.request.load(std::memory_order_relaxed) == request) e.request.store(0, std::memory_order_relaxed);
      }
    }
  }

  std::array<std::unique_ptr<Set[]>, kTables> owned_;
  std::array<std::atomic<Set*>, kTables> tables_{};
  std::atomic<bool> any_{false};
  std::mutex mutex_;
};

}  // namespace fallow::pmpi
