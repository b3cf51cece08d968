// Gaps between tests that are longer than the loop has: interrupts, other threads, this runtime, or work.

#include <gtest/gtest.h>

#include "pmpi/test_loop_program.hpp"

namespace fallow::pmpi {
namespace {

TEST(TestLoopGaps, OfManyGapsAPartMayBeTooLong) {  // by what they may take together: work in between is no interrupt
  Program p;
  p.earn_trust();
  p.test_for(60'000);
  for (int i = 0; i < 2'000; ++i) p.test_in_vain(i % 100 == 99 ? 150 : 20);  // 1 in 120 of the time
  EXPECT_TRUE(p.due());
  for (int i = 0; i < 4'000; ++i) p.test_in_vain(i % 10 == 9 ? 450 : 20);  // 1 in 4
  EXPECT_FALSE(p.due());
}

TEST(TestLoopGaps, ALongGapMakesNoWorkOfShortOnes) {  // as they come in each loop, and it may have been an interrupt
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

TEST(TestLoopGaps, SomeGapsOfAYoungOneMayBeALittleTooLong) {
  for (const auto& [every, due] : {std::pair{10, true}, std::pair{1, false}}) {  // 1 in 70 of the time, and 1 in 8
    Program p;
    p.earn_trust();
    for (int i = 0; i < 500; ++i) p.test_in_vain(i % every == every - 1 ? 68 : 20);
    EXPECT_EQ(p.due(), due) << every;
    EXPECT_EQ(p.left, 0);
  }
}

TEST(TestLoopGaps, GapsOfAYoungOneCountTogether) {
  Program p;
  p.earn_trust();
  for (int i = 0; i < 110; ++i) p.test_in_vain();
  for (int i = 0; i < 400; ++i) p.test_in_vain(i % 10 == 9 ? 450 : 20);  // each is little beside what was before it
  EXPECT_FALSE(p.due());
  EXPECT_EQ(p.left, 0) << "it was none yet";
}

TEST(TestLoopGaps, WhatThisRuntimeDoesExcusesNoLaterGaps) {
  Program p;
  p.earn_trust();
  p.test_for(60'000);
  ++p.events;
  p.test_in_vain(1'000);
  EXPECT_TRUE(p.due());
  for (int i = 0; i < 2'000; ++i) p.test_in_vain(i % 10 == 9 ? 1'000 : 20);
  EXPECT_FALSE(p.due());
}

TEST(TestLoopGaps, AGapThatAnInterruptMayBeCostsTheTrustOfOne) {
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

TEST(TestLoopGaps, SmallGapsAreNoneOfTheInterrupts) {
  Program p;
  p.work_for_long();
  p.earn_trust();
  p.test_for(200'000);
  p.now += 30'000;  // more than interrupts may take by now
  p.test_for(200'000);
  p.left = 0;
  for (int i = 0; i < 100; ++i) {
    p.test_in_vain(60);
    p.test_for(5'000);
  }
  EXPECT_EQ(p.left, 0);
  EXPECT_TRUE(p.due());
}

TEST(TestLoopGaps, SmallGapsBetweenAllTestsAreWork) {
  Program p;
  p.earn_trust();
  p.test_for(1'000'000);
  p.left = 0;
  p.test_for(5'000'000, 120);
  EXPECT_GE(p.left, 1);
  EXPECT_FALSE(p.due());
}

TEST(TestLoopGaps, WhatTheRuntimeDoesBetweenTestsIsNoGap) {
  for (const bool told : {true, false}) {
    Program p;
    p.work_for_long();
    p.earn_trust();
    p.left = 0;
    for (int i = 0; i < 20; ++i) {
      p.test_for(10'000);
      const std::uint64_t exit = p.now;
      p.now += 6'000;
      ++p.events;
      if (told) p.loop.resume(exit, p.now);
    }
    p.test_for(10'000);
    EXPECT_EQ(p.due(), told);
  }
}

TEST(TestLoopGaps, WhatWasDoneBeforeItsLastTestDoesNotResumeIt) {
  Program p;
  p.earn_trust();
  p.test_for(100'000);
  p.loop.resume(p.now - 1'000, p.now + 500'000);
  p.now += 500'000;
  p.left = 0;
  p.test_in_vain();
  EXPECT_EQ(p.left, 1);
}

TEST(TestLoopGaps, ATestAfterASmallGapIsOneOfTheLoop) {
  Program p;
  p.earn_trust();
  p.test_for(100'000);
  EXPECT_TRUE(p.loop.goes_on(kLimits, p.now + 250, p.events));
  EXPECT_FALSE(p.loop.goes_on(kLimits, p.now + 251, p.events));
}

TEST(TestLoopGaps, InterruptsMayTakeLongIfTheyTakeLittleOfAllLoops) {
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

TEST(TestLoopGaps, WhatTakesLongerThanInterruptsIsWork) {
  Program p;
  p.earn_trust();
  p.test_for(50'000'000);
  EXPECT_EQ(p.left, 0);
  p.now += 260'000;
  p.test_in_vain();
  EXPECT_EQ(p.left, 1);
}

TEST(TestLoopGaps, OfLoopsInWhichItRestsInterruptsTakeAPartOfTheRest) {
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

TEST(TestLoopGaps, LoopsThatAreOnlyCountedHaveInterruptsToo) {
  Program p;
  EXPECT_FALSE(p.loop.left_unseen(kLimits, 10'000, 60'000)) << "it may be an interrupt";
  EXPECT_TRUE(p.loop.left_unseen(kLimits, 10'000, 100'000));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(p.loop.left_unseen(kLimits, 10'000, 0));
  EXPECT_FALSE(p.loop.left_unseen(kLimits, 10'000, 100'000));
  EXPECT_TRUE(p.loop.left_unseen(kLimits, 10'000, 260'000));
}

TEST(TestLoopGaps, AnInterruptBeforeItIsFoundDoesNotMatter) {
  Program p;
  p.test_for(200'000);
  EXPECT_TRUE(p.find(&kHere, 3'000));
}

TEST(TestLoopGaps, InterruptsDoNotEndIt) {
  Program p;
  for (int i = 0; i < 8; ++i, p.now += 100'000) {
    for (int k = 0; k < 10; ++k, p.now += 30'000) p.test_for(3'000'000);
    EXPECT_TRUE(p.find());
  }
  EXPECT_EQ(p.left, 0);
  p.test_for(200'000);
  EXPECT_TRUE(p.due());
}

TEST(TestLoopGaps, NorWhatThisRuntimeDoesMeanwhile) {
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

}  // namespace
}  // namespace fallow::pmpi
