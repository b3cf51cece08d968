#include "pmpi/sleep_plan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace fallow::pmpi {
namespace {

constexpr double kUs = 1e3, kMs = 1e6;
constexpr TickRate kRate{2.0};                     // two ticks a nanosecond
constexpr std::uint64_t kEnter = 1'000'000'000;    // tick at which the call began

constexpr std::uint64_t ticks(double ns) { return static_cast<std::uint64_t>(2 * ns); }
constexpr std::uint64_t after(double ns) { return kEnter + ticks(ns); }

/// A wait of which everything is known at once, and what was asked of it by lot or at a cost.
struct KnownWait {
  bool grows = false, about_to_end = false, target_unseen = false, limited = false, contended = false, with_debts = false, held = false, pays = true;
  bool rivals = false, long_by_itself = false;
  bool just_woken = false, needed_unseen = false, compared = false, moves = false;
  std::string asked{};

  bool moves_data() const { return moves; }
  bool does_not_weigh() const { return grows; }
  bool is_about_to_end() { return asked += 'e', about_to_end; }
  bool needs_target_unseen() const { return target_unseen; }
  bool is_limited() const { return limited; }
  bool is_contended() const { return contended; }
  bool is_needed_with_debts() const { return with_debts; }
  bool was_held() const { return held; }
  bool holding_pays() { return asked += 'h', pays; }
  bool has_rivals() const { return rivals; }
  bool is_long_by_itself() const { return long_by_itself; }
  bool has_just_woken() const { return just_woken; }
  void earn() { asked += '$'; }
  bool may_be_needed_unseen() const { return needed_unseen; }
  bool is_compared() { return asked += 'c', compared; }
};

TEST(NextStep, IsToWeighWhereNothingElseIsToBeDone) {
  KnownWait wait;
  EXPECT_EQ(next_step(wait), Step::weigh);
  EXPECT_EQ(wait.asked, "e$c") << "the account has earned what there is to spend";
}

TEST(NextStep, ModeSleepAndRanksThatShareCoresNeverWeigh) {
  KnownWait wait{.grows = true, .about_to_end = true, .contended = true, .just_woken = true, .compared = true};
  EXPECT_EQ(next_step(wait), Step::grow);
  EXPECT_EQ(wait.asked, "");
}

TEST(NextStep, WhileDataMoveNobodySleepsInAnyMode) {
  EXPECT_EQ(next_step(KnownWait{.grows = true, .moves = true}), Step::stay_awake);
  EXPECT_EQ(next_step(KnownWait{.contended = true, .moves = true}), Step::stay_awake);
}

TEST(MovingData, TakeLongerTheMoreThereAreAndTheMoreRanksTheyGoThrough) {
  EXPECT_EQ(moving_ns(8, 2), 0.0) << "such a call is weighed like others";
  EXPECT_EQ(moving_ns(4096, 1024), 0.0);
  EXPECT_EQ(moving_ns(2'000'000, 2), 2 * kMs);
  EXPECT_EQ(moving_ns(2'000'000, 16), 4 * 2 * kMs);
  EXPECT_EQ(moving_ns(2'000'000, 17), 5 * 2 * kMs);
  EXPECT_EQ(moving_ns(2'000'000, 1), 2 * kMs) << "as of two";
  EXPECT_EQ(moving_ns(~std::uint64_t{0}, 1024), 100 * kMs) << "what callers say may be anything where it is not significant";
}

TEST(NextStep, WhatIsAboutToEndOrNeedsTheRankIsNotSleptIn) {
  EXPECT_EQ(next_step(KnownWait{.about_to_end = true, .contended = true}), Step::stay_awake);
  EXPECT_EQ(next_step(KnownWait{.target_unseen = true, .contended = true}), Step::stay_awake);
  EXPECT_EQ(next_step(KnownWait{.needed_unseen = true}), Step::stay_awake);
}

TEST(NextStep, WhereOthersWantTheCoreItIsKeptOnceIfThatPays) {
  EXPECT_EQ(next_step(KnownWait{.contended = true}), Step::hold);
  EXPECT_EQ(next_step(KnownWait{.contended = true, .pays = false}), Step::grow);
  KnownWait again{.contended = true, .held = true};
  EXPECT_EQ(next_step(again), Step::grow);
  EXPECT_EQ(again.asked, "e") << "a trial of holding is not used up by a wait that has held already";
}

TEST(NextStep, WhereTimeIsLimitedNoneIsSpentOnWaiting) {
  KnownWait wait{.limited = true, .contended = true, .with_debts = true, .rivals = true, .just_woken = true, .needed_unseen = true};
  EXPECT_EQ(next_step(wait), Step::grow);
  EXPECT_EQ(wait.asked, "e") << "neither earnings nor lots";
  EXPECT_EQ(next_step(KnownWait{.about_to_end = true, .limited = true}), Step::stay_awake);
  EXPECT_EQ(next_step(KnownWait{.target_unseen = true, .limited = true}), Step::stay_awake);
  EXPECT_EQ(next_step(KnownWait{.limited = true, .moves = true}), Step::stay_awake);
}

TEST(NextStep, WhereFewOthersWantCoresOnlyLongWaitsAreWeighed) {
  KnownWait brief{.rivals = true, .just_woken = true};
  EXPECT_EQ(next_step(brief), Step::stay_awake);
  EXPECT_EQ(brief.asked, "e") << "neither earnings nor lots";
  EXPECT_EQ(next_step(KnownWait{.rivals = true, .long_by_itself = true}), Step::weigh);
  EXPECT_EQ(next_step(KnownWait{.contended = true, .rivals = true}), Step::hold) << "many others are there as well";
}

TEST(NextStep, WaitsAreLongByThemselvesIfNearlyAllAtTheirPlaceAre) {
  const auto is_long = [](double waited_ns, std::uint32_t samples, double p10_ns) {
    return is_long_by_itself(waited_ns, {samples, Nanoseconds(static_cast<std::int64_t>(p10_ns)), Nanoseconds(3'000'000), Nanoseconds(9'000'000)});
  };
  EXPECT_TRUE(is_long(0, 8, 0.5 * kMs));
  EXPECT_FALSE(is_long(0, 7, 0.5 * kMs)) << "too few to tell";
  EXPECT_FALSE(is_long(8 * kMs, 64, 0.4 * kMs)) << "others may have had the core of who is waited for";
  EXPECT_TRUE(is_long(20 * kMs, 0, 0)) << "for so long none of a few has it";
}

TEST(NextStep, WhoIsWaitedForInTheMiddleOfACallDoesNotSleepOnDebts) {
  EXPECT_EQ(next_step(KnownWait{.contended = true, .with_debts = true, .held = true}), Step::give_way);
  EXPECT_EQ(next_step(KnownWait{.with_debts = true}), Step::weigh) << "at the price of debts nothing sleeps";
}

TEST(NextStep, ARankThatWasWokenHasTimeToAnswer) {
  KnownWait wait{.just_woken = true, .compared = true};
  EXPECT_EQ(next_step(wait), Step::await_answer);
  EXPECT_EQ(wait.asked, "e") << "no lot is drawn";
}

TEST(NextStep, SomeWaitsAreSpentAwakeForComparison) { EXPECT_EQ(next_step(KnownWait{.compared = true}), Step::stay_awake); }

/// A plan at `at_ns` of a call, where most waits last `usual_ns`.
GrowingPlan grown(const WaitState& w, double at_ns, const Surroundings& where, bool many_steps = false, double usual_ns = 0) {
  return growing_plan(w, {kEnter, after(at_ns), many_steps}, where, kRate, [&] { return usual_ns; });
}

void expect_yields(const GrowingPlan& plan, double ns) {
  EXPECT_TRUE(plan.yields);
  EXPECT_EQ(plan.plan.sleep_for.value, 0);
  EXPECT_EQ(plan.plan.spin.value, static_cast<std::int64_t>(ns));
}

void expect_sleeps(const GrowingPlan& plan, double ns) {
  EXPECT_FALSE(plan.yields);
  EXPECT_EQ(plan.plan.sleep_for.value, static_cast<std::int64_t>(ns));
  EXPECT_EQ(plan.plan.spin.value, 0);
}

constexpr Surroundings kShared{.oversubscribed = true}, kOwnCore{};

TEST(GrowingPlan, GivesWayForAFifthOfAMillisecondFirst) {
  for (const Surroundings& where : {kShared, kOwnCore}) {
    expect_yields(grown({}, 0, where), 200 * kUs);
    expect_yields(grown({}, 30 * kUs, where), 170 * kUs);
    expect_sleeps(grown({}, 200 * kUs, where), 200 * kUs);
  }
}

TEST(GrowingPlan, SleepsAtOnceInModeSleep) {
  expect_sleeps(grown({}, 20 * kUs, {.automatic = false}), 50 * kUs);
  expect_sleeps(grown({}, 120 * kUs, {.automatic = false}), 120 * kUs);
}

TEST(GrowingPlan, SleepsAtOnceWhereTimeIsLimited) {
  expect_sleeps(grown({}, 20 * kUs, {.limited = true}), 50 * kUs);
  expect_sleeps(grown({}, 20 * kUs, {.limited = true}, false, 3 * kMs), 2.98 * kMs);
  const WaitState woken{.last_wake = after(1000 * kUs), .sleeps = 1, .woken_by_peer = true};
  expect_sleeps(grown(woken, 1010 * kUs, {.limited = true}), 1010 * kUs);
}

TEST(GrowingPlan, SleepsForAsLongAsMostWaitsLastWhereTheirEndWakes) {
  expect_sleeps(grown({}, 200 * kUs, kShared, false, 3 * kMs), 2.8 * kMs);
  expect_sleeps(grown({}, 1 * kMs, kShared, false, 1.5 * kMs), 1 * kMs);  // as long again is longer
  const auto never = []() -> double {
    ADD_FAILURE() << "nothing is asked of waits at this place";
    return 0;
  };
  const WaitingCall one{kEnter, after(400 * kUs), false}, many{kEnter, after(400 * kUs), true};
  const WaitState stirred{.stirred = after(300 * kUs)};
  expect_sleeps(growing_plan({}, one, {.whole_job_here = false, .oversubscribed = true}, kRate, never), 400 * kUs);
  expect_sleeps(growing_plan({}, one, {.oversubscribed = true, .wakes = false}, kRate, never), 400 * kUs);
  expect_sleeps(growing_plan({}, many, kShared, kRate, never), 100 * kUs);
  expect_sleeps(growing_plan(stirred, one, kShared, kRate, never), 100 * kUs);
}

TEST(GrowingPlan, SleepsForAQuarterOfAWaitOfManySteps) {
  expect_sleeps(grown({}, 200 * kUs, kShared, true), 50 * kUs);
  expect_sleeps(grown({}, 4 * kMs, kShared, true), 1 * kMs);
}

TEST(GrowingPlan, NoSleepIsLongerThanOneThatALostWakeMayCost) {
  expect_sleeps(grown({}, 1 * kMs, kShared, false, 500 * kMs), 10 * kMs);
  expect_sleeps(grown({}, 300 * kMs, kShared, true), 10 * kMs);
}

TEST(GrowingPlan, WhoWasWokenStaysForALittle) {
  const WaitState woken{.last_wake = after(1000 * kUs), .sleeps = 1, .woken_by_peer = true};
  expect_yields(grown(woken, 1010 * kUs, kShared), 40 * kUs);
  expect_sleeps(grown(woken, 1050 * kUs, kShared), 1050 * kUs);
  expect_yields(grown(woken, 1010 * kUs, kOwnCore), 190 * kUs);  // who wants the core is another program
  const WaitState timed{.last_wake = after(1000 * kUs), .sleeps = 1};
  expect_sleeps(grown(timed, 1010 * kUs, kShared), 1010 * kUs);
  expect_sleeps(grown(timed, 1010 * kUs, kOwnCore), 1010 * kUs);
}

TEST(GrowingPlan, BetweenNodesAnyWakeMayBeForAStepAndNobodyTells) {
  const WaitState timed{.last_wake = after(1000 * kUs), .sleeps = 1};
  const Surroundings across{.whole_job_here = false, .oversubscribed = true};
  expect_yields(grown(timed, 1010 * kUs, across, true), 40 * kUs);
  expect_sleeps(grown(timed, 1010 * kUs, across, false), 1010 * kUs);
}

TEST(GrowingPlan, WhereTheLibraryGoesOnTheRankStaysForAsLongAsThatHasLasted) {
  WaitState flowing{.last_wake = after(1000 * kUs), .moved_last = after(1040 * kUs), .flows_since = after(1030 * kUs),
                    .stirred = after(1040 * kUs), .sleeps = 1};
  expect_yields(grown(flowing, 1100 * kUs, kShared), 140 * kUs);  // 200 us at least
  flowing.flows_since = after(440 * kUs);
  expect_yields(grown(flowing, 1100 * kUs, kShared), 540 * kUs);  // 600 us
  flowing.flows_since = after(0);
  flowing.moved_last = flowing.stirred = after(9 * kMs);
  expect_yields(grown(flowing, 9.5 * kMs, kShared), 1.5 * kMs);   // 2 ms at most
}

TEST(GrowingPlan, ATransferThatIsOverKeepsNobodyWhoIsWokenLater) {
  const WaitState woken{.last_wake = after(2000 * kUs), .moved_last = after(1040 * kUs), .flows_since = after(1030 * kUs),
                        .stirred = after(2000 * kUs), .sleeps = 2, .woken_by_peer = true};
  expect_yields(grown(woken, 2010 * kUs, kShared), 40 * kUs);
}

TEST(GrowingPlan, SlicesGrowFromTheLastStepOn) {
  const WaitState quiet{.last_wake = after(1000 * kUs), .moved_last = after(1040 * kUs), .flows_since = after(1030 * kUs),
                        .stirred = after(1040 * kUs), .sleeps = 1};
  expect_sleeps(grown(quiet, 1240 * kUs, kShared, false), 200 * kUs);
  expect_sleeps(grown(quiet, 1240 * kUs, kShared, true), 50 * kUs);
  expect_sleeps(grown(quiet, 2040 * kUs, kShared, true), 250 * kUs);
}

TEST(SleepPlan, AnAnswerTakesTwoWakeUpsAndALittle) {
  EXPECT_EQ(answered_by(kEnter, {.peer_wake_ns = 45 * kUs}, kRate), after(140 * kUs));
  EXPECT_EQ(answered_by(kEnter, {.peer_wake_ns = 10 * kUs}, kRate), after(70 * kUs));
}

TEST(SleepPlan, WindowsKeepRanksAwakeThatCanNeitherBeWokenNorNotice) {
  const Surroundings here{}, mute{.wakes = false}, across{.whole_job_here = false}, mute_across{.whole_job_here = false, .wakes = false};
  EXPECT_FALSE(may_be_needed_unseen(true, here, false)) << "whoever needs it wakes it";
  EXPECT_TRUE(may_be_needed_unseen(true, mute, true));
  EXPECT_TRUE(may_be_needed_unseen(true, across, false));
  EXPECT_FALSE(may_be_needed_unseen(true, across, true));
  EXPECT_TRUE(may_be_needed_unseen(true, mute_across, true));
  for (const Surroundings& where : {here, mute, across, mute_across}) EXPECT_FALSE(may_be_needed_unseen(false, where, false));
}

TEST(SleepPlan, WaitsAreComparedBetweenNodesBelowThreeMilliseconds) {
  EXPECT_TRUE(may_be_compared({.whole_job_here = false}, 3 * kMs));
  EXPECT_FALSE(may_be_compared({.whole_job_here = false}, 3.1 * kMs));
  EXPECT_FALSE(may_be_compared({}, 1 * kMs));
}

TEST(SleepPlan, DelayCostsOneAndFiveTimesThePartThatLastsOrMore) {
  EXPECT_EQ(held_up_by(1), 5);
  EXPECT_EQ(held_up_by(2), 5);
  EXPECT_EQ(held_up_by(16), 19);
  EXPECT_EQ(price_of_delay(1, 0, 5), 1);
  EXPECT_EQ(price_of_delay(1, 0.5, 5), 3.5);
  EXPECT_EQ(price_of_delay(1, 1, 5), 6);
  EXPECT_EQ(price_of_delay(40, 1, 5), 40);
}

constexpr MeasuredCosts kCosts{.sleep_cpu_ns = 20 * kUs, .overshoot_ns = 30 * kUs, .peer_wake_ns = 45 * kUs, .waking_ns = 5 * kUs};

TEST(SleepPlan, TheTimeOfWhoeverWakesCountsSixTimesWhereDelayCostsLess) {
  for (const double price : {1.0, 2.0, 5.0}) {
    const Nanoseconds woken = costs_of_sleep(kCosts, {.price = price}).peer_wake_delay;
    EXPECT_NEAR(price * static_cast<double>(woken.value - 45'000), 6 * 5'000, 5) << price;
  }
  EXPECT_EQ(costs_of_sleep(kCosts, {.price = 6}).peer_wake_delay.value, 50'000);
  EXPECT_EQ(costs_of_sleep(kCosts, {.price = 1000}).peer_wake_delay.value, 50'000);
}

TEST(SleepPlan, WhatComesAfterASleepIsPaidOnceInAWait) {
  const auto after_sleep = [](bool slept, bool many_steps) {
    return costs_of_sleep(kCosts, {.after_sleep_ns = 10 * kUs, .slept = slept, .many_steps = many_steps}).delay_after.value;
  };
  EXPECT_EQ(after_sleep(false, false), 10'000);
  EXPECT_EQ(after_sleep(true, false), 0);
  EXPECT_EQ(after_sleep(false, true), 10'000);
  EXPECT_EQ(after_sleep(true, true), 10'000) << "of many steps each may be late";
}

TEST(SleepPlan, TheModelIsToldWhatWasMeasured) {
  const predict::WaitCosts costs = costs_of_sleep(kCosts, {.longest_ns = 7 * kMs, .end_wakes = true});
  EXPECT_EQ(costs.sleep_cost.value, 20'000);
  EXPECT_EQ(costs.wake_delay.value, 30'000);
  EXPECT_EQ(costs.longest.value, 7'000'000);
  EXPECT_TRUE(costs.peer_can_wake);
  EXPECT_FALSE(costs_of_sleep(kCosts, {}).peer_can_wake);
}

}  // namespace
}  // namespace fallow::pmpi
