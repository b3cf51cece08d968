#include "pmpi/counted_calls.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "pmpi/test_places.hpp"

namespace fallow::pmpi {
namespace {

constexpr CountLimits kLimits{.slow = 2'000, .closest = 50, .nothing = 30, .long_enough = 30'000, .work = 0, .work_of_waiters = 0};
struct Counting {
  CountedCalls tests;
  std::uint64_t counted = 0, in_tests = 0, in_gaps = 0;

  explicit Counting(std::initializer_list<CallPlace> places = {place()}, bool by_trust = false) {
    tests.begin(std::vector<CallPlace>(places), kGap, by_trust);
  }
  /// Tests until one is to be recorded, at most `most`. Returns how many were counted.
  std::uint32_t take(std::uint32_t most = 1'000, const void* caller = &kHere, std::uint16_t op = kOp) {
    std::uint32_t n = 0;
    for (; n < most && tests.takes(op, caller); ++n) tests.take();
    return n;
  }
  CountedTime add(std::uint64_t ticks) {
    const CountedTime time = tests.divide(kLimits, ticks);
    for (const CallPlace& p : tests.places()) {
      counted += p.count;
      in_tests += p.count * p.lasts * time.calls / time.of;
      in_gaps += p.count * time.gap;
    }
    tests.close();
    return time;
  }
  void run(std::uint64_t gap = kGap, std::uint64_t lasts = kLasts) {
    const std::uint32_t n = take();
    add(n * (lasts + gap) + gap);
  }
};

TEST(CountedCalls, NoneAreUntilItBegins) {
  CountedCalls tests;
  EXPECT_FALSE(tests.on());
  EXPECT_FALSE(tests.takes(kOp, &kHere));
}

TEST(CountedCalls, WorkBetweenThemIsNotExplained) {
  Counting c({place()}, true);
  c.run();
  EXPECT_EQ(c.tests.unexplained(), 0U);
  const std::uint32_t n = c.take();
  c.add(n * (kLasts + kGap) + kGap + 100'000);
  EXPECT_EQ(c.tests.unexplained(), 100'000U);
  EXPECT_TRUE(c.tests.on()) << "once is not often";
  c.run();
  EXPECT_EQ(c.tests.unexplained(), 0U);
}

TEST(CountedCalls, NoneAreWithoutAPlace) {
  EXPECT_FALSE(Counting({}).tests.on());
}

TEST(CountedCalls, AllButOneOfManyAre) {
  Counting c;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(c.take(), CountedCalls::kAtATime);
    EXPECT_EQ(c.tests.open(), CountedCalls::kAtATime);
    c.add(CountedCalls::kAtATime * (kLasts + kGap) + kGap);
    EXPECT_EQ(c.tests.open(), 0U);
    EXPECT_TRUE(c.tests.on());
  }
  EXPECT_EQ(c.counted, 100 * CountedCalls::kAtATime);
}

TEST(CountedCalls, TheirTimeIsDividedAsThatOfThoseThatWereRecorded) {
  Counting c;
  c.run();
  EXPECT_EQ(c.in_tests, CountedCalls::kAtATime * kLasts);
  EXPECT_EQ(c.in_gaps, CountedCalls::kAtATime * kGap);
}

TEST(CountedCalls, TheyTakeNoLongerThanThereIsTime) {
  Counting c;
  c.take(10);
  c.add(500);
  EXPECT_EQ(c.in_tests, 500U);
  EXPECT_EQ(c.in_gaps, 0U);
  c.take(1);
  c.add(0);
  EXPECT_EQ(c.in_tests, 500U);
}

TEST(CountedCalls, AComputationBetweenTwoIsNotDividedAmongAll) {
  Counting c;
  c.take();
  c.add(1'000'000);
  EXPECT_EQ(c.in_tests, CountedCalls::kAtATime * kLasts);
  EXPECT_EQ(c.in_gaps, CountedCalls::kAtATime * kGap);
  EXPECT_TRUE(c.tests.on());
  c.take();
  c.add(1'000'000);
  EXPECT_FALSE(c.tests.on());  // it works more between them now
}

TEST(CountedCalls, GapsThatChangeLittleByLittleAreFollowed) {
  Counting c;
  std::uint64_t gaps = 0;
  for (const std::uint64_t gap : {100, 180, 300, 250, 90}) {
    c.run(gap);
    gaps += CountedCalls::kAtATime * gap;
    EXPECT_EQ(c.in_gaps, gaps) << gap;
  }
  EXPECT_TRUE(c.tests.on());
}

TEST(CountedCalls, WhatHappensNowAndThenDoesNotEndIt) {
  Counting odd, few;
  for (int i = 0; i < 20; ++i) {
    odd.take();
    odd.add(1'000'000);
    odd.run();
    for (int k = 0; k < 7; ++k) {
      few.take(3);
      few.add(3 * (kLasts + kGap));
    }
    few.run();
  }
  EXPECT_TRUE(odd.tests.on());
  EXPECT_TRUE(few.tests.on());
}

TEST(CountedCalls, PlacesAreCountedForThemselves) {
  CallPlace slow = place(kOther, &kThere);
  slow.lasts = 300;
  Counting c({place(), slow});
  EXPECT_EQ(c.take(20), 20U);
  EXPECT_EQ(c.take(10, &kThere, kOther), 10U);
  EXPECT_EQ(c.take(10, &kThere, kOp), 0U);
  EXPECT_EQ(c.tests.places()[0].count, 20U);
  EXPECT_EQ(c.tests.places()[1].count, 10U);
  c.add(1'000'000);
  EXPECT_EQ(c.in_tests, 20 * kLasts + 10 * 300);
}

TEST(CountedCalls, LoopsWithNothingBetweenTestsEndIt) {
  Counting c;
  c.run(kLimits.nothing + 5);
  EXPECT_TRUE(c.tests.on());
  c.run(kLimits.nothing - 5);
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedCalls, SoDoTestsThatTakeLessThanWithWorkBetweenThem) {
  Counting c;
  c.run(5, kLasts / 2);
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedCalls, ItTakesMoreToEndItOnceThatWasWrong) {
  Counting c;
  const auto spans_of_wait = [&] {
    int n = 0;
    for (; c.tests.on(); ++n) c.run(kLimits.nothing - 5);
    return n;
  };
  const CallPlace here[] = {place()};
  for (const int spans : {1, 2, 4, 8, 16, 16}) {
    EXPECT_EQ(spans_of_wait(), spans);
    c.tests.begin(here, kGap, false);
  }
  spans_of_wait();
  c.tests.was_wait();
  c.tests.begin(here, kGap, false);
  EXPECT_EQ(spans_of_wait(), 1);
}

TEST(CountedCalls, NotWhereLoopsAreLeftForWork) {
  Counting c({place()}, true);
  c.run(5);
  EXPECT_TRUE(c.tests.on());
}

TEST(CountedCalls, NotIfSomethingIsFoundAllTheTime) {
  Counting c;
  for (int i = 0; i < 4; ++i) {
    c.take(30);
    c.tests.end_run();
  }
  c.take();
  c.add(CountedCalls::kAtATime * kLasts);
  EXPECT_TRUE(c.tests.on());
}

TEST(CountedCalls, NorWhereOneSidedCallsAreBetween) {
  Counting c({place(), one_sided()});
  for (int i = 0; i < 4; ++i) {
    c.take(100);
    c.take(1, &kThere, kOther);
    c.take();
    c.add(CountedCalls::kAtATime * kLasts);
    EXPECT_TRUE(c.tests.on());
  }
}

TEST(CountedCalls, BurstsOfOneSidedCallsDoNotEndIt) {
  Counting c({one_sided()});
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t n = c.take(1'000, &kThere, kOther);
    ASSERT_EQ(n, CountedCalls::kAtATime);
    c.add(n * kLimits.slow - 1);
    EXPECT_TRUE(c.tests.on());
  }
  EXPECT_EQ(c.in_gaps, 4 * CountedCalls::kAtATime * kGap);  // the computation is before the call that is recorded
}

TEST(CountedCalls, ButComputationsBetweenThemDo) {
  Counting c({one_sided()});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(c.tests.on());
    c.take(1'000, &kThere, kOther);
    c.add(CountedCalls::kAtATime * kLimits.slow + 1);
  }
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedCalls, BytesAreThoseSinceTheTotalsWereMade) {
  Counting c({place(), one_sided()});
  for (int i = 0; i < 3; ++i) {
    c.take(1);
    c.take(1, &kThere, kOther);
    c.tests.now().bytes += 8;
  }
  EXPECT_EQ(c.tests.places()[0].bytes, 0U);
  EXPECT_EQ(c.tests.places()[1].bytes, 24U);
  c.add(6 * kLasts);
  EXPECT_EQ(c.tests.places()[1].bytes, 0U);
}

TEST(CountedCalls, ACallThatIsRecordedAfterAllIsNotCounted) {
  Counting c({one_sided()});
  c.take(10, &kThere, kOther);
  c.tests.untake();
  EXPECT_EQ(c.tests.open(), 9U);
  c.add(9 * (kLasts + kGap));
  EXPECT_EQ(c.counted, 9U);
  EXPECT_EQ(c.tests.now().caller, &kThere);
}

TEST(CountedCalls, WhereMostAreRecordedAfterAllItEnds) {
  Counting c({one_sided()});
  for (int i = 0; i < 20 && c.take(2, &kThere, kOther) == 2; ++i) {
    c.tests.untake();
    c.add(2 * (kLasts + kGap));
  }
  EXPECT_FALSE(c.tests.on());
  EXPECT_EQ(c.take(1, &kThere, kOther), 0U) << "the next is to be recorded, which looks whether any are to be counted";
}

TEST(CountedCalls, ItPaysIfManyMoreAreCountedThanRecorded) {
  Counting c;
  constexpr std::uint32_t kRecorded = 8;
  EXPECT_FALSE(c.tests.pays(kRecorded));
  c.run();
  EXPECT_FALSE(c.tests.pays(kRecorded));  // 127 to 8
  c.run();
  c.take(1);
  EXPECT_TRUE(c.tests.pays(kRecorded));  // 128 to 8, one of which is not in the totals yet
  EXPECT_FALSE(c.tests.pays(kRecorded));
}

TEST(CountedCalls, PlacesAreFoundInAnyOrder) {
  const int callers[CountedCalls::kPlaces] = {};
  std::vector<CallPlace> places;
  for (const int& caller : callers) places.push_back(place(kOp, &caller));
  CountedCalls tests;
  tests.begin(places, kGap, false);
  for (const std::size_t i : {0, 1, 7, 7, 3, 2, 6, 0, 5}) {
    ASSERT_TRUE(tests.takes(kOp, &callers[i])) << i;
    tests.take();
  }
  EXPECT_TRUE(tests.on());
  EXPECT_FALSE(tests.takes(kOp, &kHere));
  EXPECT_EQ(tests.places()[7].count, 2U);
}

TEST(CountedCalls, ThoseAsTheLastOneCountAtItsPlace) {
  Counting c({place(), one_sided()});
  c.take(1);
  c.take(1, &kThere, kOther);
  LastCall& last = c.tests.last();
  last.bytes = 8;
  last.received = 3;
  for (int i = 0; i < 5; ++i) {
    CallPlace& test = *c.tests.turn();
    EXPECT_EQ(test.caller, &kHere);
    EXPECT_TRUE(c.tests.repeat(test, true));
    EXPECT_EQ(c.tests.run(), 1U);
    CallPlace& message = *c.tests.turn();
    EXPECT_EQ(message.caller, &kThere);
    EXPECT_TRUE(c.tests.repeat(message, false));
    EXPECT_EQ(c.tests.run(), 0U);
  }
  EXPECT_EQ(c.tests.open(), 12U);
  EXPECT_EQ(c.tests.useful(), 6U);
  c.tests.divide(kLimits, 12 * (kLasts + kGap) + kGap);
  const std::span<CallPlace> places = c.tests.places();
  EXPECT_EQ(places[0].count, 6U);
  EXPECT_EQ(places[0].bytes + places[0].received, 0U);
  EXPECT_EQ(places[1].count, 6U);
  EXPECT_EQ(places[1].bytes, 5 * 8U);
  EXPECT_EQ(places[1].received, 5 * 3U);
  c.tests.close();
  EXPECT_EQ(c.tests.open(), 0U);
  EXPECT_EQ(places[1].received, 0U);
}

TEST(CountedCalls, WhatTheyWereAboutChanges) {
  Counting c({one_sided()});
  c.take(1, &kThere, kOther);
  for (const std::uint64_t bytes : {8, 16}) {
    c.tests.last().bytes = bytes;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(c.tests.repeat(*c.tests.turn(), false));
  }
  c.tests.divide(kLimits, 7 * (kLasts + kGap));
  EXPECT_EQ(c.tests.places()[0].bytes, 3 * 8U + 3 * 16U);
}

TEST(CountedCalls, TheLastOfManyIsTakenAsAnyOther) {
  Counting c;
  c.take(1);
  std::uint32_t n = 1;
  while (c.tests.repeat(*c.tests.turn(), true)) ++n;
  EXPECT_EQ(n, CountedCalls::kAtATime - 1);
  EXPECT_EQ(c.tests.open(), n);
  EXPECT_EQ(c.take(), 1U);
  EXPECT_EQ(c.tests.turn(), nullptr) << "the next is to be recorded";
  c.add(CountedCalls::kAtATime * (kLasts + kGap) + kGap);
  EXPECT_EQ(c.counted, CountedCalls::kAtATime);
  EXPECT_NE(c.tests.turn(), nullptr);
  c.tests.stop();
  EXPECT_EQ(c.tests.turn(), nullptr);
}

TEST(CountedCalls, WhoseTurnItIsIsLearnt) {
  const int third = 0;
  Counting c({place(), one_sided(), place(kOp, &third)});
  c.take(1);
  EXPECT_EQ(c.tests.turn()->caller, &kThere) << "they come in turns, as a rule";
  c.take(1, &third);
  EXPECT_EQ(c.tests.turn()->caller, &kHere);
  c.take(1);
  EXPECT_EQ(c.tests.turn()->caller, &third);
  EXPECT_FALSE(c.tests.takes(kOp, &kThere));
  EXPECT_EQ(c.tests.turn()->caller, &third) << "a call at no place changes nothing";
}

TEST(LastCall, ArgumentsAreComparedInTheirOwnWidth) {
  EXPECT_TRUE(is_given(as_given(-1), -1));
  EXPECT_FALSE(is_given(as_given(-1), 1));
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_TRUE(is_given(as_given(large + 5), large + 5));
  EXPECT_FALSE(is_given(as_given(large + 5), std::int64_t{5}));
  EXPECT_TRUE(is_given(as_given(&kHere), &kHere));
  EXPECT_FALSE(is_given(as_given(&kHere), &kThere));
}

TEST(CountedCalls, TestsInVainAreOfNoUse) {
  Counting c({place(), one_sided()});
  c.take(20);
  EXPECT_EQ(c.tests.useful(), 0U);
  EXPECT_EQ(c.tests.run(), 20U);
  c.tests.found();
  c.tests.end_run();
  c.take(7);
  EXPECT_EQ(c.tests.run(), 7U);
  c.take(2, &kThere, kOther);
  EXPECT_EQ(c.tests.useful(), 3U);
  EXPECT_EQ(c.tests.run(), 0U);
  c.add(29 * (kLasts + kGap) + kGap);
  EXPECT_EQ(c.tests.useful(), 0U);
}

TEST(CountedCalls, SlowTestsEndIt) {
  Counting c;
  for (int i = 0; i < 3; ++i) c.run(kLimits.slow);
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedCalls, SoDoFewBetweenOtherCalls) {
  Counting c;
  for (int i = 0; i < 7; ++i) {
    c.take(3);
    c.add(3 * (kLasts + kGap));
  }
  EXPECT_TRUE(c.tests.on());
  c.take(3);
  c.add(3 * (kLasts + kGap));
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedCalls, ItEndsNowAndThenToSeeHowLongTestsLast) {
  Counting c;
  int spans = 0;
  for (; c.tests.on() && spans < 10'000; ++spans) c.run();
  EXPECT_GT(spans, 100);
  EXPECT_LT(spans, 1'000);
}

TEST(CountedCalls, ARunLastsFromTheLastFind) {
  Counting c;
  c.take(100);
  EXPECT_EQ(c.tests.run_lasted(), 100 * kLasts);
  EXPECT_EQ(c.tests.end_run(), 100 * kLasts);
  EXPECT_EQ(c.tests.end_run(), 0U);
  c.take(5);
  EXPECT_EQ(c.tests.end_run(), 5 * kLasts);
  EXPECT_EQ(CountedCalls{}.run_lasted(), 0U);
}

TEST(CountedCalls, AnotherCommunicatorIsCountedForItself) {
  Counting c;
  c.take(10);
  c.tests.untake();
  EXPECT_EQ(c.tests.open(), 9U);
  c.add(9 * (kLasts + kGap));
  EXPECT_EQ(c.counted, 9U);
  c.tests.move(4);
  EXPECT_EQ(c.tests.now().comm, 4);
  EXPECT_EQ(c.tests.open(), 1U);
  c.add(kLasts);
  EXPECT_EQ(c.counted, 10U);
}

TEST(CountedCalls, IfTheyTakeTurnsItEnds) {
  Counting c;
  for (std::uint16_t comm = 0; comm < 4; ++comm) {
    c.take(20);
    c.tests.untake();
    c.add(19 * (kLasts + kGap));
    c.tests.move(comm);
  }
  EXPECT_EQ(c.take(), 0U);
  c.add(kLasts);
  EXPECT_FALSE(c.tests.on());
}

}  // namespace
}  // namespace fallow::pmpi
