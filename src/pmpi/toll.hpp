// What a sleep costs the program as a whole, as far as one rank can see: whether what it waits for next comes later.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/libm.hpp"

namespace fallow::pmpi {

/// Compares, place by place, the time from what one wait was for to what the next is for, where the rank slept in the first
/// and where it did not. A rank that has time to spare makes good what sleeping costs it, and that time stays the same; one
/// whose delay holds up others gets what it waits for next so much later. Places that share an entry forget each other.
class Toll {
 public:
  /// What was waited for at `place` was there at `tick`, or came during the sleep, which made the rank about `late_ns` late; 0: it
  /// was seen to come.
  void wait_over(std::uint64_t place, std::uint64_t tick, double ns_per_tick, bool slept, double late_ns) noexcept {
    if (late_ns > 0) {
      late_place_ = late_ns_ > 0 ? kNowhere : place;  // two in a row tell nothing
      late_ns_ = late_ns;
      return;
    }
    const double since_ns = static_cast<double>(tick - last_tick_) * ns_per_tick;
    if (last_tick_ != 0 && late_ns_ == 0) learn(entry(last_place_), place, since_ns, last_slept_);
    if (last_tick_ != 0 && late_ns_ > 0 && late_place_ == place && last_place_ == place) learn_late(entry(place), since_ns);
    late_ns_ = 0;
    last_place_ = place;
    last_tick_ = tick;
    last_slept_ = slept;
  }

  /// By how much a sleep at this place makes the program later, in ns, with what it may be off by: `assumed` if not known.
  double per_sleep(std::uint64_t place, double assumed) const noexcept {
    const Entry& e = entries_[place >> 58];
    if (e.place != place || e.slept.count < kEnough || e.awake.count < kEnough) return assumed;
    const double error = kSpreadIsDeviation * e.spread * libm::sqrt(1.0 / e.slept.count + 1.0 / e.awake.count);
    if (error > assumed) return assumed;
    const double cost = e.slept.mean - e.awake.mean;
    return std::max(std::min(assumed, cost + error), std::max(kLeastNs, cost - error));
  }

  /// Share of the delays of sleeps that ended late by which the program is later, with what it may be off by: 1 if not known.
  double lasting_share(std::uint64_t place) const noexcept {
    const Entry& e = entries_[place >> 58];
    if (e.place != place || e.late.count < kEnough || e.late_by.mean <= 0) return 1.0;
    const double error = kSpreadIsDeviation * e.spread * libm::sqrt(2.0 / e.late.count);
    return error > e.late_by.mean / 2 ? 1.0 : std::clamp((e.late.mean + error) / e.late_by.mean, 0.0, 1.0);
  }

  /// Whether the wait that begins at this place is to be spent awake, so that there is something to compare with.
  bool compares(std::uint64_t place) noexcept {
    Entry& e = entry(place);
    return ++e.begun % kOneIn == 0;
  }

 private:
  static constexpr std::uint32_t kEnough = 8, kMemory = 128;  // cycles of a kind
  static constexpr std::uint32_t kWarmUp = 8;         // cycles from which the usual one is taken
  static constexpr std::uint32_t kDoubted = 8;        // unusual cycles more than usual ones until the usual one is taken anew
  static constexpr std::uint32_t kOneIn = 32;
  static constexpr double kLeastNs = 1e3;
  static constexpr double kInterruptedNs = 300e3;     // who was later was held up by something else, which others may have felt too
  static constexpr double kClipped = 4.0;             // mean distances that a cycle counts for at most: interruptions are not the sleep's
  static constexpr double kSpreadIsDeviation = 1.25;  // mean distance to standard deviation, if normal
  static constexpr std::size_t kEntries = 64;

  struct Mean {
    std::uint32_t count = 0;
    double mean = 0;
    void add(double x) noexcept {
      if (count < kMemory) ++count;
      mean += (x - mean) / count;
    }
  };
  struct Entry {
    std::uint64_t place = 0, next = 0;  ///< where the cycle begins and ends
    std::uint32_t begun = 0, cycles = 0, unusual = 0;
    double usual = 0, spread = 0;       ///< a cycle, and how far the others are from it on the mean, ns
    Mean slept{}, awake{};              ///< distances from the usual cycle, clipped
    Mean late{}, late_by{};             ///< of two cycles about a wait that ended late, from two usual ones, and how late that was
  };

  Entry& entry(std::uint64_t place) noexcept {
    Entry& e = entries_[place >> 58];
    if (e.place != place) e = {.place = place};
    return e;
  }

  static void learn(Entry& e, std::uint64_t next, double cycle, bool slept) noexcept {
    if (e.cycles == 0) e.next = next;
    if (e.next != next) return doubt(e);
    const double off = cycle - e.usual;
    if (e.cycles < kWarmUp) {
      if (e.cycles > 0 && std::abs(off) > e.usual / 2) return doubt(e);
      if (e.cycles++ > 0) e.spread += (std::abs(off) - e.spread) / e.cycles;
      e.usual += off / e.cycles;
      return;
    }
    const double most = kClipped * std::max(e.spread, kLeastNs), clipped = std::clamp(off, -most, most);
    if (clipped != off) {
      doubt(e);
      if (e.cycles == 0) return;  // forgotten
    } else if (e.unusual > 0) {
      --e.unusual;
    }
    e.spread += (std::abs(clipped) - e.spread) / kMemory;
    (slept ? e.slept : e.awake).add(clipped);
  }

  /// The rank was late in the middle of two cycles of one place, which took `cycles` in all.
  void learn_late(Entry& e, double cycles) noexcept {
    if (e.cycles < kWarmUp || e.next != e.place || late_ns_ > kInterruptedNs) return;
    const double most = kClipped * std::max(e.spread, kLeastNs) + late_ns_;
    e.late.add(std::clamp(cycles - 2 * e.usual, -most, most));
    e.late_by.add(late_ns_);
  }

  static void doubt(Entry& e) noexcept {
    if (++e.unusual > kDoubted) e = {.place = e.place, .begun = e.begun};
  }

  std::array<Entry, kEntries> entries_{};
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  std::uint64_t last_place_ = 0, late_place_ = 0;
  std::uint64_t last_tick_ = 0;
  double late_ns_ = 0;  // 0: no such wait
  bool last_slept_ = false;
};

}  // namespace fallow::pmpi
