#include "pmpi/test_loop.hpp"

#include <gtest/gtest.h>

#include "pmpi/test_loop_program.hpp"

namespace fallow::pmpi {
namespace {

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

TEST(TestLoop, AloneATestIsNoneOfALoopBefore) {
  Program p;
  p.earn_trust();
  p.test_in_vain();
  const auto begins = [&p](std::uint64_t after) { return p.loop.goes_on(kLimits, p.now + after, p.events); };
  EXPECT_TRUE(begins(20));
  EXPECT_FALSE(begins(260));
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
