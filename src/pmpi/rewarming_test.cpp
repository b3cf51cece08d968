#include "pmpi/rewarming.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kPlace = std::uint64_t{9} << 58, kOther = std::uint64_t{10} << 58, kSameEntry = kPlace + 1;
constexpr double kNsPerTick = 0.5;

/// A loop of `kCalls` calls with a wait in the first, after which the program computes.
struct Loop {
  static constexpr std::uint64_t kCalls = 8;
  Rewarming rewarming;
  std::uint64_t number = 0;

  void turn(std::uint64_t place, Lot lot, double first_gap_ns, double gap_ns = 1e3) {
    rewarming.wait_over(place, lot, number, gap, kNsPerTick);
    for (std::uint64_t call = 1; call <= kCalls; ++call) {
      gap = static_cast<std::uint64_t>((call == 1 ? first_gap_ns : gap_ns) / kNsPerTick);
      if (call < kCalls) rewarming.computed(number + call, gap);  // the last is told by the wait
    }
    number += kCalls;
  }
  std::uint64_t gap = 0;

  void turns(int n, double awake_ns, double slept_ns) {
    for (int i = 0; i < n; ++i) {
      turn(kPlace, Lot::withheld, awake_ns);
      turn(kPlace, Lot::slept, slept_ns);
    }
    turn(kOther, Lot::none, 0);
  }
};

TEST(Rewarming, IsNothingUntilItIsKnown) {
  Loop loop;
  EXPECT_EQ(loop.rewarming.slower_by(kPlace), 0);
  loop.turns(3, 5e3, 30e3);
  EXPECT_EQ(loop.rewarming.slower_by(kPlace), 0);
}

TEST(Rewarming, IsByHowMuchComputationTakesLonger) {
  Loop loop;
  loop.turns(8, 5e3, 30e3);
  EXPECT_NEAR(loop.rewarming.slower_by(kPlace), 25e3, 1);
  EXPECT_EQ(loop.rewarming.slower_by(kSameEntry), 0);
}

TEST(Rewarming, CountsEveryCallThatFollowsUpToTheNextWait) {
  Loop loop;
  for (int i = 0; i < 8; ++i) {
    loop.turn(kPlace, Lot::withheld, 5e3, 1e3);
    loop.turn(kPlace, Lot::slept, 5e3, 3e3);
  }
  loop.turn(kOther, Lot::none, 0);
  EXPECT_NEAR(loop.rewarming.slower_by(kPlace), 7 * 2e3, 1);
}

TEST(Rewarming, ForgetsWhatComesLongAfterTheWait) {
  Loop loop;
  loop.turns(8, 5e3, 30e3);
  for (std::uint64_t call = 0; call < 100; ++call) loop.rewarming.computed(loop.number + Loop::kCalls + call, 1'000'000);
  loop.number += 200;
  loop.turns(8, 5e3, 30e3);
  EXPECT_NEAR(loop.rewarming.slower_by(kPlace), 25e3, 1);
}

TEST(Rewarming, IsNotNegativeWhereProgramsComputeFaster) {
  Loop loop;
  loop.turns(8, 30e3, 5e3);
  EXPECT_EQ(loop.rewarming.slower_by(kPlace), 0);
}

TEST(Rewarming, IsLessThanItSeemsWhereThatMayBeChance) {
  Loop loop;
  for (int i = 0; i < 8; ++i) {
    loop.turn(kPlace, Lot::withheld, i % 2 == 0 ? 50e3 : 150e3);
    loop.turn(kPlace, Lot::slept, i % 2 == 0 ? 70e3 : 170e3);
  }
  loop.turn(kOther, Lot::none, 0);
  EXPECT_LT(loop.rewarming.slower_by(kPlace), 10e3);
}

TEST(Rewarming, BearsInterruptions) {
  Loop loop;
  loop.turns(30, 5e3, 30e3);
  loop.turn(kPlace, Lot::slept, 50e6);
  loop.turn(kOther, Lot::none, 0);
  EXPECT_NEAR(loop.rewarming.slower_by(kPlace), 25e3, 1e3);
}

TEST(Rewarming, WithholdsFewWaitsEvenly) {
  Rewarming rewarming;
  int withheld = 0, in_step = 0;
  for (int i = 0; i < 12800; ++i) {
    const bool now = rewarming.withholds(kPlace);
    withheld += now;
    in_step += now && i % 10 == 0;
  }
  EXPECT_NEAR(withheld, 200, 2);  // as none of them is ever over, it goes on as at first
  EXPECT_NEAR(in_step, 20, 4);
}

TEST(Rewarming, WithholdsFewerOnceItKnows) {
  Loop loop;
  loop.turns(8, 5e3, 30e3);
  int withheld = 0;
  for (int i = 0; i < 12800; ++i) withheld += loop.rewarming.withholds(kPlace);
  EXPECT_NEAR(withheld, 100, 2);
}

}  // namespace
}  // namespace fallow::pmpi
