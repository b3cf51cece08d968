#include "pmpi/test_loop.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr TestLoopLimits kLimits{.gap = 50, .own_gap = 5'000, .interrupt = 60'000, .held_up = 250'000, .slack = 2'000,
                                   .remembered = 20'000'000, .long_enough = 50'000, .after_short = 80'000, .noticed = 6'000};
const int kHere = 0, kThere[4] = {};

/// A program that tests, a test being 100 ticks long.
struct Program {
  TestLoop loop;
  std::uint64_t now = 1'000'000, events = 0;
  int left = 0;  ///< loops, for something else

  void test_in_vain(std::uint64_t gap = 20, const void* place = &kHere) {
    now += gap;
    const std::uint64_t enter = now;
    now += 100;
    left += loop.in_vain(kLimits, enter, now, events, place) ? 1 : 0;
  }
  void test_for(std::uint64_t ticks, std::uint64_t gap = 20) {
    for (const std::uint64_t end = now + ticks; now < end;) test_in_vain(gap);
  }
  /// True if that ended a wait.
  bool find(const void* place = &kHere, std::uint64_t gap = 20) {
    now += gap;
    const std::uint64_t enter = now;
    now += 100;
    if (loop.ends_wait(kLimits, now)) return loop.found_after(kLimits, enter, now, events, place);
    loop.found();
    return false;
  }
  /// In a test that begins at once.
  void rest_for(std::uint64_t ticks) {
    const std::uint64_t enter = now += 20;
    now += ticks;
    loop.rested(ticks);
    left += loop.in_vain(kLimits, enter, now, events, &kHere) ? 1 : 0;
  }
  bool due() const { return now >= loop.due(); }
  void earn_trust() {
    for (int i = 0; i < 8; ++i, now += 10'000) {
      test_for(200'000);
      find();
    }
  }
  /// Between its tests, for a third of the time.
  void work_for_long() {
    for (int i = 0; i < 50; ++i, now += 60'000) test_for(120'000);
    now += 1'000'000;
  }
};

TEST(TestLoop, RestsOnceSomeHaveEndedWithAFind) {
  Program p;
  int waits = 0;
  for (; waits < 100; ++waits, p.now += 10'000) {
    p.test_for(200'000);
    if (p.due()) break;
    EXPECT_TRUE(p.find());
  }
  EXPECT_EQ(waits, 4);
  EXPECT_TRUE(p.loop.may_rest());
}

TEST(TestLoop, ProgramsThatLeaveTheirLoopsAgainAndAgainWork) {
  Program p;
  p.earn_trust();
  for (int i = 0; i < 40; ++i, p.now += 50'000) p.test_for(200'000);
  EXPECT_FALSE(p.loop.works());  // these may have been interrupts
  for (int i = 0; i < 8; ++i, p.now += 1'000'000) p.test_for(200'000);
  EXPECT_TRUE(p.loop.works());
  for (int i = 0; i < 40; ++i, p.now += 10'000) {
    p.test_for(200'000);
    p.find();
  }
  EXPECT_FALSE(p.loop.works());
}

TEST(TestLoop, LoopsThatEndUnseenCountAsOthers) {
  Program p;
  for (int i = 0; i < 4; ++i) p.loop.ended_unseen(true);
  EXPECT_FALSE(p.loop.waits_unseen());
  for (int i = 0; i < 4; ++i) p.loop.ended_unseen(false);
  EXPECT_TRUE(p.loop.waits_unseen());
  EXPECT_TRUE(p.loop.works());
}

TEST(TestLoop, OneThatIsBrokenOffBeginsAnewWithoutBeingLeft) {
  Program p;
  p.earn_trust();
  p.test_for(100'000);
  p.loop.break_off();
  EXPECT_EQ(p.loop.due(), TestLoop::kNever);
  p.now += 10'000'000;
  p.test_in_vain();
  EXPECT_EQ(p.left, 0);
  EXPECT_GT(p.loop.due(), p.now);
  EXPECT_NE(p.loop.due(), TestLoop::kNever);
}

TEST(TestLoop, AfterAShortOneLoopsAreLeftAloneForLonger) {
  Program p;
  p.earn_trust();
  const auto due_after = [&p] {
    p.now += 10'000;
    const std::uint64_t from = p.now;
    while (!p.due()) p.test_in_vain();
    return p.now - from;
  };
  EXPECT_NEAR(static_cast<double>(due_after()), 50'000, 300);
  EXPECT_TRUE(p.find());
  EXPECT_NEAR(static_cast<double>(due_after()), 80'000, 300) << "it took 50,000";
  EXPECT_TRUE(p.find());
  EXPECT_NEAR(static_cast<double>(due_after()), 50'000, 300);
  p.find();
  p.test_for(90'000);
  p.find();
  p.now += 10'000;
  p.test_for(10'000);
  EXPECT_FALSE(p.find()) << "a short one is no wait";
  EXPECT_NEAR(static_cast<double>(due_after()), 80'000, 300);
  EXPECT_TRUE(p.find());
  p.now += 10'000;
  EXPECT_FALSE(p.find()) << "found at once";
  EXPECT_NEAR(static_cast<double>(due_after()), 50'000, 300);
}

TEST(TestLoop, ShortLoopsThatAreLeftCostNoTrust) {
  Program p;
  p.earn_trust();
  for (int i = 0; i < 20; ++i) {
    p.test_for(10'000);
    ++p.events;  // other calls, and work
    p.now += 10'000;
  }
  p.test_for(60'000);
  EXPECT_TRUE(p.due());
}

TEST(TestLoop, OthersAreToldOfTestsInVainUntilSomethingIsFound) {
  Program p;
  const auto tells = [&p] {
    p.now += 120;
    const bool told = p.loop.tells_end(kLimits, p.now);
    p.loop.found();
    return told;
  };
  EXPECT_FALSE(tells()) << "it has not tested before";
  p.test_for(5'000);
  EXPECT_FALSE(tells());
  p.now += 50'000;
  EXPECT_FALSE(tells()) << "found at once";
  p.test_for(7'000);
  EXPECT_TRUE(tells());
  for (int i = 0; i < 8; ++i) p.test_in_vain(1'000);
  EXPECT_TRUE(tells()) << "with work in between";
}

TEST(TestLoop, WhoLeavesLoopsForSomethingElseWaitsUnseen) {
  Program p;
  EXPECT_TRUE(p.loop.waits_unseen()) << "nothing is known";
  p.earn_trust();
  EXPECT_FALSE(p.loop.waits_unseen());
  EXPECT_EQ(p.left, 0);
  p.test_for(20'000);
  p.now += 100'000;
  p.test_for(200'000);
  EXPECT_EQ(p.left, 0) << "a short one says nothing";
  for (int i = 1; i <= 3; ++i) {
    p.now += 100'000;
    p.test_for(200'000);
    EXPECT_EQ(p.left, i);
  }
  EXPECT_TRUE(p.loop.waits_unseen());
  p.earn_trust();
  EXPECT_FALSE(p.loop.waits_unseen());
}

TEST(TestLoop, IsNotDueBeforeItHasLasted) {
  Program p;
  p.earn_trust();
  p.test_for(40'000);
  EXPECT_FALSE(p.due());
  p.test_for(20'000);
  EXPECT_TRUE(p.due());
  p.find();
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, OfManyGapsAPartMayBeTooLong) {  // by what they may take together: work in between is no interrupt
  Program p;
  p.earn_trust();
  p.test_for(60'000);
  for (int i = 0; i < 2'000; ++i) p.test_in_vain(i % 100 == 99 ? 150 : 20);  // 1 in 120 of the time
  EXPECT_TRUE(p.due());
  for (int i = 0; i < 4'000; ++i) p.test_in_vain(i % 10 == 9 ? 450 : 20);  // 1 in 4
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, ALongGapMakesNoWorkOfShortOnes) {  // as they come in each loop, and it may have been an interrupt
  Program p;
  p.earn_trust();
  p.test_for(60'000);
  p.test_in_vain(200'000);
  p.test_for(60'000);
  EXPECT_EQ(p.left, 1) << "it takes more than its part of what is remembered";
  for (int i = 0; i < 2'000; ++i) p.test_in_vain(i % 100 == 99 ? 150 : 20);
  EXPECT_EQ(p.left, 1);
  EXPECT_TRUE(p.due());
}

TEST(TestLoop, SomeGapsOfAYoungOneMayBeALittleTooLong) {
  for (const auto& [every, due] : {std::pair{10, true}, std::pair{1, false}}) {  // 1 in 70 of the time, and 1 in 8
    Program p;
    p.earn_trust();
    for (int i = 0; i < 500; ++i) p.test_in_vain(i % every == every - 1 ? 68 : 20);
    EXPECT_EQ(p.due(), due) << every;
    EXPECT_EQ(p.left, 0);
  }
}

TEST(TestLoop, GapsOfAYoungOneCountTogether) {
  Program p;
  p.earn_trust();
  for (int i = 0; i < 110; ++i) p.test_in_vain();
  for (int i = 0; i < 400; ++i) p.test_in_vain(i % 10 == 9 ? 450 : 20);  // each is little beside what was before it
  EXPECT_FALSE(p.due());
  EXPECT_EQ(p.left, 0) << "it was none yet";
}

TEST(TestLoop, WhatThisRuntimeDoesExcusesNoLaterGaps) {
  Program p;
  p.earn_trust();
  p.test_for(60'000);
  ++p.events;
  p.test_in_vain(1'000);
  EXPECT_TRUE(p.due());
  for (int i = 0; i < 2'000; ++i) p.test_in_vain(i % 10 == 9 ? 1'000 : 20);
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, ShortOnesSayNothing) {
  Program p;
  for (int i = 0; i < 100; ++i) {
    p.test_for(20'000);
    EXPECT_FALSE(p.find());
  }
  p.test_for(200'000);
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, WhatIsLeftForAnotherReasonLosesTrust) {
  Program p;
  p.earn_trust();
  p.test_for(200'000);
  EXPECT_TRUE(p.due());
  for (int i = 0; i < 3; ++i, p.now += 100'000) p.test_for(200'000);
  p.test_for(200'000);
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, EachThatIsLeftCostsTheTrustOfFourFinds) {
  for (const int finds : {2, 7, 8}) {
    Program p;
    for (int i = 0; i < finds; ++i, p.now += 10'000) {
      p.test_for(200'000);
      EXPECT_TRUE(p.find());
    }
    p.test_for(200'000);
    EXPECT_FALSE(p.find(&kThere[1]));
    p.now += 10'000;
    p.test_for(200'000);
    EXPECT_EQ(p.due(), finds == 8) << finds;
  }
}

TEST(TestLoop, AGapThatAnInterruptMayBeCostsTheTrustOfOne) {
  for (const int gaps : {1, 4, 5}) {
    Program p;
    p.work_for_long();
    p.earn_trust();
    p.left = 0;
    for (int i = 0; i < gaps; ++i, p.now += 30'000) p.test_for(200'000);
    p.test_for(100'000);
    EXPECT_EQ(p.left, gaps);
    EXPECT_EQ(p.due(), gaps != 5) << gaps;
  }
}

TEST(TestLoop, SoDoesFindingSomethingElse) {
  Program p;
  p.earn_trust();
  for (int i = 0; i < 3; ++i) {
    p.test_for(200'000);
    EXPECT_FALSE(p.find(&kThere[2]));
  }
  p.test_for(200'000);
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, InterruptsMayTakeLongIfTheyTakeLittleOfAllLoops) {
  for (const auto& [wait, left] : {std::pair{4'000'000, false}, std::pair{1'000'000, true}}) {  // 1 in 40 of the time, and 1 in 10
    Program p;
    p.earn_trust();
    p.left = 0;
    for (int i = 0; i < 50; ++i) {
      p.test_for(static_cast<std::uint64_t>(wait / 2));
      p.now += 100'000;
      p.test_for(static_cast<std::uint64_t>(wait / 2));
      p.find();
    }
    EXPECT_EQ(p.left > 25, left) << wait;
    EXPECT_EQ(p.left == 0, !left) << wait;
  }
}

TEST(TestLoop, WhatTakesLongerThanInterruptsIsWork) {
  Program p;
  p.earn_trust();
  p.test_for(50'000'000);
  EXPECT_EQ(p.left, 0);
  p.now += 260'000;
  p.test_in_vain();
  EXPECT_EQ(p.left, 1);
}

TEST(TestLoop, OfLoopsInWhichItRestsInterruptsTakeAPartOfTheRest) {
  for (const bool rests : {false, true}) {
    Program p;
    p.work_for_long();
    p.earn_trust();
    p.left = 0;
    p.test_for(100'000);
    rests ? p.rest_for(100'000'000) : p.test_for(100'000'000);
    p.now += 50'000;
    p.test_in_vain();
    EXPECT_EQ(p.left, rests ? 1 : 0);
  }
}

TEST(TestLoop, WhoBeginsToWorkInLoopsIsSoonSeen) {
  Program p;
  for (int i = 0; i < 200; ++i) {
    p.test_for(1'000'000);
    p.find();
  }
  int works = 0;
  for (; works < 100 && !p.loop.waits_unseen(); ++works) {
    p.now += 100'000;
    p.test_for(200'000);
  }
  EXPECT_LT(works, 20);
}

TEST(TestLoop, LoopsThatAreOnlyCountedHaveInterruptsToo) {
  Program p;
  EXPECT_FALSE(p.loop.left_unseen(kLimits, 10'000, 60'000)) << "it may be an interrupt";
  EXPECT_TRUE(p.loop.left_unseen(kLimits, 10'000, 100'000));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(p.loop.left_unseen(kLimits, 10'000, 0));
  EXPECT_FALSE(p.loop.left_unseen(kLimits, 10'000, 100'000));
  EXPECT_TRUE(p.loop.left_unseen(kLimits, 10'000, 260'000));
}

TEST(TestLoop, WhatIsFoundAfterOtherWorkEndsNoWait) {
  Program p;
  for (int i = 0; i < 8; ++i) {
    p.test_in_vain();
    EXPECT_FALSE(p.find(&kHere, 3'000'000));
  }
  EXPECT_FALSE(p.loop.may_rest()) << "trust is earned by waits";
  p.earn_trust();
  p.test_for(200'000);
  EXPECT_FALSE(p.find(&kHere, 3'000'000));
  p.test_for(100'000);
  EXPECT_TRUE(p.loop.may_rest());
  p.earn_trust();
  for (int i = 0; i < 4; ++i) {
    p.test_for(200'000);
    EXPECT_FALSE(p.find(&kHere, 3'000'000));
  }
  EXPECT_FALSE(p.loop.may_rest()) << "left four times, for other work";
}

TEST(TestLoop, AnInterruptBeforeItIsFoundDoesNotMatter) {
  Program p;
  p.test_for(200'000);
  EXPECT_TRUE(p.find(&kHere, 3'000));
}

TEST(TestLoop, AloneATestIsNoneOfALoopBefore) {
  Program p;
  p.earn_trust();
  p.test_in_vain();
  const auto begins = [&p](std::uint64_t after) { return p.loop.goes_on(kLimits, p.now + after, p.events); };
  EXPECT_TRUE(begins(20));
  EXPECT_FALSE(begins(60));
  p.now += 3'000'000;
  EXPECT_TRUE(p.due());
  EXPECT_FALSE(begins(0)) << "it is due, but begins a loop";
  p.test_in_vain();
  EXPECT_FALSE(p.due());
  ++p.events;
  EXPECT_TRUE(begins(4'000));
  EXPECT_FALSE(begins(6'000));
  p.find();
  EXPECT_FALSE(begins(20));
}

TEST(TestLoop, OneThatTestsSeveralThingsMayFindAny) {
  Program p;
  for (int i = 0; i < 8; ++i, p.now += 10'000) {
    for (int k = 0; k < 1000; ++k) {
      p.test_in_vain();
      p.test_in_vain(20, &kThere[2]);
    }
    EXPECT_TRUE(p.find(i % 2 == 0 ? &kHere : &kThere[2]));
  }
  p.test_for(200'000);
  EXPECT_TRUE(p.due());
}

TEST(TestLoop, WhoWorksBetweenTestsIsInNone) {
  Program p;
  for (int i = 0; i < 100; ++i) {
    p.test_for(1'000'000, 80);
    EXPECT_FALSE(p.find());
  }
  p.test_for(1'000'000, 80);
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, WhoWorksAfterManyTestsIsLeft) {
  Program p;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 10; ++k, p.now += 10'000) p.test_for(100'000);
    p.find();
  }
  p.test_for(200'000);
  EXPECT_FALSE(p.due());
}

TEST(TestLoop, InterruptsDoNotEndIt) {
  Program p;
  for (int i = 0; i < 8; ++i, p.now += 100'000) {
    for (int k = 0; k < 10; ++k, p.now += 30'000) p.test_for(3'000'000);
    EXPECT_TRUE(p.find());
  }
  EXPECT_EQ(p.left, 0);
  p.test_for(200'000);
  EXPECT_TRUE(p.due());
}

TEST(TestLoop, NorWhatThisRuntimeDoesMeanwhile) {
  Program p;
  for (int i = 0; i < 8; ++i, p.now += 100'000) {
    for (int k = 0; k < 100; ++k, ++p.events) {
      p.test_for(64 * 120);
      p.now += 1'000;
    }
    EXPECT_TRUE(p.find());
  }
  EXPECT_EQ(p.left, 0);
}

TEST(TestLoop, RestsNoMoreInOneThatLastsManyTimesAsLong) {
  Program p;
  p.earn_trust();
  p.test_for(60'000);
  EXPECT_TRUE(p.loop.takes_up());
  std::uint64_t rested = 0;
  for (; p.loop.may_rest() && rested < 100'000'000; rested += 100'000) p.loop.rested(100'000);
  EXPECT_GE(rested, 1'000'000u);
  EXPECT_LE(rested, 3'000'000u);
  p.find();
  p.now += 10'000;
  p.test_for(60'000);
  EXPECT_TRUE(p.loop.may_rest()) << "the next one may rest again";
  EXPECT_TRUE(p.loop.takes_up()) << "which is another wait";
  EXPECT_FALSE(p.loop.takes_up());
}

TEST(TestLoop, OneShortLoopIsNotTheMeasureOfTheNext) {
  Program p;
  p.earn_trust();
  p.test_for(800'000);
  p.find();
  for (int i = 0; i < 2; ++i, p.find()) {
    p.now += 10'000;
    p.test_for(60'000);
  }
  p.test_for(60'000);
  p.loop.rested(2'000'000);
  EXPECT_TRUE(p.loop.may_rest());
}

}  // namespace
}  // namespace fallow::pmpi
