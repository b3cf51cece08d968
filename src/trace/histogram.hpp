// How intervals are counted by their length.
#pragma once

#include <bit>
#include <cstdint>

#include "trace/rank_file.hpp"

namespace fallow::trace {

/// Adds `times` intervals of so many ticks each, which are `ns` nanoseconds.
inline void add_intervals(Histogram& h, std::uint64_t ns, std::uint64_t ticks, std::uint64_t times = 1) noexcept {
  const unsigned bin = 63u - static_cast<unsigned>(std::countl_zero(ns | 1u));
  h.count[bin] += times;
  h.ticks[bin] += times * ticks;
  const unsigned coarse = ns < kCoarseEdgesNs[0] ? 0u : ns < kCoarseEdgesNs[1] ? 1u : 2u;
  h.coarse_count[coarse] += times;
  h.coarse_ticks[coarse] += times * ticks;
}

}  // namespace fallow::trace
