// The simulator's clock: integer picoseconds (docs/adr/0030). Sums of integers do not depend on their order, and
// 40 Gbit/s is exactly 200 of them per byte. 63 bits last for 106 days, a quarter of which is used.
#pragma once

#include <cstdint>
#include <limits>

#include "base/units.hpp"

namespace fallow::sim {

/// A point in time or a duration, picoseconds. A plain integer inside the engine, where all times are of this kind.
using Time = std::int64_t;

inline constexpr Time kNs = 1000;
inline constexpr Time kUs = 1000 * kNs;
inline constexpr Time kMs = 1000 * kUs;
inline constexpr Time kNever = std::numeric_limits<Time>::max() / 4;

/// A sum over ranks or links: of a million ranks, 63 bits last for no more than 9 s.
__extension__ using TimeSum = __int128;

constexpr Seconds seconds(Time t) noexcept { return Seconds(static_cast<double>(t) * 1e-12); }
constexpr Seconds seconds(TimeSum t) noexcept { return Seconds(static_cast<double>(t) * 1e-12); }
/// Rounded down, for those who count in nanoseconds.
constexpr Nanoseconds nanoseconds(Time t) noexcept { return Nanoseconds(t / kNs); }

/// What so many bytes take at this pace; kNever where that is longer than can be told (26 days).
constexpr Time duration_of(std::uint64_t bytes, Time ps_per_kib) noexcept {
  const TimeSum duration = TimeSum{bytes} * ps_per_kib >> 10;
  return duration < kNever ? static_cast<Time>(duration) : kNever;
}

inline constexpr std::uint32_t kNone = 0xffffffff;
inline constexpr std::uint32_t kMaxRanks = 1u << 20;  ///< a rank takes 20 bits of an event's order
inline constexpr std::uint32_t kMaxNodes = 1u << 22;  ///< of a topology

}  // namespace fallow::sim
