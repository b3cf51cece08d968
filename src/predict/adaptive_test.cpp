#include "predict/adaptive.hpp"

#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "predict/evaluate.hpp"
#include "predict/log_code.hpp"
#include "predict/pps.hpp"
#include "predict/test_streams.hpp"

namespace fallow::predict {
namespace {

using streams::Builder;
using streams::kMs;
using streams::kUs;

Evaluation run(const std::vector<Event>& stream, const AdaptiveOptions& options = {}) {
  AdaptivePredictor predictor(options);
  return evaluate(stream, predictor, {.react = options.react});
}

TEST(SampleWindow, KeepsTheLastSixteenSorted) {
  SampleWindow window{};
  window.clear();
  std::uint8_t count = 0, head = 0;
  std::mt19937 random(1);
  std::vector<std::uint16_t> all;
  for (int i = 0; i < 6000; ++i) {  // some values of many, then all that there are
    all.push_back(static_cast<std::uint16_t>(i < 2000 ? random() % 50 : i < 4000 ? 0xffff - random() % 5 : random()));
    window.insert(all.back(), count, head);
    std::vector<std::uint16_t> last(all.end() - std::min<std::ptrdiff_t>(16, std::ssize(all)), all.end());
    std::sort(last.begin(), last.end());
    ASSERT_EQ(std::vector<std::uint16_t>(window.sorted, window.sorted + count), last);
  }
}

TEST(Adaptive, RestsFromTheThirdTimeOn) {
  AdaptivePredictor predictor{AdaptiveOptions{}};
  Builder b(1);
  for (int i = 0; i < 4; ++i) b.call(1, 1, 5 * kMs);
  int call = 0;
  for (const Event& event : b.take()) {
    const Answer answer = predictor.on_exit(event);
    EXPECT_EQ(answer.rest_for.value > 0, ++call >= 3) << call;  // by then two gaps have been seen
  }
}

TEST(Adaptive, NeedsNoThreshold) {  // gaps of 60 us rest, of 15 us do not
  Builder b(1);
  for (int i = 0; i < 2000; ++i) b.call(1, 1, 60 * kUs).call(2, 2, 15 * kUs);
  const Evaluation sum = run(b.take());
  EXPECT_GT(sum.rest_of_oracle(), 0.9);
  EXPECT_LE(sum.rests, 2000U);
}

TEST(Adaptive, CountsInnerLoops) {
  const Evaluation sum = run(streams::nested(600, 10, 0.01));
  EXPECT_GT(sum.rest_of_oracle(), 0.95);
  EXPECT_LT(sum.slowdown(), 2e-4);
}

TEST(Adaptive, SizesTellWhatSitesDoNot) {
  const Evaluation sum = run(streams::mg(200, 0.01));
  EXPECT_GT(sum.rest_of_oracle(), 0.95);
  EXPECT_LT(sum.slowdown(), 4e-4);
}

TEST(Adaptive, TellsCallsApartByAllThatNamesThem) {  // in no order that could foresee them
  using Change = void (*)(Event&);
  for (const Change change : {Change([](Event& e) { e.op = 7; }), Change([](Event& e) { e.comm = 7; }), Change([](Event& e) { e.site = 7; }),
                              Change([](Event& e) { e.peer = 7; })}) {
    std::mt19937 random(1);
    std::vector<bool> longer(2000);
    Builder b(1, 0.01);
    for (std::size_t i = 0; i < longer.size(); ++i) {
      longer[i] = random() % 2 == 0;
      b.call(1, 1, longer[i] ? 500 * kUs : 5 * kUs);
    }
    auto stream = b.take();
    for (std::size_t i = 1; i < longer.size(); ++i) {
      if (longer[i]) change(stream[i - 1]);  // which the gap follows
    }
    const Evaluation sum = run(stream);
    EXPECT_GT(sum.rest_of_oracle(), 0.9);
    EXPECT_LT(sum.slowdown(), 1e-3);
  }
}

TEST(Adaptive, DataDependentBranchesAreFollowed) {
  EXPECT_GT(run(streams::branches(3000, 0.01)).rest_of_oracle(), 0.95);
}

TEST(Adaptive, AdaptsToAnotherPhase) {
  Builder b(1, 0.02);  // the same calls with other gaps
  for (int i = 0; i < 400; ++i) b.call(1, 1, 10 * kMs).call(2, 2, kMs);
  for (int i = 0; i < 400; ++i) b.call(1, 1, kMs).call(2, 2, 4 * kMs);
  const auto stream = b.take();
  AdaptivePredictor predictor{AdaptiveOptions{}};
  evaluate(std::span(stream).first(850), predictor, {});
  const Evaluation later = evaluate(std::span(stream).subspan(850), predictor, {});
  EXPECT_GT(later.rest_of_oracle(), 0.90);
  EXPECT_GT(run(stream).rest_of_oracle(), 0.93);
}

TEST(Adaptive, StillLearnsAfterALongCalm) {  // which earns more looks at longer contexts than it takes
  Builder b(1, 0.01);
  constexpr std::size_t kCalm = 100'000;
  for (std::size_t i = 0; i < kCalm; ++i) b.call(1, 1, 5 * kUs);
  for (int i = 0; i < 1500; ++i) b.call(3, 3, 5 * kUs, 0, i % 2).call(2, 2, 5 * kUs).call(2, 2, 5 * kUs).call(4, 4, 5 * kUs).call(4, 4, i % 2 == 0 ? 3 * kMs : 30 * kUs);
  const auto stream = b.take();
  AdaptiveOptions options;
  options.silence = 0;
  AdaptivePredictor predictor(options);
  evaluate(std::span(stream).first(kCalm), predictor, {});
  EXPECT_GT(evaluate(std::span(stream).subspan(kCalm), predictor, {}).rest_of_oracle(), 0.95);
}

TEST(Adaptive, DriftingGapsAreFollowed) {
  const Evaluation sum = run(streams::drifting(3000, 0.01));
  EXPECT_GT(sum.rest_of_oracle(), 0.95);
  EXPECT_LT(sum.slowdown(), 9e-4);
}

TEST(Adaptive, TighterBudgetNeverDelaysMore) {
  const auto stream = streams::bt(250, 0.3);
  double last_delay = 1.0;
  for (const double budget : {0.05, 0.002, 0.0005, 0.0001, 0.0}) {
    AdaptiveOptions options;
    options.budget = budget;
    const Evaluation sum = run(stream, options);
    EXPECT_LE(sum.budget_worst, budget) << budget;
    EXPECT_LE(sum.slowdown(), last_delay + 1e-5) << budget;
    last_delay = sum.slowdown();
    if (budget == 0.0) {
      EXPECT_EQ(sum.rests, 0U);
    }
  }
}

TEST(Adaptive, LeavesItsBudgetToWhatIsKnown) {  // gaps of places never seen before that end soon after a silence pay for no wake-up
  Builder fresh(1, 0.02), many(1, 0.02);
  for (std::uint32_t i = 0; i < 20'000; ++i) fresh.call(1, i, 200 * kUs);
  for (std::uint32_t i = 0; i < 60'000; ++i) many.call(1, i % 3000, 200 * kUs);  // few contexts for each
  EXPECT_LT(run(fresh.take()).slowdown(), 1e-5);
  const Evaluation sum = run(many.take());
  EXPECT_GT(sum.rest_of_oracle(), 0.65);
  EXPECT_LT(sum.slowdown(), 1e-3);
}

TEST(Adaptive, RestsInGapsThatComeOnce) {  // after a silence, at the price of one late wake-up each
  Builder b(1);
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 50; ++k) b.call(1, 1, 5 * kUs);
    b.call(2, static_cast<std::uint32_t>(100 + i), 5 * kUs).call(1, 1, 20 * kMs);  // from a place never seen again
  }
  const auto stream = b.take();
  const Evaluation sum = run(stream);
  EXPECT_GT(sum.rest_of_oracle(), 0.95);
  EXPECT_LE(sum.delay.value, 20 * 10'000);
  EXPECT_LE(sum.budget_worst, AdaptiveOptions{}.budget);
  AdaptiveOptions never;
  never.silence = 0;
  EXPECT_EQ(run(stream, never).rests, 0U);
}

TEST(Adaptive, DearerDelayChangesPlansButNotSilences) {
  const auto stream = streams::bt(250, 0.1);
  double delay = 1.0, rest = 1.0;
  for (const double price : {4.0, 16.0, 64.0}) {
    AdaptiveOptions options;
    options.delay_price = price;
    AdaptivePredictor predictor(options);
    EXPECT_EQ(predictor.on_exit(stream.front()).rest_after.value, 160'000) << price;  // nothing is known yet
    const Evaluation sum = run(stream, options);
    EXPECT_LT(sum.slowdown(), 0.9 * delay) << price;
    EXPECT_LT(sum.rest_of_oracle(), rest) << price;
    delay = sum.slowdown();
    rest = sum.rest_of_oracle();
  }
}

TEST(Adaptive, FollowsTheGapsOfAPlaceThatOthersShare) {  // whose own context, two calls long, must keep up with them
  Builder b(1, 0.01);
  double gap = kMs;
  for (int i = 0; i < 1500; ++i) {
    gap *= (i / 150) % 2 == 0 ? 1.005 : 1.0 / 1.005;
    b.call(1, 1, 5 * kUs).call(3, 3, gap).call(2, 2, 5 * kUs).call(3, 3, 100 * kUs);
  }
  const Evaluation sum = run(b.take());
  EXPECT_GT(sum.rest_of_oracle(), 0.9);
  EXPECT_LT(sum.slowdown(), 4e-3);
}

TEST(Adaptive, LearnsWhereSilenceIsNotWorthIt) {  // gaps that end soon after a silence would have begun
  Builder b(1, 0.3);
  for (int i = 0; i < 2000; ++i) b.call(1, 1, 180 * kUs);
  AdaptiveOptions never;
  never.silence = 0;
  const auto stream = b.take();
  const Evaluation with = run(stream), without = run(stream, never);
  const auto value = [](const Evaluation& e) {
    return static_cast<double>(e.low.value) - AdaptiveOptions{}.delay_price * static_cast<double>(e.delay.value);
  };
  EXPECT_GT(value(with), 0.97 * value(without));
}

TEST(Adaptive, TellsPlacesApartBySixtyFourCalls) {  // the same calls around, a gap that depends on what was long ago
  Builder b(1, 0.01);
  for (int i = 0; i < 400; ++i) {
    const bool longer = i % 2 == 0;
    b.call(1, 1, 5 * kUs, 0, -1, longer ? 64 : 1 << 20);
    for (int k = 0; k < 40; ++k) b.call(2, 2, 5 * kUs);
    b.call(3, 3, longer ? 3 * kMs : 30 * kUs);
  }
  const Evaluation sum = run(b.take());
  EXPECT_GT(sum.rest_of_oracle(), 0.95);
  EXPECT_LT(sum.slowdown(), 3e-3);
}

TEST(Adaptive, ShortRunsAreRestedInFromTheStart) {  // starting up took as long already
  Builder b(1);
  for (int i = 0; i < 6; ++i) b.call(1, 1, 400 * kUs);
  const auto stream = b.take();
  const Evaluation sum = run(stream);
  EXPECT_GT(sum.rest_of_oracle(), 0.5);
  EXPECT_LE(static_cast<double>(sum.delay.value), 0.01 * static_cast<double>((kStartUp + sum.run).value));
  AdaptiveOptions from_first_call;
  from_first_call.start_up = Nanoseconds(0);
  EXPECT_LT(run(stream, from_first_call).rest_of_oracle(), 0.3);
}

TEST(Adaptive, SpendsItsBudgetOnNoisyGaps) {  // as the price rises no faster than the credit falls
  AdaptiveOptions options;
  options.delay_price = 4.0;
  const Evaluation sum = run(streams::bt(250, 0.3), options);
  EXPECT_GT(sum.slowdown(), 0.4 * options.budget);
  EXPECT_LE(sum.budget_worst, options.budget);
}

TEST(Adaptive, DelayMeasuredElsewhereCountsAgainstTheBudget) {
  Builder b(1);
  for (int i = 0; i < 100; ++i) b.call(1, 1, kMs);
  AdaptivePredictor predictor{AdaptiveOptions{}};
  const auto stream = b.take();
  for (const Event& event : stream) predictor.on_exit(event);
  EXPECT_GT(predictor.credit_ns(), 900e3);
  predictor.charge(Nanoseconds(1'010'000));
  Event next = stream.back();
  next.enter = next.exit + Nanoseconds(1'000'000);
  next.exit = next.enter + Nanoseconds(1000);
  EXPECT_EQ(predictor.on_exit(next).rest_for.value, 0);
}

TEST(Adaptive, DelaysLessTheLessOfItsUsersBudgetIsLeft) {
  const auto stream = streams::bt(250, 0.1);
  double delay = 1e18, low = 1e18;
  for (const double left : {1.0, 0.25, 0.0}) {
    AdaptivePredictor predictor{AdaptiveOptions{}};
    RestOutcome sum{};
    Answer last;
    Nanoseconds exit = stream.front().enter;
    for (const Event& event : stream) {
      const RestOutcome one = rest_outcome(last, event.enter - exit, AdaptiveOptions{}.react);
      sum = {sum.low + one.low, sum.delay + one.delay};
      predictor.budget_left(left);
      last = predictor.on_exit(event);
      exit = event.exit;
    }
    EXPECT_LT(static_cast<double>(sum.delay.value), 0.95 * delay) << left;
    EXPECT_LT(static_cast<double>(sum.low.value), low) << left;
    EXPECT_GT(sum.low.value, 0) << left;
    delay = static_cast<double>(sum.delay.value);
    low = static_cast<double>(sum.low.value);
  }
}

TEST(Adaptive, ForecastsWaits) {
  AdaptivePredictor predictor{AdaptiveOptions{}};
  Builder b(1, 0.05);
  for (int i = 0; i < 300; ++i) b.call(1, 1, kMs).call(9, 2, 100 * kUs, 700 * kUs).call(9, 2, 20 * kUs, 80 * kUs, 2);
  WaitForecast first, second;
  int i = 0;
  for (const Event& event : b.take()) {
    const WaitForecast forecast = predictor.on_enter(event);
    if (i < 2 || i % 3 == 0) {
      EXPECT_EQ(forecast.samples, 0U) << "of the first call nothing is known yet, another does not wait";
    } else if (i > 30) {
      EXPECT_GE(forecast.samples, 3U);
    }
    if (i % 3 == 1) first = forecast;
    if (i % 3 == 2) second = forecast;
    predictor.on_exit(event);
    ++i;
  }
  // The same call site waits long with one peer and briefly with the other.
  EXPECT_NEAR(static_cast<double>(first.median.value), 700 * kUs, 50 * kUs);
  EXPECT_NEAR(static_cast<double>(second.median.value), 80 * kUs, 6 * kUs);
  EXPECT_NE(first.key, second.key);
  EXPECT_LE(first.p10, first.median);
  EXPECT_LE(first.median, first.p90);
}

TEST(Adaptive, ForecastsTheTenthsOfItsWaits) {
  AdaptivePredictor predictor{AdaptiveOptions{}};
  Builder b(1);
  for (const int wait : {700, 100, 1100, 300, 900, 600, 200, 1000, 500, 400, 800}) b.call(1, static_cast<std::uint32_t>(wait), 5 * kUs).call(9, 2, 5 * kUs, wait * kUs);
  std::vector<Event> stream = b.call(1, 5, 5 * kUs).call(9, 2, 5 * kUs).take();
  const Event last = stream.back();
  stream.pop_back();
  for (const Event& event : stream) predictor.on_exit(event);
  const WaitForecast forecast = predictor.on_enter(last);
  EXPECT_EQ(forecast.samples, 11U);
  const auto as_kept = [](double ns) { return decode_ns(encode_ns(static_cast<std::int64_t>(ns))); };
  EXPECT_EQ(forecast.p10.value, as_kept(200 * kUs));
  EXPECT_EQ(forecast.median.value, as_kept(600 * kUs));
  EXPECT_EQ(forecast.p90.value, as_kept(1000 * kUs));
}

TEST(Adaptive, LearnsNoGapInWhichCallsWerePassedOver) {
  AdaptivePredictor predictor{AdaptiveOptions{}};
  Builder b(1);
  for (int i = 0; i < 50; ++i) b.call(1, 1, 10 * kMs);
  for (const Event& event : b.take()) {
    EXPECT_EQ(predictor.on_exit(event).rest_for.value, 0);
    predictor.pass_over();
  }
  EXPECT_EQ(predictor.state().mispredictions, 0U);
}

TEST(Adaptive, ForecastsWaitsThatOnlyLongerContextsTellForEver) {
  AdaptivePredictor predictor{AdaptiveOptions{}};
  std::mt19937 random(1);
  Builder b(1, 0.01);
  std::vector<bool> longer(6000);
  for (std::size_t i = 0; i < longer.size(); ++i) {  // in no order, and gaps that need no help
    longer[i] = random() % 2 == 0;
    b.call(9, 2, 5 * kUs, longer[i] ? 700 * kUs : 80 * kUs, longer[i] ? 1 : 2);
  }
  std::size_t i = 0, wrong = 0;
  for (const Event& event : b.take()) {
    const double median = static_cast<double>(predictor.on_enter(event).median.value);
    if (i >= 500) wrong += std::abs(median - (longer[i] ? 700 * kUs : 80 * kUs)) > 8 * kUs + (longer[i] ? 60 * kUs : 0) ? 1 : 0;
    predictor.on_exit(event);
    ++i;
  }
  EXPECT_LE(wrong, 5u);
}

TEST(Adaptive, SaysWhichCallsItExpected) {
  std::mt19937 random(1);
  Builder loop(1), any(1);
  for (int i = 0; i < 900; ++i) loop.call(static_cast<std::uint16_t>(1 + i % 3), 1, 5 * kUs), any.call(static_cast<std::uint16_t>(1 + random() % 50), 1, 5 * kUs);
  EXPECT_GE(run(loop.take()).calls_predicted, 880U);
  EXPECT_LE(run(any.take()).calls_predicted, 20U);
}

TEST(Adaptive, SameWithAndWithoutOnEnter) {
  const auto stream = streams::dynamics(300, 10, 0.1);
  AdaptivePredictor with{AdaptiveOptions{}}, without{AdaptiveOptions{}};
  for (const Event& event : stream) {
    with.on_enter(event);
    ASSERT_EQ(with.on_exit(event).rest_for, without.on_exit(event).rest_for);
  }
}

TEST(Adaptive, KnowsTheNextCallWhereOneWasPassedOverInside) {  // of which the end was not told
  const auto stream = streams::dynamics(300, 10, 0.1);
  AdaptivePredictor with{AdaptiveOptions{}}, without{AdaptiveOptions{}};
  for (std::size_t i = 0; i < stream.size(); ++i) {
    for (AdaptivePredictor* p : {&with, &without}) {
      if (i % 5 == 4) p->on_enter(stream[i]), p->pass_over();
    }
    if (i % 5 == 4) continue;
    with.on_enter(stream[i]);
    ASSERT_EQ(with.on_exit(stream[i]).rest_for, without.on_exit(stream[i]).rest_for) << i;
  }
  EXPECT_EQ(with.state().delay, without.state().delay);
  EXPECT_EQ(with.state().mispredictions, without.state().mispredictions);
}

TEST(Adaptive, ForgetsThePlaceThatWasNotSeenForLongest) {
  alignas(64) std::byte room_for_four[832];
  AdaptivePredictor predictor({}, room_for_four);
  std::int64_t now = 0;
  const auto rests_after = [&](std::uint32_t site) {
    Event event;
    event.enter = event.exit = Nanoseconds(now += 1'000'000);
    event.op = 1;
    event.site = site;
    return predictor.on_exit(event).rest_for.value > 0;
  };
  for (int i = 0; i < 80; ++i) rests_after(1 + i % 4);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(rests_after(2 + i % 3)) << i;
  EXPECT_FALSE(rests_after(5));
  for (const std::uint32_t site : {4u, 3u, 2u}) EXPECT_TRUE(rests_after(site)) << site;
  EXPECT_FALSE(rests_after(1));
}

TEST(Adaptive, DoesNotReadWhatLayInItsMemory) {
  const auto stream = streams::dynamics(300, 10, 0.1);
  std::vector<std::byte> clean(64 * 1024), used(clean.size());
  std::mt19937 random(1);
  for (std::byte& b : used) b = static_cast<std::byte>(random());
  AdaptivePredictor first({}, clean), second({}, used);
  for (const Event& event : stream) ASSERT_EQ(first.on_exit(event).rest_for, second.on_exit(event).rest_for);
}

TEST(Adaptive, UsesTheMemoryItIsGiven) {
  std::vector<std::byte> arena(64 * 1024);
  AdaptivePredictor predictor({}, arena);
  EXPECT_GE(predictor.state().memory_bytes, arena.size());
  const Evaluation sum = evaluate(streams::bt(250, 0.01), predictor, {});
  EXPECT_GT(sum.rest_of_oracle(), 0.9);  // 256 contexts suffice for a small loop
  std::byte little[100];
  EXPECT_THROW(AdaptivePredictor({}, little), std::bad_alloc);
  AdaptiveOptions options;
  options.memory_bytes = 10;
  EXPECT_THROW(AdaptivePredictor{options}, std::bad_alloc);
  EXPECT_LE(AdaptivePredictor{AdaptiveOptions{}}.state().memory_bytes, (1U << 20) + 20'000U);
}

}  // namespace
}  // namespace fallow::predict
