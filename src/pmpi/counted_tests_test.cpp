#include "pmpi/counted_tests.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace fallow::pmpi {
namespace {

constexpr CountLimits kLimits{.slow = 2'000, .nothing = 30, .long_enough = 30'000, .work = 0, .work_of_waiters = 0};
constexpr std::uint16_t kOp = 7, kOther = 8;
constexpr std::uint64_t kLasts = 100, kGap = 60;
const int kHere = 0, kThere = 0;

TestPlace place(std::uint16_t op = kOp, const void* caller = &kHere, std::uint16_t comm = 3) {
  TestPlace p;
  p.caller = caller;
  p.op = op;
  p.comm = comm;
  p.lasts = kLasts;
  return p;
}

struct Counting {
  CountedTests tests;
  std::uint64_t counted = 0, in_tests = 0, in_gaps = 0;

  explicit Counting(std::initializer_list<TestPlace> places = {place()}, bool by_trust = false) {
    tests.begin(std::vector<TestPlace>(places), kGap, by_trust);
  }
  /// Tests until one is to be recorded, at most `most`. Returns how many were counted.
  std::uint32_t take(std::uint32_t most = 1'000, const void* caller = &kHere, std::uint16_t op = kOp) {
    std::uint32_t n = 0;
    while (n < most && tests.takes(op, caller)) ++n;
    return n;
  }
  CountedTime add(std::uint64_t ticks) {
    const CountedTime time = tests.divide(kLimits, ticks);
    for (const TestPlace& p : tests.places()) {
      counted += p.count;
      in_tests += p.count * p.lasts * time.tests / time.of;
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

TEST(CountedTests, NoneAreUntilItBegins) {
  CountedTests tests;
  EXPECT_FALSE(tests.on());
  EXPECT_FALSE(tests.takes(kOp, &kHere));
}

TEST(CountedTests, AllButOneOfManyAre) {
  Counting c;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(c.take(), CountedTests::kAtATime);
    EXPECT_EQ(c.tests.open(), CountedTests::kAtATime);
    c.add(CountedTests::kAtATime * (kLasts + kGap) + kGap);
    EXPECT_EQ(c.tests.open(), 0U);
    EXPECT_TRUE(c.tests.on());
  }
  EXPECT_EQ(c.counted, 100 * CountedTests::kAtATime);
}

TEST(CountedTests, TheirTimeIsDividedAsThatOfThoseThatWereRecorded) {
  Counting c;
  c.run();
  EXPECT_EQ(c.in_tests, CountedTests::kAtATime * kLasts);
  EXPECT_EQ(c.in_gaps, CountedTests::kAtATime * kGap);
}

TEST(CountedTests, TheyTakeNoLongerThanThereIsTime) {
  Counting c;
  c.take(10);
  c.add(500);
  EXPECT_EQ(c.in_tests, 500U);
  EXPECT_EQ(c.in_gaps, 0U);
  c.take(1);
  c.add(0);
  EXPECT_EQ(c.in_tests, 500U);
}

TEST(CountedTests, AComputationBetweenTwoIsNotDividedAmongAll) {
  Counting c;
  c.take();
  c.add(1'000'000);
  EXPECT_EQ(c.in_tests, CountedTests::kAtATime * kLasts);
  EXPECT_EQ(c.in_gaps, CountedTests::kAtATime * kGap);
  EXPECT_TRUE(c.tests.on());
  c.take();
  c.add(1'000'000);
  EXPECT_FALSE(c.tests.on());  // it works more between them now
}

TEST(CountedTests, PlacesAreCountedForThemselves) {
  TestPlace slow = place(kOther, &kThere);
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

TEST(CountedTests, LoopsWithNothingBetweenTestsEndIt) {
  Counting c;
  c.run(kLimits.nothing + 5);
  EXPECT_TRUE(c.tests.on());
  c.run(kLimits.nothing - 5);
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedTests, SoDoTestsThatTakeLessThanWithWorkBetweenThem) {
  Counting c;
  c.run(5, kLasts / 2);
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedTests, ItTakesMoreToEndItOnceThatWasWrong) {
  Counting c;
  const auto spans_of_wait = [&] {
    int n = 0;
    for (; c.tests.on(); ++n) c.run(kLimits.nothing - 5);
    return n;
  };
  const TestPlace here[] = {place()};
  for (const int spans : {1, 2, 4, 8, 16, 16}) {
    EXPECT_EQ(spans_of_wait(), spans);
    c.tests.begin(here, kGap, false);
  }
  spans_of_wait();
  c.tests.was_wait();
  c.tests.begin(here, kGap, false);
  EXPECT_EQ(spans_of_wait(), 1);
}

TEST(CountedTests, NotWhereLoopsAreLeftForWork) {
  Counting c({place()}, true);
  c.run(5);
  EXPECT_TRUE(c.tests.on());
}

TEST(CountedTests, NotIfSomethingIsFoundAllTheTime) {
  Counting c;
  for (int i = 0; i < 4; ++i) {
    c.take(30);
    c.tests.end_run();
  }
  c.take();
  c.add(CountedTests::kAtATime * kLasts);
  EXPECT_TRUE(c.tests.on());
}

TEST(CountedTests, SlowTestsEndIt) {
  Counting c;
  for (int i = 0; i < 3; ++i) c.run(kLimits.slow);
  EXPECT_FALSE(c.tests.on());
}

TEST(CountedTests, SoDoFewBetweenOtherCalls) {
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

TEST(CountedTests, ItEndsNowAndThenToSeeHowLongTestsLast) {
  Counting c;
  int spans = 0;
  for (; c.tests.on() && spans < 10'000; ++spans) c.run();
  EXPECT_GT(spans, 100);
  EXPECT_LT(spans, 1'000);
}

TEST(CountedTests, ARunLastsFromTheLastFind) {
  Counting c;
  c.take(100);
  EXPECT_EQ(c.tests.run_lasted(), 100 * kLasts);
  EXPECT_EQ(c.tests.end_run(), 100 * kLasts);
  EXPECT_EQ(c.tests.end_run(), 0U);
  c.take(5);
  EXPECT_EQ(c.tests.end_run(), 5 * kLasts);
  EXPECT_EQ(CountedTests{}.run_lasted(), 0U);
}

TEST(CountedTests, AnotherCommunicatorIsCountedForItself) {
  Counting c;
  c.take(10);
  c.tests.untake();
  c.add(9 * (kLasts + kGap));
  EXPECT_EQ(c.counted, 9U);
  c.tests.move(4);
  EXPECT_EQ(c.tests.now().comm, 4);
  EXPECT_EQ(c.tests.open(), 1U);
  c.add(kLasts);
  EXPECT_EQ(c.counted, 10U);
}

TEST(CountedTests, IfTheyTakeTurnsItEnds) {
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

/// Calls that are recorded, one after the other.
struct Recorded {
  TestSample sample{20, 40};
  std::uint64_t now = 1'000;

  bool call(const TestPlace& where, std::uint64_t gap = kGap, std::uint64_t lasts = kLasts + 20) {
    RecordedTest test;
    test.place = where;
    test.enter = now + gap;
    now = test.exit = test.enter + lasts;
    return sample.add(test);
  }
  std::vector<TestPlace> places() const {
    std::array<TestPlace, CountedTests::kPlaces> storage;
    const std::span<const TestPlace> found = sample.places(storage);
    return {found.begin(), found.end()};
  }
};

TEST(TestSample, TellsWhereTestsAreMadeAndHowLongTheyLast) {
  Recorded r;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(r.call(place()));
    if (i % 5 == 0) {
      EXPECT_TRUE(r.call(place(kOther, &kThere, 0), kGap, 320));
    }
  }
  ASSERT_EQ(r.places().size(), 2U);
  EXPECT_EQ(r.places()[0].lasts, kLasts);
  EXPECT_EQ(r.places()[0].comm, 3);
  EXPECT_EQ(r.places()[1].op, kOther);
  EXPECT_EQ(r.places()[1].lasts, 300U);
  EXPECT_EQ(r.sample.gap(), kGap);
  EXPECT_NEAR(static_cast<double>(r.sample.pace()), kGap + 20 + (100 * kLasts + 20 * 300) / 120.0, 2);
  EXPECT_FALSE(r.sample.is_close());
}

TEST(TestSample, PlacesOfFewTestsAreLeftOut) {
  Recorded r;
  for (int i = 0; i < 100; ++i) r.call(place());
  for (int i = 0; i < 5; ++i) r.call(place(kOther, &kThere));
  EXPECT_EQ(r.places().size(), 1U);
}

TEST(TestSample, OddTestsDoNotCount) {
  for (const int odd : {0, 10}) {
    Recorded r;
    for (int i = 0; i < 100; ++i) r.call(place(), kGap, i == odd ? 50'000 : kLasts + 20);
    EXPECT_EQ(r.places()[0].lasts, kLasts);
  }
}

TEST(TestSample, ItIsCloseWithoutWorkBetweenMostOfThem) {
  for (const int close : {20, 30}) {
    Recorded r;
    for (int i = 0; i < 100; ++i) r.call(place(), i < close ? 40 : 41);
    EXPECT_EQ(r.sample.is_close(), close == 30);
  }
}

TEST(TestSample, OtherCallsAndManyPlacesAreAllRecorded) {
  Recorded other;
  int n = 0;
  while (n < 1'000 && other.call(TestPlace{})) ++n;
  EXPECT_LT(n, 32);
  Recorded many;
  const char places[1'000] = {};
  n = 0;
  while (n < 1'000 && many.call(place(kOp, &places[n]))) ++n;
  EXPECT_LT(n, 32);
}

TEST(TestSample, SoAreTestsOnSeveralCommunicators) {
  Recorded r;
  EXPECT_TRUE(r.call(place(kOp, &kHere, 1)));
  EXPECT_FALSE(r.call(place(kOp, &kHere, 2)));
}

}  // namespace
}  // namespace fallow::pmpi
