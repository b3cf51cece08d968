// What each rank and each link came to in a simulation: Engine::details(). Times in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network.hpp"

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

struct Details {
  std::vector<RankDetail> ranks;
  std::vector<LinkTotals> links;  ///< by number, of edge links those of nodes in use; each counts as one link
  std::vector<std::uint32_t> numbers;  ///< of these links: node (card to switch), nodes + node (switch to card), or upper
};

}  // namespace fallow::sim
