// What the adaptive predictor plans from the gaps of one place, call by call.
#include "predict/adaptive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "predict/log_code.hpp"

namespace fallow::predict {
namespace {

/// What to rest to each time would have earned in all gaps of a window, by the account of rests itself.
double earned_in(const std::vector<double>& window, double target, const AdaptiveOptions& options) {
  const Nanoseconds rest(static_cast<std::int64_t>(target) - options.react.up.value);
  double sum = 0;
  for (const double gap : window) {
    const RestOutcome one = rest_outcome(rest, Nanoseconds(static_cast<std::int64_t>(gap)), options.react);
    sum += static_cast<double>(one.low.value) - options.delay_price * static_cast<double>(one.delay.value);
  }
  return sum;
}

TEST(AdaptivePlan, PlansToTheGapOfItsSampleThatIsBestForAll) {
  std::mt19937 random(1);
  int by_sample = 0, by_last = 0, with_short = 0, otherwise = 0;
  for (int round = 0; round < 60; ++round) {
    AdaptiveOptions options;
    options.react = {Nanoseconds(10'000), Nanoseconds(round % 2 == 0 ? 10'000 : 14'000)};
    options.budget = 0;  // so that nothing is delayed, and the price stays as it is
    options.delay_price = round % 3 == 0 ? 4.0 : round % 3 == 1 ? 19.0 : 9.0;
    const bool some_short = round % 5 == 0;
    AdaptivePredictor predictor(options);
    std::vector<double> window;
    Event place, other;
    place.op = 1;
    std::int64_t now = 0;
    for (int i = 0; i < 40; ++i) {
      // From calls of which each comes once, so that longer contexts know nothing. Steps are longer than a wake-up, and nothing is unusual.
      other.op = 2, other.site = static_cast<std::uint32_t>(100 + i);
      other.enter = other.exit = Nanoseconds(now);
      predictor.on_exit(other);
      place.enter = place.exit = other.exit + Nanoseconds(200);
      const double expected = static_cast<double>(predictor.on_exit(place).expected_gap.value);
      if (i >= 3) {
        double best = 0, earns = 0;
        for (const double target : window) {
          const double value = earned_in(window, target, options);
          if (value > earns || (value == earns && target < best)) best = target, earns = value;
        }
        const bool same = std::abs(expected - best * 0.995) <= 1;
        if (some_short) {  // which are unusual, so that other contexts know something as well
          ++(same ? with_short : otherwise);
        } else if (same) {
          ++by_sample;
        } else {
          EXPECT_NEAR(expected, window.back() * 0.95, 1) << round << ", gap " << i << ": " << best;
          ++by_last;
        }
      }
      const std::int64_t gap = some_short && random() % 8 == 0 ? 10'000 : 300'000 + static_cast<std::int64_t>(random() % 10) * 20'000;
      window.push_back(static_cast<double>(decode_ns(encode_ns(gap))));
      if (window.size() > 16) window.erase(window.begin());
      now = place.exit.value + gap;
    }
  }
  EXPECT_GT(by_sample, 5 * by_last);
  EXPECT_GT(with_short, 2 * otherwise);
}

/// Calls after gaps that are told, at one time after the other.
class Calls {
 public:
  Answer after(std::int64_t gap, std::uint32_t site) {
    now_ += gap;
    Event event;
    event.enter = event.exit = Nanoseconds(now_);
    event.op = 1;
    event.site = site;
    return predictor_.on_exit(event);
  }

 private:
  AdaptivePredictor predictor_{AdaptiveOptions{}};
  std::int64_t now_ = 0;
};

TEST(AdaptivePlan, IsAsGoodAfterMoreVisitsThanAreCounted) {
  Calls calls;
  for (int i = 0; i < 70'000; ++i) {
    const bool rests = calls.after(1'000'000, 1).rest_for.value > 0;
    if (i >= 10) {
      ASSERT_TRUE(rests) << i;
    }
  }
}

/// Gaps that nobody foresaw end soon after a silence, which those of a known place, 10 ms each, must not make good.
TEST(AdaptivePlan, OnlyGapsThatNobodyForesawTellWhetherSilencesAreWorthIt) {
  Calls calls;
  std::int64_t gap = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const Answer fresh = calls.after(gap, 100 + i);
    const Answer known = calls.after(200'000, 1);
    if (i >= 100) {  // as at first that place was not known either
      EXPECT_EQ(fresh.rest_after.value, 0) << i;
      EXPECT_GT(known.rest_for.value, 9'000'000) << i;
    }
    gap = 10'000'000;
  }
}

}  // namespace
}  // namespace fallow::predict
