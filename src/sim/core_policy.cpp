#include "sim/core_policy.hpp"

#include <cstdio>
#include <stdexcept>

namespace fallow::sim {
namespace {

using namespace policies_detail;

constexpr CorePolicyInfo kPolicies[] = {
    {"spin", "polls while it waits", core_spin},
    {"yield", "polls, and offers the core to others each time", core_yield},
    {"sleep", "polls for a short while, then blocks", core_sleep},
    {"countdown", "polls for a while, then goes on at the lowest frequency (Cesarini et al., COUNTDOWN, 2018)", core_countdown},
    {"throttle", "the same with the clock throttled (Kandalla 2010)", core_throttle},
    {"adaptive", "sleeps as the runtime's wait model says, delay held to a budget", core_adaptive},
    {"fixed", "one frequency all the time", core_fixed},
    {"oracle", "rests in every wait that is long enough and wakes in time: the upper bound", core_oracle},
};

}  // namespace

CoreRestState policies_detail::sleep_state(const CoreOptions& options, const CoreSpec& core) {
  if (options.state.empty()) return {core.power.sleep, core.sleep_down, core.wake};
  std::string known;
  for (const CoreSleepState& s : core.sleeps) {
    if (s.name == options.state) return {s.power, s.down, s.up};
    known += (known.empty() ? "" : ", ") + s.name;
  }
  throw std::invalid_argument("the platform's cores have no sleep state '" + options.state + "'; there are: " + (known.empty() ? "none" : known));
}

Hertz policies_detail::frequency_of(const CoreOptions& options, const CoreSpec& core) {
  const auto& at = core.power.at;
  const Hertz lowest = at.empty() ? core.power.nominal : at.front().frequency;
  char text[128];
  if (options.frequency <= Hertz{}) {
    if (lowest < core.power.nominal) return lowest;
    std::snprintf(text, sizeof(text), "the platform's cores have one frequency only, %g GHz, so '%s' would change nothing", core.power.nominal.value * 1e-9,
                  options.name.c_str());
    throw std::invalid_argument(text);
  }
  if (options.frequency < lowest || options.frequency > core.power.nominal) {
    std::snprintf(text, sizeof(text), "%g GHz is no frequency of the platform's cores, which have %g to %g GHz", options.frequency.value * 1e-9,
                  lowest.value * 1e-9, core.power.nominal.value * 1e-9);
    throw std::invalid_argument(text);
  }
  return options.frequency;
}

std::span<const CorePolicyInfo> core_policies() noexcept { return kPolicies; }

CorePolicy make_core_policy(const CoreOptions& options, const CoreSpec& core) {
  std::string known;
  for (const CorePolicyInfo& info : kPolicies) {
    if (options.name == info.name) {
      if (!(options.memory_share >= 0 && options.memory_share <= 1)) throw std::invalid_argument("the share of memory must be from 0 to 1");
      CorePolicy policy = info.make(options, core);
      policy.name = info.name;
      if (policy.compute == Watts{}) policy.compute = core.power.compute;
      if (policy.poll == Watts{}) policy.poll = core.power.spin;
      return policy;
    }
    known += std::string(known.empty() ? "" : ", ") + info.name;
  }
  throw std::invalid_argument("no core policy is called '" + options.name + "'; there are: " + known);
}

}  // namespace fallow::sim
