#include "predict/evaluate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <vector>

#include "predict/node_link.hpp"
#include "predict/registry.hpp"
#include "predict/test_streams.hpp"

namespace fallow::predict {
namespace {

using streams::Builder;
using streams::kMs;
using streams::kUs;

constexpr Nanoseconds us(std::int64_t n) { return Nanoseconds(n * 1000); }

/// Answers what it is told.
class Scripted final : public Predictor {
 public:
  explicit Scripted(std::deque<Answer> answers) : answers_(std::move(answers)) {}
  WaitForecast on_enter(const Call&) noexcept override { return {}; }
  Answer on_exit(const Event& event) noexcept override {
    seen.push_back(event);
    if (answers_.empty()) return {};
    const Answer a = answers_.front();
    answers_.pop_front();
    return a;
  }
  PredictorState state() const noexcept override { return {}; }
  std::vector<Event> seen;

 private:
  std::deque<Answer> answers_;
};

TEST(RestOutcome, ByHand) {
  const ReactTimes react{us(10), us(20)};
  const auto outcome = [&](std::int64_t rest, std::int64_t gap) { return rest_outcome(us(rest), us(gap), react); };
  EXPECT_EQ(outcome(0, 100).low, us(0));
  EXPECT_EQ(outcome(0, 100).delay, us(0));
  EXPECT_EQ(outcome(80, 100).low, us(70));   // awake just in time
  EXPECT_EQ(outcome(80, 100).delay, us(0));
  EXPECT_EQ(outcome(90, 100).delay, us(10));  // caught half awake
  EXPECT_EQ(outcome(90, 100).low, us(80));
  EXPECT_EQ(outcome(500, 100).delay, us(20));  // caught asleep
  EXPECT_EQ(outcome(500, 100).low, us(90));
  EXPECT_EQ(outcome(500, 4).delay, us(26));    // caught on the way down, which is completed first
  EXPECT_EQ(outcome(500, 4).low, us(0));
  EXPECT_EQ(oracle_rest(us(30), react), us(0));
  EXPECT_EQ(oracle_rest(us(100), react), us(80));
  EXPECT_EQ(rest_outcome(oracle_rest(us(100), react), us(100), react).delay, us(0));
}

TEST(RestOutcome, ASecondRestEndsWithTheCall) {
  const ReactTimes react{us(10), us(10)};
  Answer answer;
  answer.rest_for = us(50);
  answer.rest_after = us(200);
  const auto outcome = [&](std::int64_t gap) { return rest_outcome(answer, us(gap), react); };
  EXPECT_EQ(outcome(100).low, us(40));   // the first rest alone
  EXPECT_EQ(outcome(100).delay, us(0));
  EXPECT_EQ(outcome(200).delay, us(0));  // the silence is not over
  EXPECT_EQ(outcome(203).delay, us(17)); // what is left of the descent, and the wake-up
  EXPECT_EQ(outcome(203).low, us(40));
  EXPECT_EQ(outcome(500).low, us(40 + 290));
  EXPECT_EQ(outcome(500).delay, us(10));
}

TEST(Evaluate, SumsAreAsByHand) {
  Builder b(1);  // gaps of 100, 15 and 200 us; calls last 1.5 us
  b.call(1, 1, 0).call(1, 1, 100 * kUs).call(1, 1, 15 * kUs).call(1, 1, 200 * kUs);
  const auto stream = b.take();
  Scripted predictor(
      {{us(80), us(100), true}, {us(12), us(15), false}, {us(195), us(250), true}, {us(5), us(5), true}});
  const Evaluation sum = evaluate(stream, predictor, {});
  EXPECT_EQ(sum.calls, 4U);
  EXPECT_EQ(sum.calls_predicted, 3U);
  EXPECT_EQ(sum.gaps, 2U);  // 15 us does not hold two transitions
  EXPECT_EQ(sum.gaps_predicted, 2U);
  EXPECT_EQ(sum.idle, us(300));
  EXPECT_EQ(sum.idle_predicted, us(300));
  EXPECT_EQ(sum.rests, 3U);
  EXPECT_EQ(sum.low, us(70 + 2 + 185));
  EXPECT_EQ(sum.oracle_low, us(80 + 180));
  EXPECT_EQ(sum.delay, us(7 + 5));  // 12 + 10 - 15, 195 + 10 - 200
  EXPECT_EQ(sum.delay_worst, us(7));
  EXPECT_EQ(sum.mispredictions, 2U);
  EXPECT_EQ(sum.run, us(315 + 6));
  // The delays move what follows, and lie inside the calls.
  EXPECT_EQ(predictor.seen[2].exit - predictor.seen[2].enter, Nanoseconds(1500 + 7000));
  EXPECT_EQ(predictor.seen[3].enter - predictor.seen[2].exit, us(200));
}

TEST(Evaluate, TheBudgetIsAShareOfTheStartUpToo) {
  Builder b(1);
  b.call(1, 1, 0).call(1, 1, 15 * kUs);
  Scripted predictor({{us(12), us(15), false}, {us(0), us(0), false}});
  const Evaluation sum = evaluate(b.take(), predictor, {.react = {}, .start_up = us(1000)});
  EXPECT_EQ(sum.delay, us(7));
  EXPECT_DOUBLE_EQ(sum.budget_worst, 7.0 / (1000 + 15 + 2 * 1.5));
}

TEST(Evaluate, ASilenceThatIsNotOverIsNoRest) {
  Builder b(1);
  b.call(1, 1, 0).call(1, 1, 100 * kUs).call(1, 1, 100 * kUs);
  Answer until, beyond;
  until.rest_after = us(100);
  beyond.rest_after = us(99);
  Scripted predictor({until, beyond});
  const Evaluation sum = evaluate(b.take(), predictor, {});
  EXPECT_EQ(sum.rests, 1U);
  EXPECT_EQ(sum.delay, us(9 + 10));  // what is left of the descent, and the wake-up
}

TEST(Evaluate, SumsOfStreamsAddUpAndTheWorstIsThatOfOne) {
  Evaluation first, second;
  first.calls = 10, first.calls_predicted = 9, first.gaps = 8, first.gaps_predicted = 7, first.rests = 6, first.mispredictions = 5;
  first.idle = us(100), first.idle_predicted = us(90), first.low = us(80), first.oracle_low = us(85), first.delay = us(7), first.delay_worst = us(4);
  first.run = us(1000), first.budget_worst = 0.02;
  first.state = {.threshold = us(20), .delay = us(7), .searches = 3, .restarts = 2, .mispredictions = 5, .memory_bytes = 64};
  second = first;
  second.delay_worst = us(3), second.budget_worst = 0.03, second.state.threshold = us(30);
  Evaluation sum;
  sum.add(first);
  sum.add(second);
  EXPECT_EQ(sum.calls, 20U);
  EXPECT_EQ(sum.calls_predicted, 18U);
  EXPECT_EQ(sum.gaps, 16U);
  EXPECT_EQ(sum.gaps_predicted, 14U);
  EXPECT_EQ(sum.rests, 12U);
  EXPECT_EQ(sum.mispredictions, 10U);
  EXPECT_EQ(sum.idle, us(200));
  EXPECT_EQ(sum.idle_predicted, us(180));
  EXPECT_EQ(sum.low, us(160));
  EXPECT_EQ(sum.oracle_low, us(170));
  EXPECT_EQ(sum.delay, us(14));
  EXPECT_EQ(sum.delay_worst, us(4));
  EXPECT_EQ(sum.run, us(2000));
  EXPECT_EQ(sum.budget_worst, 0.03);
  EXPECT_EQ(sum.state.threshold, us(20));
  EXPECT_EQ(sum.state.delay, us(14));
  EXPECT_EQ(sum.state.searches, 6U);
  EXPECT_EQ(sum.state.restarts, 4U);
  EXPECT_EQ(sum.state.mispredictions, 10U);
  EXPECT_EQ(sum.state.memory_bytes, 128U);
}

TEST(Evaluate, OracleRestsEverythingWithoutDelay) {
  for (const auto& stream : streams::all()) {
    PredictorOptions options;
    options.future = stream.events;
    const auto oracle = make_predictor("oracle", options);
    const Evaluation sum = evaluate(stream.events, *oracle, {});
    EXPECT_EQ(sum.low, sum.oracle_low) << stream.name;
    EXPECT_EQ(sum.delay.value, 0) << stream.name;
    EXPECT_EQ(sum.calls_predicted, sum.calls);
  }
}

TEST(Evaluate, EmptyStreamAndOneCall) {
  Scripted predictor({});
  EXPECT_EQ(evaluate({}, predictor, {}).calls, 0U);
  Builder b(1);
  b.call(1, 1, 0);
  EXPECT_EQ(evaluate(b.take(), predictor, {}).gaps, 0U);
}

TEST(Last, RestsForTheLastGapOfTheSite) {
  LastPredictor last({});
  Builder b(1);
  b.call(1, 1, 0).call(1, 2, 500 * kUs).call(1, 1, 80 * kUs).call(1, 2, 300 * kUs).call(1, 1, 70 * kUs);
  const auto stream = b.take();
  EXPECT_EQ(last.on_exit(stream[0]).rest_for.value, 0);
  EXPECT_EQ(last.on_exit(stream[1]).rest_for.value, 0);
  EXPECT_EQ(last.on_exit(stream[2]).rest_for.value, 475'000 - 10'000);
  EXPECT_EQ(last.on_exit(stream[3]).expected_gap.value, 80'000);
  EXPECT_EQ(last.on_exit(stream[4]).rest_for.value, 285'000 - 10'000);
}

TEST(Last, DoesNotRestForNoLongerThanADescent) {
  LastPredictor last({});
  Builder b(1);
  b.call(1, 1, 0).call(1, 1, 21'000).call(1, 1, 22'000);  // less 5 % and the wake-up: 9.95 and 10.9 us
  const auto stream = b.take();
  last.on_exit(stream[0]);
  EXPECT_EQ(last.on_exit(stream[1]).rest_for.value, 0);
  EXPECT_EQ(last.on_exit(stream[2]).rest_for.value, 10'900);
}

TEST(Last, ForeseesTheOperationToo) {  // in traces of other tools no call has a site
  LastPredictor last({});
  Builder b(1);
  for (const std::uint16_t op : std::initializer_list<std::uint16_t>{1, 2, 1, 3, 1, 3}) b.call(op, 0, kMs);
  std::vector<bool> foreseen;
  for (const Event& event : b.take()) foreseen.push_back(last.on_exit(event).call_expected);
  EXPECT_EQ(foreseen, (std::vector<bool>{false, false, false, false, false, true}));
}

TEST(Registry, MakesEveryPredictorAndNoOther) {
  for (const PredictorEntry& entry : predictors()) EXPECT_NE(make_predictor(entry.name, {}), nullptr) << entry.name;
  EXPECT_EQ(make_predictor("none", {}), nullptr);
  EXPECT_EQ(predictors().size(), 5U);
}

TEST(NodeLink, RestsOnlyWhileAllArePredictedIdleAndWakesForTheFirst) {
  NodeLink link(2, {});
  link.on_exit(0, us(0), us(1000));
  EXPECT_EQ(link.rests(), 0U);        // the other is still in its call
  link.on_exit(1, us(100), us(500));  // until 600, the first to end
  EXPECT_EQ(link.rests(), 1U);
  EXPECT_EQ(link.on_enter(us(400)), us(10));  // caught at rest
  EXPECT_EQ(link.low(), us(300 - 10));
  EXPECT_EQ(link.on_enter(us(404)), us(6));   // while the link still wakes
  EXPECT_EQ(link.delay(), us(16));
  EXPECT_EQ(link.oracle_low(), us(300 - 20));
  link.on_exit(1, us(500), us(0));               // not predicted
  link.on_exit(0, us(510), us(900));
  EXPECT_EQ(link.on_enter(us(900)), us(0));
  EXPECT_EQ(link.rests(), 1U);
}

TEST(NodeLink, DoesNotRestForNoLongerThanItsDescent) {
  NodeLink link(1, {});
  link.on_exit(0, us(0), us(10));
  EXPECT_EQ(link.rests(), 0U);
  EXPECT_EQ(link.on_enter(us(100)), us(0));
  link.on_exit(0, us(200), us(11));
  EXPECT_EQ(link.rests(), 1U);
}

/// Two ranks, each with five calls 100 us apart, and in turn; what they foresee ends 5 us before, and the link is not awake in time.
TEST(NodeLink, DelaysMoveWhatARankDoesLater) {
  Builder a(1), b(2);
  a.call(1, 1, 0), b.call(1, 1, 50 * kUs);
  for (int i = 0; i < 4; ++i) a.call(1, 1, 100 * kUs), b.call(1, 1, 100 * kUs);
  const auto early = a.take(), late = b.take();
  const std::span<const Event> both[] = {early, late};
  const Answer rest{us(95), us(95), false};
  const auto run = [&](bool shift) {
    Scripted first({rest, rest, rest, rest, rest}), second({rest, rest, rest, rest, rest});
    Predictor* const predictors[] = {&first, &second};
    EvaluateParams params;
    params.delays_shift = shift;
    const NodeEvaluation sum = evaluate_node(both, predictors, params);
    return std::tuple(sum, first.seen, second.seen);
  };
  const auto [moved, first, second] = run(true);
  const Nanoseconds by_first = first.back().exit - early.back().exit, by_second = second.back().exit - late.back().exit;
  EXPECT_GT(by_first.value, 0);
  EXPECT_GT(by_second.value, 0);
  EXPECT_EQ(moved.delay, by_first + by_second);
  EXPECT_EQ(moved.delay_worst_rank, std::max(by_first, by_second));
  for (std::size_t i = 1; i < first.size(); ++i) EXPECT_EQ(first[i].enter - first[i - 1].exit, us(100)) << i;
  EXPECT_EQ(moved.run, std::max(first.back().exit, second.back().exit) - early.front().enter);
  const auto [kept, unmoved, other] = run(false);
  EXPECT_EQ(unmoved.back().exit, early.back().exit);
  EXPECT_EQ(other.back().exit, late.back().exit);
  EXPECT_GT(kept.delay.value, 0);
  EXPECT_EQ(kept.run, late.back().exit - early.front().enter);
}

TEST(NodeLink, OraclesOfTwoRanksDelayNobody) {
  const auto a = streams::alya(100, 0.05, 1), b = streams::bt(20, 0.05, 2);
  OraclePredictor pa(a, {}), pb(b, {});
  const std::span<const Event> both[] = {a, b};
  Predictor* const predictors[] = {&pa, &pb};
  const NodeEvaluation sum = evaluate_node(both, predictors, {});
  EXPECT_EQ(sum.delay.value, 0);
  EXPECT_GT(sum.rest_of_oracle(), 0.5);
  EXPECT_LE(sum.rest_of_oracle(), 1.0);
}

TEST(NodeLink, ARankThatHasEndedKeepsNoLinkAwake) {
  Builder a(1), b(2);
  a.call(1, 1, 0);
  b.call(1, 1, 0);
  for (int i = 0; i < 10; ++i) b.call(1, 1, kMs);
  const auto shorter = a.take(), longer = b.take();
  OraclePredictor first(shorter, {}), second(longer, {});
  Predictor* const predictors[] = {&first, &second};
  const std::span<const Event> both[] = {shorter, longer};
  const NodeEvaluation sum = evaluate_node(both, predictors, {});
  EXPECT_GT(sum.low.value, 8 * kMs);
  EXPECT_EQ(sum.low, sum.oracle_low);
  EXPECT_EQ(sum.delay.value, 0);
  EXPECT_EQ(sum.rests, 10U);
}

TEST(NodeLink, TheBeginningOfTheClockIsNoGap) {
  const auto stream = streams::alya(100, 0.05, 1);
  auto later = stream;
  for (Event& e : later) e.enter += Nanoseconds(5'000'000'000), e.exit += Nanoseconds(5'000'000'000);
  const auto oracle = [](const std::vector<Event>& events) {
    OraclePredictor one(events, {}), other(events, {});
    const std::span<const Event> both[] = {events, events};
    Predictor* const predictors[] = {&one, &other};
    return evaluate_node(both, predictors, {});
  };
  EXPECT_EQ(oracle(later).oracle_low, oracle(stream).oracle_low);
  EXPECT_EQ(oracle(later).low, oracle(stream).low);
}

TEST(NodeLink, WhatIsBeforeARanksFirstCallIsNoGap) {  // so that the oracle has all that is counted as its
  Builder a(1), b(2);
  a.call(1, 1, 0).call(1, 1, kMs).call(1, 1, kMs);
  b.call(1, 1, 1'700 * kUs).call(1, 1, kMs);  // begins in the middle of a gap of the other
  const auto early = a.take(), late = b.take();
  OraclePredictor first(early, {}), second(late, {});
  Predictor* const predictors[] = {&first, &second};
  const std::span<const Event> both[] = {early, late};
  const NodeEvaluation sum = evaluate_node(both, predictors, {});
  EXPECT_GT(sum.low.value, 0);
  EXPECT_EQ(sum.low, sum.oracle_low);
}

TEST(NodeLink, OneRankIsTheSameAsAlone) {
  const auto stream = streams::dynamics(200, 10, 0.05);
  PpsPredictor alone({}), in_node({});
  const Evaluation a = evaluate(stream, alone, {});
  const std::span<const Event> streams_of[] = {stream};
  Predictor* const predictors[] = {&in_node};
  const NodeEvaluation n = evaluate_node(streams_of, predictors, {});
  EXPECT_EQ(n.low, a.low);
  EXPECT_EQ(n.delay, a.delay);
}

}  // namespace
}  // namespace fallow::predict
