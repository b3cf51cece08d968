#include "sim/policies/policies.hpp"

namespace fallow::sim::policies_detail {

Policy always_on(const PolicyOptions&, const LinkSpec&) { return {}; }

}  // namespace fallow::sim::policies_detail
