#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_fixed(const CoreOptions& options, const CoreSpec& core) {
  const Hertz f = frequency_of(options, core);
  CorePolicy policy;
  policy.compute = core.power.compute_at(f);
  policy.poll = core.power.spin_at(f);
  policy.calls_slower = core.power.nominal / f;
  policy.slower = options.memory_share + (1 - options.memory_share) * policy.calls_slower;
  return policy;
}

}  // namespace fallow::sim::policies_detail
