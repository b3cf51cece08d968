#include "power/accumulator.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace fallow::power {
namespace {

constexpr Joules kMicrojoule{1e-6};
constexpr Watts kCeiling{10000};
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

Nanoseconds at(double seconds) { return to_nanoseconds(Seconds(seconds)); }

TEST(CounterAccumulator, StartsAtZeroAndAddsIncrements) {
  CounterAccumulator sum(1'000'000'000, kMicrojoule, kCeiling);
  sum.add(5'000'000, at(0));
  EXPECT_EQ(sum.energy().value, 0);
  sum.add(7'500'000, at(1));
  EXPECT_DOUBLE_EQ(sum.energy().value, 2.5);
}

TEST(CounterAccumulator, CountsThroughAWrap) {
  CounterAccumulator sum(262143328850, kMicrojoule, kCeiling);
  sum.add(262143328850 - 3'000'000, at(0));
  sum.add(1'999'999, at(1));
  EXPECT_NEAR(sum.energy().value, 5.0, 1e-9);
  EXPECT_EQ(sum.lost_intervals(), 0U);
}

TEST(CounterAccumulator, CountsThroughAWrapOfAllBits) {
  CounterAccumulator sum(kAll, kMicrojoule, kCeiling);
  sum.add(kAll - 999'999, at(0));
  sum.add(1'000'000, at(1));
  EXPECT_NEAR(sum.energy().value, 2.0, 1e-9);
}

TEST(CounterAccumulator, LeavesOutAResetAndGoesOn) {
  CounterAccumulator sum(262143328850, kMicrojoule, kCeiling);
  sum.add(50'000'000'000, at(0));
  sum.add(50'100'000'000, at(1));
  sum.add(0, at(2));  // a wrap from here would be 212 kJ in one second
  sum.add(100'000'000, at(3));
  EXPECT_NEAR(sum.energy().value, 200.0, 1e-6);
  EXPECT_EQ(sum.lost_intervals(), 1U);
}

TEST(CounterAccumulator, LeavesOutAJumpUpwards) {
  CounterAccumulator sum(kAll, kMicrojoule, kCeiling);
  sum.add(1, at(0));
  sum.add(kAll / 2, at(1));
  EXPECT_EQ(sum.energy().value, 0);
  EXPECT_EQ(sum.lost_intervals(), 1U);
}

TEST(CounterAccumulator, NeverRunsBackwards) {
  CounterAccumulator sum(1000, Joules(1), kCeiling);
  double last = 0;
  std::uint64_t state = 12345;
  for (int i = 0; i < 10000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sum.add((state >> 33) % 1200, at(0.001 * static_cast<double>(i)));
    EXPECT_GE(sum.energy().value, last);
    last = sum.energy().value;
  }
}

TEST(PowerAccumulator, IntegratesByTrapezoids) {
  PowerAccumulator sum;
  sum.add(Watts(100), at(0));
  EXPECT_EQ(sum.energy().value, 0);
  sum.add(Watts(200), at(2));
  EXPECT_DOUBLE_EQ(sum.energy().value, 300);
  sum.add(Watts(200), at(3));
  EXPECT_DOUBLE_EQ(sum.energy().value, 500);
  sum.add(Watts(900), at(2.5));  // a clock that goes back has not moved
  EXPECT_DOUBLE_EQ(sum.energy().value, 500);
}

}  // namespace
}  // namespace fallow::power
