#include "sim/core_policy.hpp"

namespace fallow::sim::policies_detail {

CorePolicy core_yield(const CoreOptions&, const CoreSpec& core) {
  CorePolicy policy;
  policy.poll = core.power.yield;
  policy.notice = core.yield_round;
  return policy;
}

}  // namespace fallow::sim::policies_detail
