// From what one file says at successive times to the energy since the first of them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace fallow::power {

/// Sums the increments of a counter that wraps. An increment that would mean more power than `ceiling` is no wrap but a
/// reset or a jump: that interval is left out and counted as lost, so a total never holds energy nobody used.
class CounterAccumulator {
 public:
  /// `range`: the counter's largest value, after which it goes on from 0.
  CounterAccumulator(std::uint64_t range, Joules per_count, Watts ceiling) noexcept
      : range_(range), per_count_(per_count), ceiling_(ceiling) {}

  void add(std::uint64_t count, Nanoseconds now) noexcept;
  Joules energy() const noexcept { return energy_; }
  std::uint32_t lost_intervals() const noexcept { return lost_; }

 private:
  std::uint64_t range_;
  Joules per_count_;
  Watts ceiling_;
  Joules energy_{};
  std::uint32_t lost_ = 0;
  struct Last {
    std::uint64_t count;
    Nanoseconds time;
  };
  std::optional<Last> last_{};
};

/// Integrates a sampled power over time by the trapezoid rule.
class PowerAccumulator {
 public:
  void add(Watts power, Nanoseconds now) noexcept;
  Joules energy() const noexcept { return energy_; }

 private:
  Joules energy_{};
  struct Last {
    Watts power;
    Nanoseconds time;
  };
  std::optional<Last> last_{};
};

}  // namespace fallow::power
