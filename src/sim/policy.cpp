#include "sim/policy.hpp"

#include <cmath>
#include <stdexcept>

#include "sim/policies/policies.hpp"

namespace fallow::sim {
namespace {

constexpr PolicyInfo kPolicies[] = {
    {"always-on", "all links at full width all the time", policies_detail::always_on},
    {"hardware", "links rest after idling for a fixed time and wake on demand", policies_detail::hardware},
    {"calls", "links wake for each call and rest after it (Dickov, chapter 4)", policies_detail::calls},
    {"loops", "the same for each burst of calls (Dickov, chapter 4)", policies_detail::loops},
    {"pps", "links rest as pattern prediction says (Dickov, chapter 5)", policies_detail::pps},
    {"spps", "the same with a grouping threshold that tunes itself", policies_detail::spps},
    {"adaptive", "the same with Fallow's own predictor, delay held to a budget", policies_detail::adaptive},
    {"oracle", "links rest in every gap that is long enough and wake in time: the upper bound", policies_detail::oracle},
};

void check(const PolicyOptions& o) {
  if (!(o.compress.ratio > 0 && o.compress.ratio <= 1)) throw std::invalid_argument("messages are compressed to a share above 0 and at most 1");
  if (!(o.lead >= 0 && o.lead < 1)) throw std::invalid_argument("the lead is a share from 0 to below 1");
  if (!(o.budget >= 0 && o.budget <= 1)) throw std::invalid_argument("the budget is a share from 0 to 1");
}

}  // namespace

std::uint32_t CompressPolicy::lanes_of(std::uint32_t lanes) const noexcept {
  const auto needed = static_cast<std::uint32_t>(std::ceil(ratio * lanes - 1e-9));
  return std::max(1u, std::min(lanes, needed));
}

std::span<const PolicyInfo> policies() noexcept { return kPolicies; }

Policy make_policy(std::string_view name, const PolicyOptions& options, const Machine& machine) {
  check(options);
  for (const PolicyInfo& info : kPolicies) {
    if (name != info.name) continue;
    Policy policy = info.make(options, machine.link);
    policy.name = info.name;
    policy.core = make_core_policy(options.core, machine.node.core);
    if (policy.predictor) policy.cost = options.cost;
    policy.compress = options.compress;
    // Without contention nothing passes switches and the links between them: idle all the time, they would rest all the time.
    const bool passes = machine.contention == Contention::full;
    if (options.upper_links && passes) policy.upper = policy.edge;
    // A switch or card has one state of rest, so its timer is its own.
    const LinkPolicy part{policy.edge.rule, options.part_timer, kNever};
    if (options.switches && passes) policy.switches = part;
    if (options.cards) policy.cards = part;
    return policy;
  }
  throw std::invalid_argument("no policy is called '" + std::string(name) + "'");
}

}  // namespace fallow::sim
