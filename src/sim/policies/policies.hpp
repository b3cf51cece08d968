// The policies, for the registry in policy.cpp. Each says what edge links do; links between switches, switches and
// cards follow the same rule where the options have them rest.
#pragma once

#include "sim/policy.hpp"

namespace fallow::sim::policies_detail {

Policy always_on(const PolicyOptions& options, const LinkSpec& link);
Policy hardware(const PolicyOptions& options, const LinkSpec& link);
Policy calls(const PolicyOptions& options, const LinkSpec& link);
Policy loops(const PolicyOptions& options, const LinkSpec& link);
Policy oracle(const PolicyOptions& options, const LinkSpec& link);
Policy pps(const PolicyOptions& options, const LinkSpec& link);
Policy spps(const PolicyOptions& options, const LinkSpec& link);
Policy adaptive(const PolicyOptions& options, const LinkSpec& link);

}  // namespace fallow::sim::policies_detail
