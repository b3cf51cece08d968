// What `fallow trace info` says of a trace: one pass over its events, memory does not grow with its length, but with the persistent requests there are.
#pragma once

#include <array>
#include <cstdint>

#include "trace/event.hpp"
#include "trace/look.hpp"

namespace fallow::trace {

/// Gaps by length as in the papers: below 20 us, up to 200 us, and above (Dickov 2015, table 5.1).
inline constexpr std::array<std::uint64_t, 2> kGapBoundsNs{20'000, 200'000};
inline constexpr std::size_t kGapBins = kGapBoundsNs.size() + 1;

struct OpTotals {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  ///< moved with them, a root's own block too
  std::uint64_t time_ns = 0, wait_ns = 0;
};

struct Statistics {
  std::uint64_t events = 0, dropped = 0;
  std::uint64_t first_ns = 0, last_ns = 0;       ///< over all ranks
  std::uint64_t mpi_ns = 0, compute_ns = 0;      ///< sums over ranks and threads
  std::uint64_t incomplete_ranks = 0, empty_ranks = 0;
  std::array<OpTotals, kOps> ops{};
  std::array<std::uint64_t, kGapBins> gap_count{}, gap_ns{};  ///< gaps between calls of one thread
};

/// Reads all of `source`. Throws what it throws, or `look`.
Statistics summarize(EventSource& source, const Look& look = {});

}  // namespace fallow::trace
