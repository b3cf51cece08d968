#include "sim/policy.hpp"

#include <stdexcept>

#include "sim/policies/policies.hpp"

namespace fallow::sim {
namespace {

constexpr PolicyInfo kPolicies[] = {
    {"always-on", "all links at full width all the time", policies_detail::always_on},
    {"hardware", "links rest after idling for a fixed time and wake on demand", policies_detail::hardware},
    {"oracle", "links rest in every gap that is long enough and wake in time: the upper bound", policies_detail::oracle},
    {"pps", "edge links rest as pattern prediction says (Dickov, chapter 5)", policies_detail::pps},
    {"spps", "the same with a grouping threshold that tunes itself", policies_detail::spps},
    {"adaptive", "the same with Fallow's own predictor, delay held to a budget", policies_detail::adaptive},
};

}  // namespace

std::span<const PolicyInfo> policies() noexcept { return kPolicies; }

Policy make_policy(std::string_view name, const PolicyOptions& options, const LinkSpec& link) {
  for (const PolicyInfo& info : kPolicies) {
    if (name != info.name) continue;
    Policy policy = info.make(options, link);
    policy.name = info.name;
    policy.core = options.core;
    policy.call_cost = options.call_cost;
    return policy;
  }
  throw std::invalid_argument("no policy is called '" + std::string(name) + "'");
}

}  // namespace fallow::sim
