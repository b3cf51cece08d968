// Whom a rank exchanges data with inside collective calls.
#pragma once

#include <cstdint>

namespace fallow::pmpi {

/// Distances of the ranks that algorithms of collectives exchange data with: powers of two (binomial trees, recursive doubling,
/// Bruck, dissemination; a ring is distance one), and those of trees and exchanges of up to eight branches, as MPICH has them.
constexpr std::int32_t next_distance(std::int32_t d) noexcept {
  if (d < 8) return d + 1;
  const bool power_of_two = (d & (d - 1)) == 0;
  return power_of_two ? d / 2 * 3 : d / 3 * 4;
}

/// Calls `visit` with each of `n` ranks that `me` may exchange data with in such an algorithm, with some more than once.
template <class Visit>
void each_partner(std::int32_t me, std::int32_t n, Visit visit) {
  for (std::int32_t distance = 1; distance < n; distance = next_distance(distance)) {
    const std::int32_t partners[] = {(me + distance) % n, ((me - distance) % n + n) % n, me ^ distance};
    for (const std::int32_t p : partners) {
      if (p < n) visit(p);
    }
  }
  if (me != 0) visit(0);  // the usual root
}

}  // namespace fallow::pmpi
