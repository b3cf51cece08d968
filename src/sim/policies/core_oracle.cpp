#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_oracle(const CoreOptions& options, const CoreSpec& core) {
  CorePolicy policy;
  policy.rule = CoreRule::oracle;
  policy.rest = sleep_state(options, core);
  return policy;
}

}  // namespace fallow::sim::policies_detail
