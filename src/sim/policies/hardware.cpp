// What a switch can do alone: on-demand schemes with idle timers (after K. P. Saravanan et al., "PerfBound", 2014).
#include "sim/policies/policies.hpp"

namespace fallow::sim::policies_detail {

Policy hardware(const PolicyOptions& options, const LinkSpec&) {
  Policy policy;
  policy.edge = {LinkRule::timer, options.idle_timer, options.deep_timer};
  return policy;
}

}  // namespace fallow::sim::policies_detail
