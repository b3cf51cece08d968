// The published predictors against plain ones: both must say the same after every call of programs that are made up at random.
#include <gtest/gtest.h>

#include "predict/plain_search.hpp"

namespace fallow::predict {
namespace {

TEST(Pps, IsThePlainSearchInManyPrograms) {
  std::uint64_t predicted = 0, broken_off = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    PpsOptions options;
    options.min_pattern = seed % 5 == 0 ? 1 : 2;
    options.repeats = seed % 7 == 0 ? 4 : 3;
    options.cap_by_first = seed % 3 != 0;
    PpsPredictor pps(options);
    plainly::Search plain(options);
    std::uint64_t call = 0, before = 0;
    for (const Event& event : plainly::program(seed)) {
      if (seed % 4 == 1 && call == 90) {
        pps.restart(options.threshold);
        plain = plainly::Search(options);
        before = pps.state().mispredictions;
      }
      const Answer got = pps.on_exit(event), wanted = plain.on_exit(event);
      ASSERT_EQ(pps.predicting(), plain.predicting()) << "seed " << seed << ", call " << call;
      ASSERT_EQ(pps.pattern_size(), plain.pattern_size()) << "seed " << seed << ", call " << call;
      ASSERT_EQ(got.rest_for, wanted.rest_for) << "seed " << seed << ", call " << call;
      ASSERT_EQ(got.call_expected, wanted.call_expected) << "seed " << seed << ", call " << call;
      ASSERT_EQ(pps.state().mispredictions - before, plain.mispredictions()) << "seed " << seed << ", call " << call;
      predicted += got.call_expected ? 1 : 0;
      ++call;
    }
    broken_off += plain.mispredictions();
  }
  EXPECT_GT(predicted, 3'000U);
  EXPECT_GT(broken_off, 500U);
}

/// Gaps of several kinds, each with its own spread.
std::vector<std::int64_t> sample(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  std::vector<double> kinds(1 + random() % 5);
  for (double& kind : kinds) kind = std::exp(uniform(std::log(5e3), std::log(5e9)));
  const double spread = uniform(0.01, 0.9);
  std::vector<std::int64_t> gaps(seed % 20 == 0 ? seed % 3 : 100);
  for (auto& gap : gaps) gap = std::llround(kinds[random() % kinds.size()] * uniform(1 - spread, 1 + spread));
  return gaps;
}

TEST(TuneThreshold, IsThePlainTuningOfManySamples) {
  int found = 0, none = 0;
  std::vector<TuningBin> bins(100);
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SppsOptions options;
    if (seed % 3 == 0) options.alpha = 1;
    std::vector<std::int64_t> gaps = sample(seed);
    const auto wanted = plainly::threshold_for(gaps, options);
    const auto got = tune_threshold(gaps, options, bins);
    ASSERT_EQ(got.has_value(), wanted.has_value()) << seed;
    if (wanted) {
      ASSERT_LE(std::abs(got->value - wanted->value), 1) << seed;  // of ends of bins, which are powers
    }
    ++(wanted ? found : none);
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 200);
}

TEST(Spps, IsThePlainTunedSearchInManyPrograms) {
  std::uint64_t tuned = 0, rested = 0, restarts = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SppsOptions options;
    options.skip_gaps = static_cast<std::uint32_t>(seed % 3 * 5);
    options.sample_gaps = static_cast<std::uint32_t>(9 + seed % 4 * 8);
    options.skip_again = seed % 2 == 0;
    options.restarts = seed % 5 != 0;
    SppsPredictor spps(options);
    plainly::TunedSearch plain(options);
    std::uint64_t call = 0;
    for (const Event& event : plainly::program(seed, 30)) {
      const Answer got = spps.on_exit(event), wanted = plain.on_exit(event);
      ASSERT_EQ(spps.tuned(), plain.tuned()) << "seed " << seed << ", call " << call;
      ASSERT_EQ(got.rest_for, wanted.rest_for) << "seed " << seed << ", call " << call;
      ASSERT_EQ(got.call_expected, wanted.call_expected) << "seed " << seed << ", call " << call;
      tuned += spps.tuned() ? 1 : 0;
      rested += got.rest_for.value > 0 ? 1 : 0;
      ++call;
    }
    ASSERT_EQ(spps.state().restarts, plain.restarts()) << seed;
    restarts += plain.restarts();
  }
  EXPECT_GT(tuned, 10'000U);
  EXPECT_GT(rested, 1'000U);
  EXPECT_GT(restarts, 100U);
}

}  // namespace
}  // namespace fallow::predict
