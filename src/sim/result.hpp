// What a simulation found. Times are sums of integers; energies are computed from them once, at the end, so that they
// depend on no order. Everything here is modelled, nothing measured.
#pragma once

#include <cstdint>
#include <string>

#include "sim/network.hpp"
#include "sim/policy.hpp"

namespace fallow::sim {

struct CoreTotals {
  Time computing = 0, in_calls = 0, waiting = 0, sleeping = 0;  ///< waiting: polling; sums over all ranks
};

struct Energy {
  Joules edge_links, upper_links, switches, cards, cores;
  Joules total() const noexcept {
    return edge_links + upper_links + switches + cards + cores;
  }
};

struct Result {
  std::string policy;
  std::uint32_t ranks = 0, nodes = 0, switches = 0;
  Time makespan = 0;
  std::uint64_t calls = 0, messages = 0, events = 0;
  LinkTotals edge, upper;
  CoreTotals cores;
  Energy energy;
  std::uint64_t mispredictions = 0;  ///< by the predictors' own account
  std::size_t memory_bytes = 0;      ///< of the engine, without the source of events
};

/// Energy of what `result` counts, on this machine.
Energy energy_of(const Result& result, const Machine& machine) noexcept;

/// One JSON object: the same bytes for the same input.
std::string to_json(const Result& result);

}  // namespace fallow::sim
