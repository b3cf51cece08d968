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
  if (answer.rest_for.value <= 0) return;
  const RestOutcome outcome = rest_outcome(answer.rest_for, gap, react);
  ++sum.rests;
  if (outcome.delay.value > 0) ++sum.mispredictions;
  sum.low += outcome.low;
  sum.delay += outcome.delay;
  sum.delay_worst = std::max(sum.delay_worst, outcome.delay);
}

}  // namespace

Evaluation evaluate(std::span<const Event> stream, Predictor& predictor, const EvaluateParams& params) noexcept {
  Evaluation sum;
  Answer answer;
  Nanoseconds previous_exit;  // as recorded
  for (const Event& recorded : stream) {
    const Nanoseconds shift_before = params.delays_shift ? sum.delay : Nanoseconds(0);
    if (sum.calls > 0) account(sum, answer, recorded.enter - previous_exit, params.react);
    Event event = recorded;
    event.enter += shift_before;
    predictor.on_enter(event);
    event.exit += params.delays_shift ? sum.delay : Nanoseconds(0);
    answer = predictor.on_exit(event);
    previous_exit = recorded.exit;
    ++sum.calls;
    sum.calls_predicted += answer.call_expected ? 1U : 0U;
    sum.run = recorded.exit - stream.front().enter;
    if (sum.run.value > 0) sum.budget_worst = std::max(sum.budget_worst, sum.slowdown());
  }
  sum.state = predictor.state();
  return sum;
}

}  // namespace fallow::predict
