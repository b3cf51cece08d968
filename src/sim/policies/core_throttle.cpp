// Throttling keeps a share of the clock's cycles: what is drawn above sleep falls with them (Kandalla 2010: T0 to T7).
#include <stdexcept>

#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_throttle(const CoreOptions& options, const CoreSpec& core) {
  if (options.throttle >= core.throttle_steps) throw std::invalid_argument("the platform's cores throttle from T0 to T" + std::to_string(core.throttle_steps - 1));
  const double duty = 1 - static_cast<double>(options.throttle) / core.throttle_steps;
  CorePolicy policy;
  policy.rule = CoreRule::timer;
  policy.timer = options.timer == kNever ? 10 * core.throttle_change : options.timer;
  policy.rest = {core.power.sleep + (core.power.spin - core.power.sleep) * duty, core.throttle_change, core.throttle_change, duty};
  return policy;
}

}  // namespace fallow::sim::policies_detail
