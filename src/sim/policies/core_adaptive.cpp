#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_adaptive(const CoreOptions& options, const CoreSpec& core) {
  CorePolicy policy;
  policy.rule = CoreRule::planned;
  policy.rest = sleep_state(options, core);
  policy.budget = options.budget;
  return policy;
}

}  // namespace fallow::sim::policies_detail
