#include "pmpi/budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace fallow::pmpi {
namespace {

constexpr double kTicksPerSecond = 1e9;

TEST(ShareOfNode, IsSuchThatAllNodesTogetherEarnWhatIsAccepted) {
  EXPECT_DOUBLE_EQ(share_of_node(2, 1), 0.5);
  EXPECT_DOUBLE_EQ(share_of_node(64, 16), 0.25);
  EXPECT_DOUBLE_EQ(share_of_node(65, 16), 0.2);
  EXPECT_DOUBLE_EQ(share_of_node(64, 64), 0.5);  // they are not known to be all
  EXPECT_DOUBLE_EQ(share_of_node(64, 0), 0.5);   // not known
}

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
  EXPECT_DOUBLE_EQ(b.price(false), 1.0);
}

TEST(Budget, PriceOfDelayGrowsAsItRunsOut) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  b.earn(3'600'000'000'000);
  const double full = b.price(false);
  b.pay(10'000'000);
  const double half = b.price(false);
  b.pay(11'000'000);
  EXPECT_LT(b.balance(), 0);
  EXPECT_GT(half, full);
  EXPECT_GT(b.price(false), 100 * half);
}

TEST(Budget, WithDebtsNothingSleeps) {
  Budget b;
  b.open(0.01, 1e9, 1);  // holds 20 ms at most, 5 ms to begin with
  b.pay(5'000'000);
  EXPECT_FALSE(b.in_debt());
  EXPECT_LT(b.price(false), 1e6);
  b.pay(2'400'000);
  EXPECT_FALSE(b.in_debt()) << "a delay or two more than there was";
  b.pay(200'000);
  EXPECT_TRUE(b.in_debt());
  EXPECT_GT(b.price(false), 1e9);
  b.earn(1'000'000'001);
  EXPECT_FALSE(b.in_debt());
}

TEST(Budget, OneDelayIsBearableIfMostIsLeftAfterIt) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  EXPECT_DOUBLE_EQ(b.bearable(), b.balance() / 8);
  b.pay(1'000'000'000);
  EXPECT_LT(b.balance(), 0);
  EXPECT_DOUBLE_EQ(b.bearable(), 20e6 / 16 / 8);  // where nothing may sleep the price says so
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

TEST(Budget, DelayIsNeverCheaperThanSleep) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  b.earn(3'600'000'000'000);
  b.pay_back(5'000'000);
  EXPECT_DOUBLE_EQ(b.price(false), 1.0);
}

TEST(Budget, HoldsAMillisecondAtLeast) {
  Budget b;
  b.open(0.0, kTicksPerSecond, 0);
  EXPECT_DOUBLE_EQ(b.balance(), 250'000.0);
  b.earn(3'600'000'000'000);
  EXPECT_DOUBLE_EQ(b.balance(), 250'000.0) << "but earns nothing";
}

TEST(Budget, DelaysAtTheSameTimeArePaidOnce) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  const double before = b.balance();
  EXPECT_EQ(b.pay(1000, 1040), 40u);
  EXPECT_EQ(b.pay(1010, 1030), 0u);  // within
  EXPECT_EQ(b.pay(1020, 1060), 20u);
  EXPECT_EQ(b.pay(1000, 1060), 0u);
  EXPECT_EQ(b.pay(2000, 2000), 0u);  // on time
  EXPECT_EQ(b.pay(2000, 2010), 10u);
  EXPECT_EQ(b.pay(3010, 3000), 0u);  // before it was due
  EXPECT_DOUBLE_EQ(b.balance(), before - 70);
}

TEST(Budget, OfDelaysAtTheSameTimeTheLongestIsPaidWhateverTheirOrder) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 1);
  EXPECT_EQ(b.pay(10'030, 10'040), 10u);
  EXPECT_EQ(b.pay(10'000, 10'039), 30u) << "it was late for longer, though it was told later";
  EXPECT_EQ(b.pay(10'010, 10'020), 0u);
  EXPECT_EQ(b.pay(20'000, 20'010), 10u);
  EXPECT_EQ(b.pay(10'000, 10'040), 0u) << "paid for before that one";
  EXPECT_EQ(b.pay(10'035, 20'005), 20'000u - 10'040u) << "all between them";

  std::mt19937 random(7);
  for (std::uint64_t round = 1; round <= 1000; ++round) {
    const std::uint64_t start = 1'000'000 * round;
    std::uint64_t first = ~std::uint64_t{0}, last = 0, paid = 0;
    for (int rank = 0; rank < 15; ++rank) {  // all of them overlap
      const std::uint64_t due = start + random() % 1000, end = start + 1000 + random() % 1000;
      paid += b.pay(due, end);
      first = std::min(first, due);
      last = std::max(last, end);
    }
    EXPECT_EQ(paid, last - first) << round;
  }
}

TEST(Budget, WhoSleepsWithOthersPaysForWhatOthersDoNotHoldUp) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  EXPECT_DOUBLE_EQ(b.own_share(), 1.0) << "nothing is known yet";
  std::uint64_t end = 0;
  for (int round = 0; round < 1000; ++round) {
    end += 1'000'000;
    for (int rank = 0; rank < 10; ++rank) b.pay(end, end + 10'000);
    b.pay_back(10'000);
  }
  EXPECT_NEAR(b.own_share(), 0.1, 0.05);
  EXPECT_NEAR(b.price(false), 4.0, 1e-9) << "of 20 ms, 5 are there: who sleeps alone pays in full";
  EXPECT_DOUBLE_EQ(b.price(true), 1.0);
  b.pay(4'900'000);
  EXPECT_NEAR(b.price(true) / b.price(false), b.own_share(), 1e-9);
  b.pay(4'900'000);
  EXPECT_DOUBLE_EQ(b.price(true), b.price(false)) << "with debts all pay";
  for (int alone = 0; alone < 1000; ++alone) {
    end += 1'000'000;
    b.pay(end, end + 10'000);
  }
  EXPECT_GT(b.own_share(), 0.9) << "what was is forgotten";
}

TEST(Budget, TheFirstRankOpensIt) {
  Budget b;
  EXPECT_GE(b.price(false), 1e3);  // until then there is nothing to spend
  b.open(0.01, kTicksPerSecond, 5);
  b.pay(1'000'000);
  const double left = b.balance();
  b.open(0.01, kTicksPerSecond, 10);
  EXPECT_DOUBLE_EQ(b.balance(), left);
}

TEST(Budget, RanksTogetherEarnWhatTheTimeEarns) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 0);
  const double start = b.balance();
  std::vector<std::thread> ranks;
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&b, rank] {
      for (std::uint64_t t = rank; t <= 100'000'000; t += 10'007) b.earn(t);
      b.earn(100'000'000);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_LE(b.balance() - start, 1e6 + 1.0);
  EXPECT_GE(b.balance() - start, 1e6 - 200.0) << "but for the last 20 us";
}

TEST(Budget, IsNotWrittenToAllTheTime) {
  Budget b;
  b.open(0.01, kTicksPerSecond, 1);
  const double start = b.balance();
  b.earn(19'000);
  EXPECT_DOUBLE_EQ(b.balance(), start);
  b.earn(20'001);
  EXPECT_NEAR(b.balance() - start, 200.0, 1e-6) << "nothing is lost";
  b.earn(39'000);
  EXPECT_NEAR(b.balance() - start, 200.0, 1e-6);
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
