// What each rank and each link came to in a simulation: Engine::details(). Times in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network.hpp"
#include "trace/op.hpp"

namespace fallow::sim {

struct RankDetail {
  Time end = 0;  ///< when its last call was over
  /// Of the time until `end`. Waiting: polling or changing state; resting: asleep, slowed or throttled.
  Time computing = 0, in_calls = 0, waiting = 0, resting = 0;
  std::uint64_t calls = 0;
  std::uint64_t mispredictions = 0;  ///< by its predictor's own account
  std::uint64_t searches = 0;        ///< likewise: pattern searches
  Time predicted_delay = 0;          ///< likewise: delay that its rests caused
};

/// Receives that are shorter than the message that they took, of which MPI makes an error. The first one that was met.
/// Not of wildcards, nor of receives that are persistent or whose length the trace does not tell.
struct TooShort {
  std::uint64_t count = 0;
  std::uint32_t source = 0, target = 0;  ///< world ranks
  std::uint32_t comm = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0, room = 0;
};

/// Collective calls of which ranks name different sizes, of which MPI makes an error; where a trace tells no size, there is none
/// to compare. The first one that was met, of one rank and of the one that made the call before.
struct UnlikeSizes {
  std::uint64_t count = 0;
  trace::Op op = trace::Op::other;
  std::uint32_t comm = 0;
  struct Side {
    std::uint32_t rank = 0;  ///< world rank
    std::uint64_t call = 0;  ///< of this rank, from 1
    std::uint64_t bytes = 0; ///< of the vector, or of one rank's block
  } before, then;
};

struct Details {
  std::vector<RankDetail> ranks;
  std::vector<LinkTotals> links;  ///< by number, of edge links those of nodes in use; each counts as one link
  std::vector<std::uint32_t> numbers;  ///< of these links: node (card to switch), nodes + node (switch to card), or upper
  TooShort too_short;        ///< if the critical path was followed
  UnlikeSizes unlike_sizes;  ///< likewise
};

}  // namespace fallow::sim
