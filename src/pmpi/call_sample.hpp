// Whether the calls of a thread are such that most of them are better counted only, see CountedCalls.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pmpi/counted_calls.hpp"

namespace fallow::pmpi {

/// A call that was recorded, in ticks.
struct RecordedCall {
  CallPlace place;  ///< of a call that can not be counted only: with no caller
  std::uint64_t enter = 0, exit = 0;
};

/// What many calls in a row say of those among them that can be counted only.
class CallSample {
 public:
  /// `reading`: ticks that one of the clock takes; `work`: what is longer than this between two tests is work.
  CallSample(std::uint64_t reading, std::uint64_t work) noexcept : reading_(reading), work_(work) {}

  /// False where they are not to be counted only: there are too many other calls, or places.
  bool add(const RecordedCall& call) noexcept {
    if (calls_++ == 0) {
      first_ = call.enter;
    } else {
      const std::uint64_t gap = call.enter - last_;
      gaps_ += gap;
      if (gap > work_) ++worked_;
    }
    last_ = call.exit;
    if (call.place.caller == nullptr) return ++others_ <= kMostOthers;
    if (!call.place.tests) ++useful_;
    for (std::size_t i = 0; i < kSums; ++i) {
      Sum& s = sums_[i];
      if (s.calls == 0) s.place = call.place;
      if (s.place.caller != call.place.caller || s.place.op != call.place.op) continue;
      if (s.place.comm != call.place.comm) return false;
      add(s, call.exit - call.enter);
      return true;
    }
    return ++others_ <= kMostOthers;
  }

  /// Whether they are tests for the most part, and there may be nothing between more than a few of them, as in loops that wait.
  bool is_close() const noexcept { return 4 * useful_ < calls_ && 4 * worked_ < 3 * calls_; }
  /// Ticks from one to the next, and between them, on average.
  std::uint64_t pace() const noexcept { return calls_ == 0 ? 0 : (last_ - first_) / calls_; }
  std::uint64_t gap() const noexcept { return calls_ < 2 ? 0 : gaps_ / (calls_ - 1); }

  /// Where most of them were made. `storage`: one for each.
  std::span<const CallPlace> places(std::span<CallPlace, CountedCalls::kPlaces> storage) const noexcept {
    std::size_t n = 0;
    for (const Sum& s : sums_) {
      if (s.calls < kLeast) continue;
      storage[n] = s.place;
      storage[n++].lasts = std::max<std::uint64_t>(s.usual / s.usual_calls, reading_ + 1) - reading_;
    }
    return storage.first(n);
  }

 private:
  static constexpr std::uint32_t kMostOthers = 16, kLeast = 8;
  static constexpr std::size_t kSums = CountedCalls::kPlaces;
  static constexpr std::uint64_t kOdd = 2, kOddUseful = 8;  ///< calls that last so many times as long as the shortest are not usual
  struct Sum {
    CallPlace place;
    std::uint64_t shortest = ~std::uint64_t{0}, usual = 0;
    std::uint32_t calls = 0, usual_calls = 0;
  };

  static void add(Sum& s, std::uint64_t lasted) noexcept {
    const std::uint64_t odd = s.place.tests ? kOdd : kOddUseful;
    ++s.calls;
    if (lasted < s.shortest / odd) s.usual = s.usual_calls = 0;
    s.shortest = std::min(s.shortest, lasted);
    if (lasted > odd * s.shortest) return;
    s.usual += lasted;
    ++s.usual_calls;
  }

  std::uint64_t reading_, work_;
  std::array<Sum, kSums> sums_{};
  std::uint64_t first_ = 0, last_ = 0, gaps_ = 0;
  std::uint32_t calls_ = 0, others_ = 0, worked_ = 0, useful_ = 0;
};

}  // namespace fallow::pmpi
