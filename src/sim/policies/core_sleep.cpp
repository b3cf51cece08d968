// Waits are mostly very short or long: what has been polled for as long as a sleep costs is slept through.
#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_sleep(const CoreOptions& options, const CoreSpec& core) {
  CorePolicy policy;
  policy.rule = CoreRule::timer;
  policy.rest = sleep_state(options, core);
  policy.timer = options.timer == kNever ? policy.rest.down + policy.rest.up : options.timer;
  return policy;
}

}  // namespace fallow::sim::policies_detail
