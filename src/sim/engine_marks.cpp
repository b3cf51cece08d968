// Calls for which links wake without a predictor (Dickov, chapter 4).
#include "sim/engine.hpp"

namespace fallow::sim {

using trace::CallEvent;

/// A call for which what serves the rank wakes: no sooner than the clock is there, as what comes until then finds it at rest.
bool Engine::enter_marked(std::uint32_t r, const CallEvent& call) {
  Rank& rank = ranks_[r];
  const Time begun = rank.now + machine_.message.call_overhead + policy_.cost.call;
  if (!rank.entered) {
    if (begun > clock_) return go_on_at(r, begun), false;
    rest_.enter(r, begun, network_.narrows() && wants_all_lanes(call), network_);
    rank.entered = true;
  }
  const Time looks = machine_.message.unexpected == 0 ? 0 : looks_for_messages(r, call);
  if (looks > clock_) return go_on_at(r, looks), false;
  rank.entered = false;
  return true;
}

/// Whether messages of the call will pass that are not compressed, and not short.
bool Engine::wants_all_lanes(const CallEvent& call) const noexcept {
  const std::uint64_t bytes = std::max(call.bytes, call.recv_bytes);
  return bytes >= policy_.compress.least_bytes && !network_.compresses(bytes, trace::has(call.op, trace::kOpCollective));
}

}  // namespace fallow::sim
