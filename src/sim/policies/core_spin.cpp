#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_spin(const CoreOptions&, const CoreSpec&) { return {}; }

}  // namespace fallow::sim::policies_detail
