// Links rest as one predictor per rank says, joined per node and above. The predictors are those of the runtime; their
// tables are smaller here, where thousands stand side by side.
#include "predict/registry.hpp"
#include "sim/policies/policies.hpp"

namespace fallow::sim::policies_detail {
namespace {

/// What a node knows of how much it lags is as old as its last message: so it keeps to a little less than the budget.
constexpr double kBudgetShare = 0.95;

/// Prices of delay: time at rest given up to avoid one unit of it, in predicted windows and after silences, while all of the
/// budget is left. Those that saved most within it on recorded and generated programs (docs/adr/0044).
constexpr double kWindowPrice = 8, kSilencePrice = 12;

/// A rank's own account of windows that were too long: much of that delay is hidden by waiting for others. What is not is held to
/// the budget where messages pass.
constexpr double kOwnMistakes = 4;

predict::PredictorOptions options_for(const PolicyOptions& options, const LinkSpec& link) {
  predict::PredictorOptions p;
  for (predict::PpsOptions* pps : {&p.pps, &p.spps.pps}) {
    pps->threshold = options.threshold;
    pps->lead = options.lead;
    pps->cap_by_first = options.cap_by_first;
    pps->max_grams = 1024;
    pps->max_events = 4096;
    pps->max_patterns = 512;
    pps->max_positions = 2048;
  }
  if (options.sample_gaps != 0) p.spps.sample_gaps = options.sample_gaps;
  p.spps.restarts = options.restarts;
  p.adaptive.memory_bytes = std::size_t{1} << 16;
  p.adaptive.budget = kOwnMistakes * options.budget;
  p.adaptive.start_up = Nanoseconds(0);  // what is simulated begins with the first call
  p.adaptive.delay_price = kWindowPrice;
  p.adaptive.silence = 0;  // silences are watched where messages pass (Silence), not from the end of a call
  p.set_react({nanoseconds(link.rest.down), nanoseconds(link.rest.up)});
  return p;
}

Policy predicted(std::string_view name, const PolicyOptions& options, const LinkSpec& link) {
  Policy policy;
  policy.edge = {LinkRule::planned, 0, options.deep_timer};
  policy.predictor = [name, p = options_for(options, link)] { return predict::make_predictor(name, p); };
  return policy;
}

}  // namespace

Policy pps(const PolicyOptions& options, const LinkSpec& link) { return predicted("pps", options, link); }
Policy spps(const PolicyOptions& options, const LinkSpec& link) { return predicted("spps", options, link); }

Policy adaptive(const PolicyOptions& options, const LinkSpec& link) {
  Policy policy = predicted("adaptive", options, link);
  policy.silence = {true, kBudgetShare * options.budget, kSilencePrice};
  return policy;
}

}  // namespace fallow::sim::policies_detail
