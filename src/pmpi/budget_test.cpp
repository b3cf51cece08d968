#include "pmpi/budget.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr double kTicksPerSecond = 1e9;

TEST(Budget, EarnsTheAcceptedShareOfTheTime) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  const double start = b.balance();
  b.earn(100'000'000);  // 0.1 s at 1 %
  EXPECT_NEAR(b.balance() - start, 1e6, 1.0);
}

TEST(Budget, NeverHoldsMoreThanItsHorizonEarns) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  b.earn(3'600'000'000'000);  // an hour without a wait
  EXPECT_NEAR(b.balance(), 0.01 * 2.0 * kTicksPerSecond, 1.0);
  EXPECT_DOUBLE_EQ(b.price(), 1.0);
}

TEST(Budget, PriceOfDelayGrowsAsItRunsOut) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  b.earn(3'600'000'000'000);
  const double full = b.price();
  b.pay(10'000'000);
  const double half = b.price();
  b.pay(11'000'000);
  EXPECT_LT(b.balance(), 0);
  EXPECT_GT(half, full);
  EXPECT_GT(b.price(), 100 * half);
}

TEST(Budget, WhatCostNobodyAnythingIsGivenBack) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  const double before = b.balance();
  b.pay(1'000'000);
  EXPECT_LT(b.balance(), before);
  b.pay_back(1'000'000);
  EXPECT_DOUBLE_EQ(b.balance(), before);
}

TEST(Budget, ClockThatStandsStillEarnsNothing) {
  Budget b;
  b.open(0.05, kTicksPerSecond, 1000);
  const double before = b.balance();
  b.earn(1000);
  b.earn(10);
  EXPECT_DOUBLE_EQ(b.balance(), before);
}

}  // namespace
}  // namespace fallow::pmpi
