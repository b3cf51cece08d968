// Requests of which the trace has to say at their end what became of them: receives from any source or of any tag, and
// what the program asked to cancel. One thread at a time, but for any().
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "trace/request_ids.hpp"

namespace fallow::pmpi {

class Doubts {
 public:
  /// `most`: numbers from there on stay unsaid.
  explicit Doubts(std::uint32_t most = trace::RequestIds::kMost) : marks_(most) {}

  /// Whether there are any, for whom it is enough to know of those that the calling thread knows of.
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  /// Request `id`, which is new, receives what its call does not name.
  void open(std::uint32_t id, bool persistent) noexcept { mark(id, persistent ? kOpen | kStays : kOpen); }
  /// The program asked to cancel it.
  void cancelling(std::uint32_t id) noexcept { mark(id, kCancelling); }
  bool is_open(std::uint32_t id) const noexcept { return (of(id) & kOpen) != 0; }
  bool is_cancelling(std::uint32_t id) const noexcept { return (of(id) & kCancelling) != 0; }

  /// The request has completed; one that is persistent stays open for its next time.
  void completed(std::uint32_t id) noexcept { set(id, (of(id) & kStays) != 0 ? kOpen | kStays : 0); }
  /// The number is free, or another request's.
  void forget(std::uint32_t id) noexcept { set(id, 0); }

 private:
  static constexpr unsigned kOpen = 1, kCancelling = 2, kStays = 4;

  unsigned of(std::uint32_t id) const noexcept { return id < marks_.size() ? marks_[id] : 0; }
  void mark(std::uint32_t id, unsigned bit) noexcept {
    set(id, of(id) | bit);
  }
  void set(std::uint32_t id, unsigned bits) noexcept {
    if (id >= marks_.size() || marks_[id] == bits) return;
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    count_.store(count + (bits != 0) - (marks_[id] != 0), std::memory_order_relaxed);
    marks_[id] = static_cast<std::uint8_t>(bits);
  }

  std::vector<std::uint8_t> marks_;  ///< by number of the request
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace fallow::pmpi
