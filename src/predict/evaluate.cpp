#include "predict/evaluate.hpp"

#include <algorithm>

namespace fallow::predict {
namespace {

void account(Evaluation& sum, const Answer& answer, Nanoseconds gap, const ReactTimes& react) noexcept {
  const bool counts = gap > react.down + react.up;
  if (counts) {
    ++sum.gaps;
    sum.idle += gap;
    sum.oracle_low += oracle_rest(gap, react) - react.down;
  }
  if (counts && answer.expected_gap.value > 0) {
    ++sum.gaps_predicted;
    sum.idle_predicted += gap;
  }
  if (answer.rest_for.value <= 0 && (answer.rest_after.value <= 0 || gap <= answer.rest_after)) return;
  const RestOutcome outcome = rest_outcome(answer, gap, react);
  ++sum.rests;
  if (outcome.delay.value > 0) ++sum.mispredictions;
  sum.low += outcome.low;
  sum.delay += outcome.delay;
  sum.delay_worst = std::max(sum.delay_worst, outcome.delay);
}

}  // namespace

const Answer& Evaluator::feed(const Event& recorded) noexcept {
  if (sum_.calls > 0) {
    account(sum_, answer_, recorded.enter - previous_exit_, params_.react);
  } else {
    first_enter_ = recorded.enter;
  }
  // The delay before a call moves its end, not its beginning: the program makes it when it would have.
  Event event = recorded;
  const Nanoseconds shift_before = shift_;
  if (params_.delays_shift) shift_ = sum_.delay;
  event.enter += shift_before;
  predictor_.on_enter(event);
  event.exit += shift_;
  answer_ = predictor_.on_exit(event);
  previous_exit_ = recorded.exit;
  ++sum_.calls;
  sum_.calls_predicted += answer_.call_expected ? 1U : 0U;
  sum_.run = recorded.exit - first_enter_;
  const auto so_far = static_cast<double>((params_.start_up + sum_.run).value);
  if (so_far > 0.0) sum_.budget_worst = std::max(sum_.budget_worst, static_cast<double>(sum_.delay.value) / so_far);
  return answer_;
}

Evaluation Evaluator::result() const noexcept {
  Evaluation sum = sum_;
  sum.state = predictor_.state();
  return sum;
}

Evaluation evaluate(std::span<const Event> stream, Predictor& predictor, const EvaluateParams& params) noexcept {
  Evaluator evaluator(predictor, params);
  for (const Event& recorded : stream) evaluator.feed(recorded);
  return evaluator.result();
}

void Evaluation::add(const Evaluation& o) noexcept {
  if (calls == 0) state.threshold = o.state.threshold;
  calls += o.calls;
  calls_predicted += o.calls_predicted;
  gaps += o.gaps;
  gaps_predicted += o.gaps_predicted;
  rests += o.rests;
  mispredictions += o.mispredictions;
  idle += o.idle;
  idle_predicted += o.idle_predicted;
  low += o.low;
  oracle_low += o.oracle_low;
  delay += o.delay;
  delay_worst = std::max(delay_worst, o.delay_worst);
  run += o.run;
  budget_worst = std::max(budget_worst, o.budget_worst);
  state.delay += o.state.delay;
  state.searches += o.state.searches;
  state.restarts += o.state.restarts;
  state.mispredictions += o.state.mispredictions;
  state.memory_bytes += o.state.memory_bytes;
}

}  // namespace fallow::predict
