#include "sim/policies/policies.hpp"

namespace fallow::sim::policies_detail {

Policy oracle(const PolicyOptions& options, const LinkSpec&) {
  Policy policy;
  policy.edge = {LinkRule::oracle, 0, options.deep_timer};
  return policy;
}

}  // namespace fallow::sim::policies_detail
