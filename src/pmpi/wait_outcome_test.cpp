#include "pmpi/wait_outcome.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr double kUs = 1e3, kMs = 1e6;
constexpr TickRate kRate{2.0};                    // two ticks a nanosecond
constexpr std::uint64_t kEnter = 1'000'000'000;   // tick at which the call began
constexpr MeasuredCosts kCosts{.sleep_cpu_ns = 20 * kUs, .overshoot_ns = 30 * kUs, .peer_wake_ns = 45 * kUs, .idle_poll_ns = 100};

constexpr std::uint64_t ticks(double ns) { return static_cast<std::uint64_t>(2 * ns); }
constexpr std::uint64_t after(double ns) { return kEnter + ticks(ns); }

/// A call of one message, or of many steps, that ended so long after it began.
constexpr WaitingCall one(double ns) { return {kEnter, after(ns), false}; }
constexpr WaitingCall many(double ns) { return {kEnter, after(ns), true}; }

WaitEnd end_of(const WaitState& w, const WaitingCall& call, bool whole_job_here = true) {
  return find_end(w, call, whole_job_here, kCosts, kRate);
}

WaitLength length(const WaitState& w, const WaitingCall& call, bool whole_job_here = true, bool end_wakes = false) {
  return length_of(w, end_of(w, call, whole_job_here), call, end_wakes, kCosts, kRate);
}

/// A wait that slept from 100 to 1100 us, and whose first poll then took 12 us.
WaitState slept() {
  return {.last_poll = after(1112 * kUs), .last_sleep = ticks(1000 * kUs), .last_wake = after(1100 * kUs),
          .awake_since = after(1112 * kUs), .sleeps = 1};
}

TEST(WaitEnd, IsTheEndOfTheCallWhereNothingLongMoves) {
  const WaitState w{.last_poll = after(99.5 * kUs), .polls_since = 8};
  const WaitEnd end = end_of(w, one(100 * kUs));
  EXPECT_EQ(end.tick, after(100 * kUs));
  EXPECT_FALSE(end.unseen);
  EXPECT_FALSE(end.moved);
}

TEST(WaitEnd, APollThatFetchesItsMessageHadFoundItWhenItBegan) {
  const WaitState w{.last_poll = after(100 * kUs), .polls_since = 8};
  // Eight idle polls take 0.8 us: four times as long, and what there is to do at the end of a call, is no transfer yet.
  EXPECT_FALSE(end_of(w, one(104.2 * kUs)).moved);
  EXPECT_TRUE(end_of(w, one(104.3 * kUs)).moved);
  const WaitEnd end = end_of(w, one(300 * kUs));
  EXPECT_TRUE(end.moved);
  EXPECT_EQ(end.tick, after(100 * kUs));
  EXPECT_EQ(length(w, one(300 * kUs)).lasted, ticks(100 * kUs)) << "the rest is transfer";
  EXPECT_EQ(length(w, one(115 * kUs)).lasted, ticks(115 * kUs)) << "a short one may be anything";
}

TEST(WaitEnd, PartsOfAMessageBelongTogether) {
  WaitState w{.last_poll = after(160 * kUs)};
  end_lull(w, after(100 * kUs), after(110 * kUs), kRate);
  end_lull(w, after(129 * kUs), after(159.9 * kUs), kRate);
  EXPECT_EQ(end_of(w, one(160.5 * kUs)).tick, after(100 * kUs));
  end_lull(w, after(181 * kUs), after(190 * kUs), kRate);  // 21 us later: another message
  w.last_poll = after(190 * kUs);
  EXPECT_EQ(end_of(w, one(190.5 * kUs)).tick, after(181 * kUs));
}

TEST(WaitEnd, OfManyStepsTheLastOneEndsTheWait) {
  WaitState w{.last_poll = after(160 * kUs)};
  end_lull(w, after(100 * kUs), after(160 * kUs), kRate);
  EXPECT_EQ(end_of(w, many(160.5 * kUs)).tick, after(160.5 * kUs));
}

TEST(WaitEnd, WhatIsFoundRightAfterTheFirstPollHadComeDuringTheSleep) {
  WaitState w = slept();
  w.polls_since = 8;
  // 3 us and eight idle polls of 0.1 us after the first poll, however long that took.
  const WaitEnd soon = end_of(w, one(1115.7 * kUs));
  EXPECT_TRUE(soon.unseen);
  EXPECT_EQ(soon.tick, after(1100 * kUs));
  EXPECT_FALSE(end_of(w, one(1115.9 * kUs)).unseen);
}

TEST(WaitEnd, SoHadWhatTheSecondPollFoundAndTookLongToFetch) {
  const WaitEnd end = end_of(slept(), one(1400 * kUs));
  EXPECT_TRUE(end.moved);
  EXPECT_TRUE(end.unseen);
  EXPECT_EQ(end.tick, after(1100 * kUs));
}

TEST(WaitEnd, WhatIsFoundLaterWasWaitedFor) {
  WaitState w = slept();
  w.last_poll = after(1400 * kUs);
  const WaitEnd end = end_of(w, one(1400.5 * kUs));
  EXPECT_FALSE(end.unseen);
  EXPECT_EQ(end.tick, after(1400.5 * kUs));
  EXPECT_EQ(length(w, one(1400.5 * kUs)).lasted, ticks(1400.5 * kUs));
  EXPECT_EQ(length(w, one(1400.5 * kUs)).delay, 0u);
}

TEST(WaitEnd, IsNotBeforeTheWakeThatFoundItEvenIfDataHadMovedBefore) {
  WaitState w = slept();
  end_lull(w, after(95 * kUs), after(99 * kUs), kRate);
  w.quiet_since = after(1099 * kUs);
  EXPECT_EQ(end_of(w, one(1200 * kUs)).tick, after(1100 * kUs));
}

TEST(WaitEnd, BetweenNodesTheFirstOfManyStepsTells) {
  WaitState w = slept();
  w.moved_at = after(1113 * kUs);
  w.last_poll = after(1500 * kUs);
  EXPECT_TRUE(end_of(w, many(1500.5 * kUs), false).unseen);
  EXPECT_FALSE(end_of(w, many(1500.5 * kUs), true).unseen) << "a rank of this node would have woken it";
  w.moved_at = after(1300 * kUs);
  EXPECT_FALSE(end_of(w, many(1500.5 * kUs), false).unseen);
}

TEST(SleepEnd, IsDueWhenAPeerSaysOrTheTimerWasSet) {
  WaitState w{.planned_end = 900, .last_wake = 1000, .woken_tick = 700};
  EXPECT_EQ(due_end(w), 900u);
  w.planned_end = 1100;
  EXPECT_EQ(due_end(w), 1000u) << "a signal ended it before";
  w.woken_by_data = true;
  EXPECT_EQ(due_end(w), 1000u);
  w.planned_end = 900;
  EXPECT_EQ(due_end(w), 1000u) << "when data came is not known";
  w.woken_by_data = false;
  w.woken_by_peer = true;
  EXPECT_EQ(due_end(w), 700u);
}

TEST(SleepEnd, AStampOfAnotherTimeSaysNothing) {
  EXPECT_EQ(tick_of_wake(500, 400, 600), 500u);
  EXPECT_EQ(tick_of_wake(400, 400, 600), 400u);
  EXPECT_EQ(tick_of_wake(399, 400, 600), 600u);
  EXPECT_EQ(tick_of_wake(601, 400, 600), 600u) << "clocks of cores may differ";
}

TEST(WaitLength, OfAWaitWithoutSleepIsWhatItLasted) {
  const WaitState w{.last_poll = after(99.5 * kUs)};
  const WaitLength l = length(w, one(100 * kUs));
  EXPECT_EQ(l.lasted, ticks(100 * kUs));
  EXPECT_EQ(l.uncertain, 0u);
  EXPECT_EQ(l.delay, 0u);
}

TEST(WaitLength, TheDelayOfAWakeIsFromTheWakersStampOn) {
  WaitState w = slept();
  w.woken_by_peer = true;
  w.woken_tick = after(1060 * kUs);
  const WaitLength found = length(w, one(1113 * kUs));
  EXPECT_EQ(found.lasted, ticks(1060 * kUs)) << "without sleep it would have ended then";
  EXPECT_EQ(found.delay, ticks(40 * kUs));
  EXPECT_EQ(found.uncertain, 0u);
  w.last_poll = after(1500 * kUs);
  const WaitLength early = length(w, one(1500.5 * kUs));
  EXPECT_EQ(early.lasted, ticks(1500.5 * kUs)) << "the message came later than the wake";
  EXPECT_EQ(early.delay, ticks(40 * kUs));
}

TEST(WaitLength, AWakeFromBeforeTheCallEndsItAtOnce) {
  WaitState w = slept();
  w.woken_by_peer = true;
  w.woken_tick = kEnter - 5;
  EXPECT_EQ(length(w, one(1113 * kUs)).lasted, 0u);
}

TEST(WaitLength, NobodySawWhenASleepWasOverThatATimerEnded) {
  const WaitLength l = length(slept(), one(1113 * kUs));
  EXPECT_EQ(l.lasted, ticks(1100 * kUs));
  EXPECT_EQ(l.uncertain, ticks(1000 * kUs));
  EXPECT_EQ(l.delay, ticks(500 * kUs)) << "until the waits before are asked";
}

TEST(WaitLength, WhoeverWouldHaveWokenItCameWhenItWasAwake) {
  const WaitLength l = length(slept(), one(1113 * kUs), true, true);
  EXPECT_EQ(l.lasted, ticks(1100 * kUs));
  EXPECT_EQ(l.uncertain, 0u);
  EXPECT_EQ(l.delay, 0u);
  WaitState w = slept();
  w.woken_by_data = true;
  EXPECT_EQ(length(w, one(1113 * kUs), false, true).delay, ticks(30 * kUs)) << "which were there";
}

TEST(WaitLength, DataThatEndASleepAreLateAsATimerIs) {
  WaitState w = slept();
  w.woken_by_data = true;
  const WaitLength l = length(w, one(1113 * kUs), false);
  EXPECT_EQ(l.delay, ticks(30 * kUs));
  EXPECT_EQ(l.lasted, ticks(1070 * kUs));
  EXPECT_EQ(l.uncertain, 0u);
  w.last_sleep = ticks(10 * kUs);  // no later than the sleep began
  EXPECT_EQ(length(w, one(1113 * kUs), false).delay, ticks(10 * kUs));
}

TEST(WaitLength, NoWakeIsLateWhereNothingWasSlept) {
  WaitState w = slept();  // ended by its timer: no peer has left a stamp in this wait
  found_data_ready(w);
  EXPECT_LE(length(w, one(1113 * kUs), false).delay, ticks(30 * kUs));
  w.last_poll = after(1500 * kUs);
  EXPECT_EQ(length(w, one(1500.5 * kUs), false).delay, 0u);
  w.woken_by_peer = true;  // the same of a stamp from long before
  w.woken_tick = after(200 * kUs);
  found_data_ready(w);
  EXPECT_EQ(length(w, one(1500.5 * kUs), false).delay, 0u);
}

TEST(WaitLength, OfAMeetingIsUntilTheLastRankCame) {
  const WaitLength awake = length({.last_poll = after(1030 * kUs)}, many(1031 * kUs));
  ASSERT_EQ(awake.lasted, ticks(1031 * kUs));
  const WaitLength told = until_last_came(awake, {}, many(1031 * kUs), after(1000 * kUs));
  EXPECT_EQ(told.lasted, ticks(1000 * kUs)) << "others woke late";
  EXPECT_EQ(told.delay, 0u);
  for (const std::uint64_t tick : {std::uint64_t{0}, kEnter, after(1031 * kUs), after(2000 * kUs)}) {
    EXPECT_EQ(until_last_came(awake, {}, many(1031 * kUs), tick).lasted, awake.lasted) << "it came to another one at " << tick;
  }
}

TEST(WaitLength, OfAMeetingThatATimerEndedIsKnown) {
  const WaitLength unseen{.lasted = ticks(1100 * kUs), .uncertain = ticks(1000 * kUs), .delay = ticks(500 * kUs)};
  const WaitLength late = until_last_came(unseen, slept(), many(1113 * kUs), after(1090 * kUs));
  EXPECT_EQ(late.lasted, ticks(1090 * kUs));
  EXPECT_EQ(late.uncertain, 0u);
  EXPECT_EQ(late.delay, ticks(10 * kUs)) << "it woke at 1100";
  EXPECT_EQ(until_last_came(unseen, slept(), many(1113 * kUs), after(1105 * kUs)).delay, 0u);
  const WaitLength woken{.lasted = ticks(1100 * kUs), .delay = ticks(10 * kUs)};
  EXPECT_EQ(until_last_came(woken, slept(), many(1113 * kUs), after(1060 * kUs)).delay, ticks(40 * kUs)) << "its waker was late, too";
}

TEST(HeldUp, WhoWasWokenToServeOrForAStepWasLate) {
  WaitState w = slept();
  w.woken_by_peer = true;
  w.woken_tick = after(1060 * kUs);
  const auto held_up = [&w](bool steps) { return held_up_by_sleep(w, {kEnter, w.last_wake, steps}, true, kCosts, kRate); };
  EXPECT_EQ(held_up(false), 0u);
  EXPECT_EQ(held_up(true), 0u) << "nothing moved: it was woken for nothing";
  w.moved_at = after(1300 * kUs);
  EXPECT_EQ(held_up(true), ticks(40 * kUs));
  EXPECT_EQ(held_up(false), 0u) << "one message ends its call";
  w.moved_at = 0;
  w.found_at_once = true;
  EXPECT_EQ(held_up(true), ticks(40 * kUs));
  w.found_at_once = false;
  w.served = true;
  EXPECT_EQ(held_up(false), ticks(40 * kUs));
}

TEST(HeldUp, AsMuchAsAUsualWakeWhereOthersHadTheCore) {
  WaitState w = slept();
  w.woken_by_peer = w.served = true;
  w.woken_tick = after(0);
  EXPECT_EQ(held_up_by_sleep(w, one(1100 * kUs), true, kCosts, kRate), ticks(1100 * kUs));
  w.others_had_core = true;
  EXPECT_EQ(held_up_by_sleep(w, one(1100 * kUs), true, kCosts, kRate), ticks(45 * kUs));
}

TEST(HeldUp, BetweenNodesByWhatMovedRightAfterTheSleep) {
  WaitState w = slept();
  w.moved_at = after(1113 * kUs);
  const auto held_up = [&w](bool steps, bool here) { return held_up_by_sleep(w, {kEnter, w.last_wake, steps}, here, kCosts, kRate); };
  EXPECT_EQ(held_up(true, false), ticks(500 * kUs));
  EXPECT_EQ(held_up(true, true), 0u);
  EXPECT_EQ(held_up(false, false), 0u);
  w.woken_by_data = true;
  EXPECT_EQ(held_up(true, false), ticks(30 * kUs));
  w.moved_at = after(1200 * kUs);
  EXPECT_EQ(held_up(true, false), 0u) << "waited for";
}

TEST(Bill, ADelayAndWhatComesAfterASleepAreDueInFull) {
  const Bill bill = bill_of(ticks(40 * kUs), ticks(10 * kUs), false, 1.0, kCosts, kRate);
  EXPECT_EQ(bill.delay, ticks(50 * kUs));
  EXPECT_EQ(bill.lasts, ticks(50 * kUs));
}

TEST(Bill, OnlyThePartThatLastsIsPaid) {
  const Bill bill = bill_of(ticks(30 * kUs), ticks(10 * kUs), false, 0.25, kCosts, kRate);
  EXPECT_EQ(bill.delay, ticks(40 * kUs));
  EXPECT_EQ(bill.lasts, ticks(10 * kUs));
  EXPECT_EQ(bill_of(ticks(30 * kUs), 0, false, 0, kCosts, kRate).lasts, 0u);
}

TEST(Bill, WhereOthersHadTheCoreAUsualWakeIsPaid) {
  EXPECT_EQ(bill_of(ticks(3 * kMs), 0, true, 1.0, kCosts, kRate).delay, ticks(45 * kUs));
  EXPECT_EQ(bill_of(ticks(3 * kMs), 0, false, 1.0, kCosts, kRate).delay, ticks(3 * kMs)) << "what a hypervisor took is paid";
  EXPECT_EQ(bill_of(ticks(20 * kUs), 0, true, 1.0, kCosts, kRate).delay, ticks(20 * kUs));
}

TEST(Aftermath, IsToldByWaitsThatWereSleptInOrMightHaveBeen) {
  const WaitState awake{}, asleep{.sleeps = 1};
  const WaitEnd soon{.tick = after(50 * kUs), .unseen = false, .moved = true}, late{.tick = after(51 * kUs), .unseen = false, .moved = true};
  EXPECT_TRUE(tells_aftermath(awake, late, one(500 * kUs), kCosts, kRate));
  EXPECT_FALSE(tells_aftermath(awake, soon, one(500 * kUs), kCosts, kRate)) << "the call was long, the wait was not";
  EXPECT_TRUE(tells_aftermath(asleep, soon, one(500 * kUs), kCosts, kRate));
  EXPECT_FALSE(tells_aftermath(asleep, late, many(500 * kUs), kCosts, kRate)) << "what moves last may have been waited for";
}

TEST(WaitModelOf, ManyStepsOnSharedCoresLearnsNothing) {
  EXPECT_TRUE(tells_model({}, true));
  EXPECT_TRUE(tells_model({.oversubscribed = true}, false));
  EXPECT_FALSE(tells_model({.oversubscribed = true}, true)) << "ranks would sleep for as long as all slept the last time";
  EXPECT_FALSE(tells_model({.automatic = false}, false));
}

TEST(ShortWait, IsOneThatASleepWouldNotPayIn) {
  EXPECT_TRUE(was_short({}, 50 * kUs, kCosts));
  EXPECT_FALSE(was_short({}, 51 * kUs, kCosts));
  EXPECT_FALSE(was_short({.sleeps = 1}, 20 * kUs, kCosts));
  EXPECT_FALSE(was_short({.held = true}, 20 * kUs, kCosts)) << "others wanted the core";
  EXPECT_FALSE(was_short({}, 20 * kUs, {.idle_poll_ns = 0})) << "how many polls it took is not known";
}

TEST(FirstLook, IsAfterSixMicrosecondsHoweverLongAPollTakes) {
  EXPECT_EQ(polls_until_first_look(200), 30u);
  EXPECT_EQ(polls_until_first_look(50), 64u) << "at most";
  EXPECT_EQ(polls_until_first_look(2000), 8u) << "at least";
}

TEST(UnlookedWait, IsThatOfItsPollsAndNoLongerThanItsCall) {
  EXPECT_EQ(unlooked_wait(10'000, 20, 100), 4'000u) << "the rest of the call moved data";
  EXPECT_EQ(unlooked_wait(3'000, 20, 100), 3'000u);
  EXPECT_EQ(unlooked_wait(3'000, 0, 100), 0u);
}

}  // namespace
}  // namespace fallow::pmpi
