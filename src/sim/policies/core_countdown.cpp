// A timer set on entering a call lowers the frequency when it fires; the end of the call raises it again, and the core
// computes on while that takes effect (D. Cesarini et al., "COUNTDOWN", ANDARE 2018; timer 500 us).
#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_countdown(const CoreOptions& options, const CoreSpec& core) {
  constexpr Time kTimer = 500 * kUs;
  const Hertz low = frequency_of(options, core);
  CorePolicy policy;
  policy.rule = CoreRule::timer;
  policy.timer = options.timer == kNever ? kTimer : options.timer;
  policy.rest = {core.power.spin_at(low), core.frequency_change, core.frequency_change, 0};
  policy.rest.speed = 1 / (options.memory_share + (1 - options.memory_share) * (core.power.nominal / low));
  return policy;
}

}  // namespace fallow::sim::policies_detail
