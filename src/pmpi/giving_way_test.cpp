#include "pmpi/giving_way.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csetjmp>
#include <functional>
#include <random>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Ranks that test in vain all the time and make so many other calls per second, by how long they keep their cores.
class Ranks {
 public:
  using Rate = std::function<double(double hold_us)>;

  explicit Ranks(std::uint64_t ranks = 4) : ranks_(ranks) {}

  /// For so long; returns the share of calls that were made of those that would have been at `best` a second.
  double run(std::uint64_t ms, const Rate& rate, double best = 1) {
    double made = 0;
    for (std::uint64_t i = 0; i < 10 * ms; ++i) {
      const double now = rate(static_cast<double>(trials.hold_ns()) * 1e-3) * 1e-4;
      made += now;
      calls_ += static_cast<std::uint64_t>(std::poisson_distribution<>(now)(random_));
      now_ns_ += kMs / 10;
      if (now_ns_ >= trials.due_ns()) trials.step(now_ns_, calls_, ranks_);
    }
    return made / (best * static_cast<double>(ms) * 1e-3);
  }
  void pass(std::uint64_t ms) { now_ns_ += ms * kMs; }
  void end_one() { calls_ /= 2; }
  std::uint64_t hold_us() const { return trials.usual_hold_ns() / 1000; }

  GivingWayTrials trials;

 private:
  std::mt19937_64 random_{7};
  std::uint64_t now_ns_ = 0, calls_ = 0, ranks_;
};

/// A test after each 0.1 us of work, and 1.5 us lost whenever the core changes hands.
double works_between_tests(double hold_us) { return 40e3 * (hold_us + 0.1) / (hold_us + 0.1 + 1.5); }

/// Each waits for another that wants the same core, in turns of 3 us.
double waits_for_this_core(double hold_us) { return 300e3 / (1 + hold_us / 3); }

TEST(GivingWay, WhoWorksBetweenTestsKeepsItsCore) {
  Ranks ranks;
  ranks.run(2000, works_between_tests);
  EXPECT_EQ(ranks.hold_us(), 64) << "1 ms gains no more";
  EXPECT_GT(ranks.run(10000, works_between_tests, 40e3), 0.95) << "trials of less are to cost little";
}

TEST(GivingWay, WhoWaitsGivesWayAtOnce) {
  Ranks ranks;
  EXPECT_GT(ranks.run(10000, waits_for_this_core, 300e3), 0.99);
  EXPECT_EQ(ranks.hold_us(), 0);
}

TEST(GivingWay, WhereItMakesNoDifferenceOthersHaveTheCore) {
  for (const double rate : {100.0, 3e3, 1e6}) {
    Ranks ranks;
    for (int i = 0; i < 30; ++i) {
      ranks.run(1000, [rate](double) { return rate; });
      EXPECT_EQ(ranks.hold_us(), 0) << rate << " after " << i << " s";
    }
  }
}

TEST(GivingWay, ASmallGainIsNotTakenFromOthers) {
  Ranks ranks;
  ranks.run(20000, [](double hold_us) { return hold_us > 0 ? 24e3 : 20e3; });
  EXPECT_EQ(ranks.hold_us(), 0);
}

TEST(GivingWay, PhasesOfAProgramThatWaitsAreNotTakenForAGain) {
  Ranks ranks;
  std::uint64_t tick = 0;
  const auto phases = [&tick](double hold_us) { return waits_for_this_core(hold_us) * (++tick / 170 % 3 == 0 ? 1.0 : 0.2); };
  EXPECT_GT(ranks.run(100000, phases, 300e3 * 1.4 / 3), 0.97);  // of 17 ms, one in three busy
}

/// Has trials stepped until `most` times another level was tried. `calls_per_us`: made per us, by how often that was and whether it is
/// now; `late_ns`: so much later than due is a step then.
void step_through(int most, const std::function<std::uint64_t(int, bool)>& calls_per_us, std::uint64_t late_ns) {
  GivingWayTrials trials;
  std::uint64_t now_ns = 0, calls = 0;
  int tried = 0;
  for (bool is_tried = false; tried < most;) {
    const std::uint64_t until = std::max(trials.due_ns(), now_ns + 1) + (is_tried ? late_ns : 0);
    calls += (until - now_ns) * calls_per_us(tried, is_tried) / 1000;
    now_ns = until;
    trials.step(now_ns, calls, 4);
    const bool was_tried = is_tried;
    is_tried = trials.hold_ns() != trials.usual_hold_ns();
    tried += is_tried && !was_tried ? 1 : 0;
    ASSERT_EQ(trials.usual_hold_ns(), 0U) << "after " << tried;
  }
}

TEST(GivingWay, KeepsNoCoreForOneOrTwoComparisonsThatWereWon) {
  step_through(4, [](int tried, bool is_tried) { return is_tried && tried <= 2 ? 20U : 10U; }, 0);
}

TEST(GivingWay, WinsOfATrialThatFailedAreForgotten) {
  step_through(12, [](int tried, bool is_tried) { return is_tried && tried % 3 != 0 ? 20U : 10U; }, 0);
}

TEST(GivingWay, StepsThatComeLateMakeNoGain) {
  step_through(12, [](int, bool) { return 10U; }, GivingWayTrials::kWindowNs);
}

TEST(GivingWay, FollowsAProgramThatWaitsLater) {
  Ranks ranks;
  ranks.run(3000, works_between_tests);
  ASSERT_EQ(ranks.hold_us(), 64);
  ranks.run(20000, waits_for_this_core);
  EXPECT_EQ(ranks.hold_us(), 0);
}

TEST(GivingWay, WhatGainsNoMoreIsGivenUp) {
  Ranks ranks;
  ranks.run(3000, works_between_tests);
  ASSERT_EQ(ranks.hold_us(), 64);
  ranks.run(20000, [](double) { return works_between_tests(64); });
  EXPECT_EQ(ranks.hold_us(), 0) << "others have the core the sooner";
}

TEST(GivingWay, FollowsAtOnceWhereTheRanksGetSlower) {
  Ranks ranks;
  double waiting = 0, working = 0;
  for (int i = 0; i < 10; ++i) {
    working += ranks.run(2000, works_between_tests, 40e3) / 10;
    waiting += ranks.run(2000, waits_for_this_core, 300e3) / 10;
  }
  EXPECT_GT(waiting, 0.6);  // 0.05 with cores kept for 64 us
  EXPECT_GT(working, 0.6);  // 0.06 with cores given away
}

TEST(GivingWay, SlowerPhasesOfWorkCostLittle) {
  Ranks ranks;
  std::uint64_t tick = 0;
  const auto phases = [&tick](double hold_us) { return works_between_tests(hold_us) * (++tick / 700 % 2 == 0 ? 1.0 : 0.3); };
  ranks.run(3000, phases);
  EXPECT_GT(ranks.run(30000, phases, 40e3 * 0.65), 0.9);
}

TEST(GivingWay, FewCallsTakeLonger) {
  Ranks ranks;
  ranks.run(30000, [](double hold_us) { return works_between_tests(hold_us) / 40; });
  EXPECT_GE(ranks.hold_us(), 4);
}

TEST(GivingWay, WhatIsNotLookedAtInTimeSaysNothing) {
  Ranks ranks;
  for (int i = 0; i < 1000; ++i) {
    ranks.run(4, works_between_tests);
    ranks.pass(100);  // the ranks compute
  }
  EXPECT_EQ(ranks.hold_us(), 0);
}

TEST(GivingWay, RanksThatEndSayNothing) {
  Ranks ranks;
  for (int i = 0; i < 1000; ++i) {
    ranks.run(4, waits_for_this_core);
    ranks.end_one();
  }
  EXPECT_EQ(ranks.hold_us(), 0);
}

TEST(GivingWay, IsSharedInTicks) {
  GivingWay shared;
  GivingWayTrials trials;  // the same in nanoseconds
  constexpr std::uint64_t kTicksPerUs = 2500, kBooted = 1'000'000'000'000;
  std::uint64_t now = kBooted;
  double calls = 0;
  EXPECT_TRUE(shared.is_due(now));
  EXPECT_EQ(shared.hold_ticks(), 0);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    now += 100 * kTicksPerUs;
    calls += works_between_tests(static_cast<double>(shared.hold_ticks()) / kTicksPerUs) * 1e-4;
    const auto so_far = static_cast<std::uint64_t>(calls);
    const bool due = 100 * i >= trials.due_ns() / 1000;
    ASSERT_EQ(shared.is_due(now), due) << i;
    if (due) trials.step(i * 100'000, so_far, 4);
    shared.step(now, kTicksPerUs, 4, [so_far] { return so_far; });
    ASSERT_EQ(shared.hold_ticks(), trials.hold_ns() / 1000 * kTicksPerUs) << i;
  }
  EXPECT_GE(shared.hold_ticks(), 4 * kTicksPerUs);
  const std::uint64_t hold = shared.hold_ticks();
  shared.step(kBooted - 1, kTicksPerUs, 4, [] { return std::uint64_t{0}; });
  EXPECT_EQ(shared.hold_ticks(), hold) << "a clock of another core that is behind";
}

TEST(GivingWay, GoesOnAfterARankWasLostInTheMiddle) {
  constexpr std::uint64_t kTicksPerUs = 1000, kSecond = 1'000'000 * kTicksPerUs;
  GivingWay shared;
  static std::jmp_buf away;
  if (setjmp(away) == 0) shared.step(kSecond, kTicksPerUs, 4, []() -> std::uint64_t { std::longjmp(away, 1); });
  int asked = 0;
  const auto count = [&asked] { return static_cast<std::uint64_t>(++asked); };
  shared.step(kSecond + kSecond / 2, kTicksPerUs, 4, count);
  EXPECT_EQ(asked, 0) << "it may be at it still";
  shared.step(3 * kSecond, kTicksPerUs, 4, count);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace fallow::pmpi
