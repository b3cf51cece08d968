// What a simulation found. Times are sums of integers; energies are computed from them once, at the end, so that they
// depend on no order. Everything here is modelled, nothing measured.
#pragma once

#include <cstdint>
#include <string>

#include "sim/network.hpp"
#include "sim/policy.hpp"

namespace fallow::sim {

/// Which model results are of: one more with each change of what comes of the same program, machine and policy. What was
/// kept of another model is simulated again.
inline constexpr std::uint32_t kModel = 22;

/// Sums over all ranks: what their cores did. They add up to ranks x makespan: who is through waits for the last one.
struct CoreTotals {
  TimeSum computing = 0, in_calls = 0;
  TimeSum waiting = 0;    ///< polling
  TimeSum resting = 0;    ///< asleep, at a lower frequency or throttled, as the policy has it
  TimeSum changing = 0;   ///< on the way into such a state and back; draws what polling draws
  TimeSum late = 0;       ///< part of the above: from the coming of what was waited for until the rank went on
  std::uint64_t rests = 0;
};

struct Energy {
  Joules edge_links, upper_links, switches, cards, cores;
  Joules nodes;  ///< what else the nodes draw: memory, board, cores without a rank
  Joules total() const noexcept {
    return edge_links + upper_links + switches + cards + cores + nodes;
  }
};

/// Messages that no receive took until the end. The first one is that of the lowest receiver.
struct Unreceived {
  std::uint64_t count = 0;
  std::uint32_t source = 0, target = 0;  ///< world ranks
  std::uint32_t comm = 0;
  std::int32_t tag = 0;
};

struct Result {
  std::string policy;
  std::uint32_t ranks = 0, nodes = 0, switches = 0;
  Time makespan = 0;
  std::uint64_t calls = 0, messages = 0, events = 0;
  LinkTotals edge, upper;
  PartTotals switch_parts, card_parts;  ///< rests of what switches and cards are beside their ports
  CoreTotals cores;
  CorePolicy core_policy;               ///< what the cores drew in each state
  std::uint32_t lanes_on = 0;           ///< of links awake with fewer lanes
  Energy energy;
  std::uint64_t mispredictions = 0;  ///< by the predictors' own account
  Unreceived unreceived;
  std::uint64_t let_go = 0;          ///< calls of ranks with several threads that would have waited for ever, and were left
  std::uint64_t refused = 0;         ///< calls that returned an error, replayed without messages
  std::uint64_t unplaced = 0;        ///< calls on communicators of which the trace does not say who is in them, or who are neighbors; replayed without messages
  std::size_t memory_bytes = 0;      ///< of the engine, without the source of events
};

/// Energy of what `result` counts, on this machine.
Energy energy_of(const Result& result, const Machine& machine) noexcept;

/// One JSON object: the same bytes for the same input.
std::string to_json(const Result& result);

}  // namespace fallow::sim
