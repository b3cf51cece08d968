#include "pmpi/toll.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kPlace = std::uint64_t{3} << 58, kOther = std::uint64_t{5} << 58;
constexpr double kAssumed = 10e3, kCycle = 1e6, kNsPerTick = 0.5;

std::uint64_t ticks(double ns) { return static_cast<std::uint64_t>(ns / kNsPerTick); }

/// A loop with one wait, every third of which is spent awake; a sleep makes what comes next later by `lasting`.
class Loop {
 public:
  explicit Loop(double noise) : noise_(noise) {}

  void run(Toll& toll, int cycles, double cycle, double lasting, std::uint64_t place = kPlace) {
    for (int i = 0; i < cycles; ++i) {
      const bool slept = ++count_ % 3 != 0;
      toll.wait_over(place, ticks(now_), kNsPerTick, slept, 0);
      now_ += cycle + (slept ? lasting : 0) + noise_ * deviation_(random_);
    }
  }
  void jump(double ns) { now_ += ns; }

 private:
  double noise_, now_ = kCycle;
  int count_ = 0;
  std::mt19937_64 random_{7};
  std::normal_distribution<double> deviation_;
};

TEST(Toll, IsAsAssumedUntilItIsKnown) {
  Toll toll;
  EXPECT_EQ(toll.per_sleep(kPlace, kAssumed), kAssumed);
  Loop(1e3).run(toll, 12, kCycle, 0);
  EXPECT_EQ(toll.per_sleep(kPlace, kAssumed), kAssumed);
}

TEST(Toll, IsSmallWhereDelaysAreMadeGood) {
  Toll toll;
  Loop(2e3).run(toll, 300, kCycle, 0);
  EXPECT_LT(toll.per_sleep(kPlace, kAssumed), 3e3);
  EXPECT_GE(toll.per_sleep(kPlace, kAssumed), 1e3);
  EXPECT_EQ(toll.per_sleep(kOther, kAssumed), kAssumed);
}

TEST(Toll, IsWhatTheProgramLoses) {
  Toll toll;
  Loop(2e3).run(toll, 300, kCycle, 50e3);
  EXPECT_NEAR(toll.per_sleep(kPlace, kAssumed), 50e3, 5e3);
}

/// A loop in which every fourth wait ends late, which makes the program later by a share of that.
void run_late(Toll& toll, double share, double noise, double late_ns = 70e3) {
  std::mt19937_64 random{11};
  std::normal_distribution<double> deviation;
  double now = kCycle;
  for (int i = 0; i < 400; ++i) {
    const bool late = i % 4 == 3;
    toll.wait_over(kPlace, ticks(now + (late ? late_ns : 0)), kNsPerTick, true, late ? late_ns : 0);
    now += kCycle + (late ? share * late_ns : 0) + noise * deviation(random);
  }
}

/// A loop whose cycles are longer and shorter in turn, and so much longer after every second pair, which begins asleep.
void run_uneven(Toll& toll, double off, double lasting) {
  double now = kCycle;
  for (int i = 0; i < 4000; ++i) {
    const bool slept = i % 4 < 2;
    toll.wait_over(kPlace, ticks(now), kNsPerTick, slept, 0);
    now += kCycle + (slept ? lasting : 0) + (i % 2 == 0 ? off : -off);
  }
}

TEST(Toll, IsNoNearerToWhatIsAssumedThanItMayBe) {
  constexpr double kOff = 8e3, kError = 1.25 * kOff / 8;  // the square root of 1/128 + 1/128
  Toll less, more;
  run_uneven(less, kOff, 0);
  EXPECT_NEAR(less.per_sleep(kPlace, kAssumed), kError, 150);
  run_uneven(more, kOff, 16e3);  // which makes every cycle 8 us longer than the mean, or shorter
  EXPECT_LT(more.per_sleep(kPlace, kAssumed), 16e3 - kError / 2);
  EXPECT_GT(more.per_sleep(kPlace, kAssumed), 16e3 - 3 * kError);
}

TEST(Toll, PlacesThatShareAnEntryDoNotBorrowFromEachOther) {
  Toll toll;
  Loop(2e3).run(toll, 300, kCycle, 0);
  EXPECT_EQ(toll.per_sleep(kPlace + 1, kAssumed), kAssumed);
  Toll late;
  run_late(late, 0.0, 2e3);
  EXPECT_EQ(late.lasting_share(kPlace + 1), 1.0);
}

TEST(Toll, AnInterruptionAtFirstIsNotTakenForUsual) {
  Toll toll;
  Loop loop(2e3);
  loop.run(toll, 4, kCycle, 0);
  loop.jump(4e6);
  loop.run(toll, 120, kCycle, 0);
  EXPECT_LT(toll.per_sleep(kPlace, kAssumed), 5e3);
}

TEST(Toll, IsAsAssumedWhereNoiseHidesIt) {
  Toll toll;
  Loop(200e3).run(toll, 300, kCycle, 0);
  EXPECT_EQ(toll.per_sleep(kPlace, kAssumed), kAssumed);
}

TEST(Toll, OutlivesInterruptions) {
  Toll toll;
  Loop loop(2e3);
  for (int i = 0; i < 30; ++i) {
    loop.run(toll, 10, kCycle, 0);
    loop.jump(4e6);
    if (i >= 5) {
      EXPECT_LT(toll.per_sleep(kPlace, kAssumed), 5e3) << i;
    }
  }
}

TEST(Toll, LearnsAnotherLoopAnew) {
  Toll toll;
  Loop loop(2e3);
  loop.run(toll, 300, kCycle, 0);
  loop.run(toll, 12, 5 * kCycle, 0);
  EXPECT_EQ(toll.per_sleep(kPlace, kAssumed), kAssumed);
  loop.run(toll, 300, 5 * kCycle, 50e3);
  EXPECT_NEAR(toll.per_sleep(kPlace, kAssumed), 50e3, 5e3);
}

TEST(Toll, ForgetsAllOfALoopThatIsOver) {
  Toll toll;
  Loop(100e3).run(toll, 100, 10 * kCycle, 0);
  Loop(1e3).run(toll, 90, 12 * kCycle, 0);
  EXPECT_LT(toll.per_sleep(kPlace, kAssumed), 3e3);
}

TEST(Toll, TellsWhetherLateWakeUpsLast) {
  for (const double share : {0.0, 0.5, 1.0}) {
    Toll toll;
    EXPECT_EQ(toll.lasting_share(kPlace), 1.0);
    run_late(toll, share, 2e3);
    EXPECT_NEAR(toll.lasting_share(kPlace), share, 0.05);
  }
}

TEST(Toll, WhatLastsIsNoLessThanItMayBe) {
  Toll toll;
  constexpr double kLate = 70e3, kOff = 10e3;  // one cycle shorter, the next longer
  double now = kCycle;
  for (int i = 0; i < 400; ++i) {
    const bool late = i % 4 == 3;
    toll.wait_over(kPlace, ticks(now + (late ? kLate : 0)), kNsPerTick, true, late ? kLate : 0);
    now += kCycle + (late ? kLate / 2 : 0) + (i % 2 == 0 ? -kOff : kOff);
  }
  EXPECT_NEAR(toll.lasting_share(kPlace), 0.5 + 1.25 * kOff * std::sqrt(2.0 / 98) / kLate, 0.005);
}

TEST(Toll, CyclesAboutALateEndAreNoneOfASleep) {
  Toll toll;
  for (int i = 0; i < 900; ++i) {
    const bool late = i % 3 == 2;
    toll.wait_over(kPlace, ticks((i + 1) * kCycle + (late ? 50e3 : 0)), kNsPerTick, i % 3 != 0 || i % 2 == 0, late ? 50e3 : 0);
  }
  EXPECT_LT(toll.per_sleep(kPlace, kAssumed), 3e3);
}

TEST(Toll, LateWakeUpsLastWhereNoiseHidesIt) {
  Toll toll;
  run_late(toll, 0.0, 400e3);
  EXPECT_EQ(toll.lasting_share(kPlace), 1.0);
}

TEST(Toll, WhoWasHeldUpByOthersTellsNothing) {
  Toll toll;
  run_late(toll, 0.0, 2e3, 400e3);
  EXPECT_EQ(toll.lasting_share(kPlace), 1.0);
}

TEST(Toll, IsForgottenWhereTheProgramGoesOnToOtherPlaces) {
  Toll toll;
  Loop(2e3).run(toll, 300, kCycle, 0);
  ASSERT_LT(toll.per_sleep(kPlace, kAssumed), 3e3);
  for (int i = 0; i < 20; ++i) toll.wait_over(i % 2 == 0 ? kOther : kPlace, ticks((400 + i) * kCycle), kNsPerTick, true, 0);
  EXPECT_EQ(toll.per_sleep(kPlace, kAssumed), kAssumed);
}

TEST(Toll, LateWakeUpsInARowTellNothingBesideOthersThatDo) {
  Toll toll;
  for (int i = 0; i < 800; ++i) {
    const bool late = i % 8 == 3 || i % 8 >= 6;  // all made good
    toll.wait_over(kPlace, ticks((i + 1) * kCycle + (late ? 70e3 : 0)), kNsPerTick, true, late ? 70e3 : 0);
  }
  EXPECT_LT(toll.lasting_share(kPlace), 0.05);
}

TEST(Toll, CyclesToOtherPlacesAreNoMeasureOfLateWakeUps) {
  Toll toll;
  double now = kCycle;
  for (int i = 0; i < 400; ++i) {  // three waits at one place, the second of which ends late, and after a longer time one at another
    const int step = i % 4;
    toll.wait_over(step == 3 ? kOther : kPlace, ticks(now + (step == 1 ? 70e3 : 0)), kNsPerTick, true, step == 1 ? 70e3 : 0);
    now += step >= 2 ? 3 * kCycle : kCycle;
  }
  EXPECT_EQ(toll.lasting_share(kPlace), 1.0);
}

TEST(Toll, LateWakeUpsInARowTellNothing) {
  Toll toll;
  Loop(2e3).run(toll, 100, kCycle, 0);
  for (int i = 0; i < 100; ++i) toll.wait_over(kPlace, ticks((200 + i) * kCycle), kNsPerTick, true, 50e3);
  EXPECT_EQ(toll.lasting_share(kPlace), 1.0);
}

TEST(Toll, OneWaitInManyIsSpentAwake) {
  Toll toll;
  int awake = 0;
  for (int i = 0; i < 320; ++i) awake += toll.compares(kPlace);
  EXPECT_EQ(awake, 10);
}

}  // namespace
}  // namespace fallow::pmpi
