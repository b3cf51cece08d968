// Sorts events. Many at once are dealt out by the leading bits of what they differ in, as often as it takes: where
// thousands of ranks go on at the same time, comparisons would mostly be guessed wrong by the processor.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/event.hpp"

namespace fallow::sim {

class EventSorter {
 public:
  static constexpr std::uint32_t kReach = 1u << 25;  ///< the times of what is sorted differ by less
  /// None of them is earlier than `first`, none as late as first + kReach.
  void sort(std::span<ShortEvent> events, std::uint32_t first) {
    if (events.size() <= kFew) return few(events, first);
    if (spare_.size() < events.size()) spare_.resize(events.size() + events.size() / 8);
    many(events);
  }
  /// Events that there is room for.
  std::size_t capacity() const noexcept { return spare_.capacity(); }

 private:
  static constexpr std::size_t kFew = 64, kVeryFew = 12;
  static constexpr int kMostBits = 10;
  static constexpr int kFewBits = 6;
  static_assert(kFew == std::size_t{1} << kFewBits && kFew % 8 == 0);
  static_assert(kReach == 1u << (31 - kFewBits));
  static constexpr std::size_t kSideBySide = 8;

  static void few(std::span<ShortEvent> events, std::uint32_t first) noexcept {
    if (events.size() > kVeryFew) return by_rank(events, first);
    in_turn(events);
  }

  static void in_turn(std::span<ShortEvent> events) noexcept {
    for (std::size_t i = 1; i < events.size(); ++i) {
      const ShortEvent event = events[i];
      std::size_t at = i;
      for (; at > 0 && event < events[at - 1]; --at) events[at] = events[at - 1];
      events[at] = event;
    }
  }

  /// Counts for each how many are earlier: more comparisons than it takes, but several at a time, and none is guessed.
  static void by_rank(std::span<ShortEvent> events, std::uint32_t first) noexcept {
    const std::size_t count = events.size();
    alignas(64) std::int32_t keys[kFew];
    for (std::size_t i = 0; i < count; ++i) keys[i] = static_cast<std::int32_t>((events[i].time() - first) << kFewBits | i);
    for (std::size_t i = count; i % kSideBySide != 0; ++i) keys[i] = std::numeric_limits<std::int32_t>::max();
    alignas(64) std::int32_t places[kFew];
    for (std::size_t i = 0; i < count; i += kSideBySide) {
      std::int32_t earlier[kSideBySide] = {};
      for (std::size_t j = 0; j < count; ++j) {
        for (std::size_t k = 0; k < kSideBySide; ++k) earlier[k] += keys[j] < keys[i + k] ? 1 : 0;
      }
      std::copy(earlier, earlier + kSideBySide, places + i);
    }
    alignas(ShortEvent) std::byte copy[kFew * sizeof(ShortEvent)];
    std::memcpy(copy, events.data(), events.size_bytes());
    for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<void*>(&events[static_cast<std::size_t>(places[i])]), copy + i * sizeof(ShortEvent), sizeof(ShortEvent));
    in_turn(events);  // of those at one time
  }

  void many(std::span<ShortEvent> events) noexcept {
    std::uint32_t first = events[0].time(), last = first;
    std::uint64_t low = events[0].tie(), high = low;
    for (const ShortEvent& e : events) {
      const std::uint32_t time = e.time();
      first = std::min(first, time), last = std::max(last, time);
      low = std::min(low, e.tie()), high = std::max(high, e.tie());
    }
    if (first != last) return deal(events, first, last - first, [first](const ShortEvent& e) { return std::uint64_t{e.time() - first}; });
    if (low != high) deal(events, first, high - low, [low](const ShortEvent& e) { return e.tie() - low; });
  }

  /// By `key`, which is at most `largest` and differs; equal leading bits are then sorted among themselves.
  template <class Key>
  void deal(std::span<ShortEvent> events, std::uint32_t first, std::uint64_t largest, Key&& key) noexcept {
    const int bits = std::min(kMostBits, static_cast<int>(std::bit_width(events.size())) - 1);
    const int shift = std::max(0, static_cast<int>(std::bit_width(largest)) - bits);
    std::array<std::uint32_t, (1u << kMostBits) + 1> ends{};
    for (const ShortEvent& e : events) ++ends[(key(e) >> shift) + 1];
    const std::size_t piles = static_cast<std::size_t>(largest >> shift) + 1;
    for (std::size_t i = 1; i <= piles; ++i) ends[i] += ends[i - 1];
    for (const ShortEvent& e : events) spare_[ends[key(e) >> shift]++] = e;
    std::memcpy(static_cast<void*>(events.data()), spare_.data(), events.size_bytes());
    for (std::size_t i = 0, begin = 0; i < piles; begin = ends[i++]) {
      const std::span<ShortEvent> pile = events.subspan(begin, ends[i] - begin);
      if (pile.size() > kFew) {
        many(pile);
      } else if (pile.size() > 1) {
        few(pile, first);
      }
    }
  }
  static_assert(std::is_trivially_copyable_v<ShortEvent>);

  std::vector<ShortEvent> spare_;
};

}  // namespace fallow::sim
