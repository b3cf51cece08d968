// What computing costs after a sleep: the caches of a core that slept are cold, and a virtual one may be another one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fallow::pmpi {

/// What became of a wait that was to be slept in.
enum class Lot : std::uint8_t { none, slept, withheld };

/// Compares, place by place, how long a thread computes before its next calls, where it slept in a wait and where it would have slept
/// but was kept awake by lot. Nothing else tells what sleeping costs a program: the waits that are slept in are not like the others,
/// and what follows them is not. Places that share an entry forget each other.
class Rewarming {
 public:
  /// Whether the wait about to be slept in at this place is to be spent awake.
  bool withholds(std::uint64_t place) noexcept {
    Entry& e = entry(place);
    const std::uint32_t drawn = ++e.planned * 0x9e3779b9u;  // spread evenly, and in step with no loop of the program
    return drawn >> (e.awake.count < kEnough ? kOften : kSeldom) == 0;
  }

  /// The wait at this place, in the thread's call `number`, is over; before that call it had computed for `gap` ticks.
  void wait_over(std::uint64_t place, Lot lot, std::uint64_t number, std::uint64_t gap, double ns_per_tick) noexcept {
    computed(number, gap);
    if (lot_ != Lot::none) (lot_ == Lot::slept ? entry(place_).slept : entry(place_).awake).add(static_cast<double>(ticks_) * ns_per_tick);
    place_ = place;
    lot_ = lot;
    first_ = number + 1;
    ticks_ = 0;
  }

  /// Before its call `number` the thread computed for so long. In integers: the program's floating-point state is not kept here.
  void computed(std::uint64_t number, std::uint64_t ticks) noexcept {
    if (number - first_ < kCalls) ticks_ += ticks;
  }

  /// By how much the program computes longer after a sleep at this place, in ns: 0 if not known, less than it seems where that may
  /// be chance.
  double slower_by(std::uint64_t place) const noexcept {
    const Entry& e = entries_[place >> 58];
    if (e.place != place || e.slept.count < kEnough || e.awake.count < kEnough) return 0;
    const double longer = e.slept.mean - e.awake.mean, error = std::sqrt(e.slept.squared_error() + e.awake.squared_error());
    return longer > kCertain * error ? longer : std::max(0.0, longer - error);
  }

 private:
  static constexpr std::uint32_t kEnough = 4, kMemory = 64;  // waits of a kind
  static constexpr unsigned kOften = 26, kSeldom = 25;       // one wait in 64, and in 128: the high bits that are not all zero
  static constexpr std::uint64_t kCalls = 8;
  static constexpr double kClipped = 4.0, kLeastStepNs = 10e3;  // mean distances that one wait counts for: interruptions are no cost of it
  static constexpr double kSpreadIsDeviation = 1.25;            // mean distance to standard deviation, if normal
  static constexpr double kCertain = 2.0;
  static constexpr std::size_t kEntries = 64;

  struct Mean {
    std::uint32_t count = 0;
    double mean = 0, spread = 0;

    void add(double x) noexcept {
      if (count < kMemory) ++count;
      const double most = std::max({kClipped * spread, mean / 4, kLeastStepNs});
      const double off = count == 1 ? x : std::clamp(x - mean, -most, most);
      mean += off / count;
      if (count > 1) spread += (std::abs(off) - spread) / (count - 1);
    }
    double squared_error() const noexcept { return kSpreadIsDeviation * kSpreadIsDeviation * spread * spread / count; }
  };
  struct Entry {
    std::uint64_t place = 0;
    std::uint32_t planned = 0;
    Mean slept{}, awake{};
  };

  Entry& entry(std::uint64_t place) noexcept {
    Entry& e = entries_[place >> 58];
    if (e.place != place) e = {.place = place};
    return e;
  }

  std::array<Entry, kEntries> entries_{};
  std::uint64_t place_ = 0, first_ = 0;  // calls [first_, first_ + kCalls) follow the wait
  std::uint64_t ticks_ = 0;              // computed before them
  Lot lot_ = Lot::none;
};

}  // namespace fallow::pmpi
