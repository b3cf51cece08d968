#include "predict/spps.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "predict/evaluate.hpp"
#include "predict/test_streams.hpp"

namespace fallow::predict {
namespace {

using streams::Builder;
using streams::kMs;
using streams::kUs;

std::optional<Nanoseconds> tune(std::vector<std::int64_t> gaps, const SppsOptions& options = {}) {
  std::vector<TuningBin> bins(64);
  return tune_threshold(gaps, options, bins);
}

std::vector<std::int64_t> repeated(std::initializer_list<std::pair<int, double>> parts) {
  std::vector<std::int64_t> gaps;
  for (const auto& [count, us] : parts)
    gaps.insert(gaps.end(), static_cast<std::size_t>(count), std::llround(us * 1000));
  return gaps;
}

// 100 gaps: 10 bins from 17 us, each 10^0.5 wide: 17, 53.8, 170, 538, 1700, 5376, ... us; at most
// floor(4 x 28.6 / 10) = 11, so fewer than 11 gaps in the accepted bin.

TEST(TuneThreshold, EmptyBinGivesThresholdAboveItsLowerEnd) {
  // Bin 0: 60 gaps of 30 us (1.8 ms), bin 4: 40 of 3 ms (120 ms). The share below 10 % of the idle time ends
  // before bin 4 (1.8 / 121.8 = 1.5 % up to bin 3). Of bins 0..3 the last empty one is 3, from 537.6 us; its
  // ends are 3.16 apart, so GT = 1.1 x 537.6 / 0.9 = 657.1 us.
  const auto gt = tune(repeated({{60, 30.0}, {40, 3000.0}}));
  ASSERT_TRUE(gt);
  EXPECT_NEAR(static_cast<double>(gt->value), 17'000.0 * std::pow(10.0, 1.5) * 1.1 / 0.9, 2.0);
}

TEST(TuneThreshold, FewGapsInABinLeaveRoomAboveTheLowerNeighbour) {
  // Bins 0..3 hold 40, 20, 15 and 5 gaps and 1.2 + 2 + 4.5 + 3 = 10.7 ms, bin 4 20 gaps of 10 ms: 200 ms. 10.7 of
  // 210.7 is 5.1 %. Bin 3 has the fewest: 600 us five times. 537.6 -> 600 is 1.12; 600 -> 1700 is 2.83, so
  // GT = 1.1 x 600 / 0.9 = 733.3 us.
  const auto gt = tune(repeated({{40, 30.0}, {20, 100.0}, {15, 300.0}, {5, 600.0}, {20, 5000.0}}));
  ASSERT_TRUE(gt);
  EXPECT_NEAR(static_cast<double>(gt->value), 733'333.0, 1.0);
}

TEST(TuneThreshold, AcceptsABinOfFewerGapsThanAreTolerated) {  // fewer than 11
  EXPECT_FALSE(tune(repeated({{40, 30.0}, {20, 100.0}, {13, 300.0}, {11, 600.0}, {16, 5000.0}})));
  EXPECT_TRUE(tune(repeated({{40, 30.0}, {20, 100.0}, {14, 300.0}, {10, 600.0}, {16, 5000.0}})));
}

TEST(TuneThreshold, LooksForRoomInsideTheBinOnly) {
  // From 537.6 to 1700 us: 1000 -> 1700 is wide enough, 1400 -> 1700 is not, whatever gap follows in the next bin.
  const auto gt = tune(repeated({{40, 30.0}, {20, 100.0}, {18, 300.0}, {1, 700.0}, {1, 1000.0}, {20, 5000.0}}));
  ASSERT_TRUE(gt);
  EXPECT_NEAR(static_cast<double>(gt->value), 1'222'222.0, 1.0);
  EXPECT_FALSE(tune(repeated({{40, 30.0}, {20, 100.0}, {17, 300.0}, {1, 700.0}, {1, 1000.0}, {1, 1400.0}, {20, 5000.0}})));
}

TEST(TuneThreshold, NoAnswerWhereEvenTheFirstBinHoldsTooMuch) {
  // 1.5 ms of 10.1 ms idle time is in bin 0: at a demand of 90 % no bin ends below 10 %.
  EXPECT_FALSE(tune(repeated({{50, 30.0}, {46, 100.0}, {4, 1000.0}})));
  // With 10 x 20 ms instead, bin 0 is 0.75 %, bin 1 up to 3 % ... and bin 2 is below 10 % and empty.
  EXPECT_TRUE(tune(repeated({{50, 30.0}, {40, 100.0}, {10, 20000.0}})));
}

TEST(TuneThreshold, LowersTheDemandWhenTheOnlyBinIsCrowded) {
  // 1 + 3 + 20 = 24 ms of idle time; bin 0 ends at 4.2 % of it, bins 1 and 2 at 16.7 %. At 90 % only bin 0 is below
  // 10 %, with 50 gaps. 1 - 0.9 x 0.95 = 14.5 % is still too little, 1 - 0.9 x 0.95^2 = 18.8 % admits bin 2, empty
  // and from 170 us: GT = 1.1 x 170 / 0.9 = 207.8 us.
  const auto gaps = repeated({{50, 20.0}, {30, 100.0}, {20, 1000.0}});
  const auto gt = tune(gaps);
  ASSERT_TRUE(gt);
  EXPECT_NEAR(static_cast<double>(gt->value), 207'778.0, 2.0);
  SppsOptions strict;
  strict.demanded_least = 0.90;  // no second try
  EXPECT_FALSE(tune(gaps, strict));
}

TEST(TuneThreshold, GivesUpWhenNothingIsWideEnough) {
  std::vector<std::int64_t> gaps;  // neighbours 12 % apart everywhere
  double g = 20'000.0;
  for (int i = 0; i < 100; ++i, g *= 1.12) gaps.push_back(std::llround(g));
  EXPECT_FALSE(tune(gaps));
}

TEST(TuneThreshold, PublishedConstants) {
  const SppsOptions o;
  EXPECT_NEAR(o.gap_ratio(), 1.494, 0.001);
  EXPECT_EQ(std::floor(o.alpha * o.bin_gaps / 20.0), 5.0);   // "if the sample contains 400 ... dangNum equals five"
  EXPECT_EQ(std::floor(o.alpha * o.bin_gaps / 10.0), 11.0);
  EXPECT_FALSE(tune({}));
  EXPECT_FALSE(tune({50'000}));
}

TEST(Spps, SkipsSamplesThenPredicts) {
  SppsPredictor spps({});
  const auto stream = streams::alya(400, 0.0);
  std::size_t tuned_at = 0;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    spps.on_exit(stream[i]);
    if (tuned_at == 0 && spps.tuned()) tuned_at = i;
  }
  // Three gaps over 20 us per five calls: 100 skipped and 100 sampled take 67 iterations.
  EXPECT_NEAR(static_cast<double>(tuned_at), 67.0 * 5.0, 5.0);
  EXPECT_GT(spps.state().threshold.value, 20'000);
  EXPECT_LT(spps.state().threshold.value, 400'000);
}

TEST(Spps, SecondGapInTheDangerZoneRestarts) {
  for (const bool restarts : {true, false}) {
    SppsOptions options;
    options.restarts = restarts;
    SppsPredictor spps(options);
    Builder b(1);
    for (int i = 0; i < 300; ++i) b.call(1, 1, 2 * kMs).call(2, 2, 30 * kUs).call(3, 3, kMs);
    const auto regular = b.take();
    for (const Event& event : regular) spps.on_exit(event);
    ASSERT_TRUE(spps.tuned());
    const auto gt = static_cast<double>(spps.state().threshold.value);
    Event event = regular.back();
    const auto after = [&event](double gap) {
      event.enter = event.exit + Nanoseconds(std::llround(gap));
      event.exit = event.enter + Nanoseconds(1000);
      return event;
    };
    spps.on_exit(after(1.05 * gt));
    EXPECT_EQ(spps.state().restarts, 0U);
    spps.on_exit(after(1.12 * gt));  // outside
    spps.on_exit(after(0.88 * gt));
    EXPECT_EQ(spps.state().restarts, 0U);
    spps.on_exit(after(0.95 * gt));
    EXPECT_EQ(spps.state().restarts, restarts ? 1U : 0U);
    EXPECT_EQ(spps.tuned(), !restarts);
  }
}

TEST(Spps, ARestartTakesASampleAtOnceUnlessToldToPassOverGapsAgain) {
  for (const bool skip : {false, true}) {
    SppsOptions options;
    options.skip_again = skip;
    SppsPredictor spps(options);
    Builder b(1);
    for (int i = 0; i < 300; ++i) b.call(1, 1, 2 * kMs).call(2, 2, 30 * kUs).call(3, 3, kMs);
    Event event;
    for (const Event& one : b.take()) spps.on_exit(event = one);
    const Nanoseconds gt = spps.state().threshold;
    const auto after = [&](Nanoseconds gap) {
      event.enter = event.exit + gap;
      event.exit = event.enter + Nanoseconds(1000);
      spps.on_exit(event);
    };
    after(gt), after(gt);
    ASSERT_FALSE(spps.tuned());
    unsigned gaps = 0;
    for (; !spps.tuned() && gaps < 1000; ++gaps) after(Nanoseconds(gaps % 3 == 0 ? 2'000'000 : gaps % 3 == 1 ? 30'000 : 1'000'000));
    EXPECT_EQ(gaps, skip ? 200U : 100U);
  }
}

TEST(Spps, LonelyGapsInTheDangerZoneAreTolerated) {
  SppsPredictor spps({});
  Builder b(1);
  for (int i = 0; i < 300; ++i) b.call(1, 1, 2 * kMs).call(2, 2, 30 * kUs).call(3, 3, kMs);
  for (const Event& event : b.take()) spps.on_exit(event);
  const double gt = static_cast<double>(spps.state().threshold.value);
  Builder c(1);
  for (int i = 0; i < 200; ++i) c.call(1, 1, i % 20 == 0 ? gt : 2 * kMs).call(2, 2, 30 * kUs).call(3, 3, kMs);
  for (Event event : c.take()) {
    event.enter += Nanoseconds(10'000'000'000);
    event.exit += Nanoseconds(10'000'000'000);
    spps.on_exit(event);
  }
  EXPECT_EQ(spps.state().restarts, 0U);
}

TEST(Spps, ASampleWithoutAnAnswerIsReplacedByTheNext) {
  SppsOptions options;
  options.skip_gaps = 0;
  SppsPredictor spps(options);
  Event event;
  spps.on_exit(event);
  const auto after = [&](double ns) {
    event.enter = event.exit + Nanoseconds(std::llround(ns));
    event.exit = event.enter + Nanoseconds(1000);
    spps.on_exit(event);
  };
  const std::size_t memory = spps.state().memory_bytes;
  double gap = 20 * kUs;  // what a rest takes, and counts
  for (int i = 0; i < 100; ++i, gap *= 1.12) after(gap);  // nothing is wide enough
  after(19 * kUs);  // does not count
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(spps.tuned()) << i;
    after(i < 60 ? 30 * kUs : 3 * kMs);
  }
  EXPECT_TRUE(spps.tuned());
  EXPECT_EQ(spps.state().memory_bytes, memory);
}

}  // namespace
}  // namespace fallow::predict
