// What the calls of many ranks have in common: everything but peers and times. Programs make the same few calls again
// and again on all their ranks, so a call is kept as a number of this table, which stays in the cache.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "trace/event.hpp"

namespace fallow::trace {

class CallShapes {
 public:
  static constexpr std::size_t kMaxWords = 64;  ///< in the lists of one call
  static constexpr std::uint32_t kMost = 1u << 16;

  /// The number of what `call` is but for peers and times; 0 if its lists are too long, or if the table is full. From
  /// any thread.
  std::uint32_t number_of(const CallEvent& call);

  /// Without peers and times. Of a number that this thread was given, or that was handed to it.
  const CallEvent& operator[](std::uint32_t number) const noexcept { return blocks_[number / kBlock][number % kBlock]; }

 private:
  static constexpr std::uint32_t kBlock = 1024;

  std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::array<std::unique_ptr<CallEvent[]>, kMost / kBlock> blocks_;  // which never move
  std::vector<std::unique_ptr<std::uint64_t[]>> counts_;             // what their spans are of
  std::vector<std::unique_ptr<std::uint32_t[]>> requests_;
  std::uint32_t next_ = 1;
};

}  // namespace fallow::trace
