#include "pmpi/call_sample.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "pmpi/test_places.hpp"

namespace fallow::pmpi {
namespace {

/// Calls that are recorded, one after the other.
struct Recorded {
  CallSample sample{20, 40};
  std::uint64_t now = 1'000;

  bool call(const CallPlace& where, std::uint64_t gap = kGap, std::uint64_t lasts = kLasts + 20) {
    RecordedCall test;
    test.place = where;
    test.enter = now + gap;
    now = test.exit = test.enter + lasts;
    return sample.add(test);
  }
  std::vector<CallPlace> places() const {
    std::array<CallPlace, CountedCalls::kPlaces> storage;
    const std::span<const CallPlace> found = sample.places(storage);
    return {found.begin(), found.end()};
  }
};

TEST(CallSample, TellsWhereTestsAreMadeAndHowLongTheyLast) {
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

TEST(CallSample, PlacesOfFewTestsAreLeftOut) {
  Recorded r;
  for (int i = 0; i < 100; ++i) r.call(place());
  for (int i = 0; i < 5; ++i) r.call(place(kOther, &kThere));
  EXPECT_EQ(r.places().size(), 1U);
}

TEST(CallSample, OddTestsDoNotCount) {
  for (const int odd : {0, 10, 98}) {
    Recorded r;
    for (int i = 0; i < 99; ++i) r.call(place(), kGap, i == odd ? 50'000 : kLasts + (i % 2 == 0 ? 10 : 30));
    EXPECT_EQ(r.places()[0].lasts, kLasts) << odd;
  }
}

TEST(CallSample, ATestLastsATickAtLeast) {
  Recorded r;
  for (int i = 0; i < 100; ++i) r.call(place(), kGap, 5);  // less than what a reading of the clock took before
  EXPECT_EQ(r.places()[0].lasts, 1U);
}

TEST(CallSample, OfNoCallsSaysNothing) {
  const Recorded r;
  EXPECT_EQ(r.sample.pace(), 0U);
  EXPECT_EQ(r.sample.gap(), 0U);
  EXPECT_TRUE(r.places().empty());
}

TEST(CallSample, ItIsCloseWithoutWorkBetweenMostOfThem) {
  for (const int close : {20, 30}) {
    Recorded r;
    for (int i = 0; i < 100; ++i) r.call(place(), i < close ? 40 : 41);
    EXPECT_EQ(r.sample.is_close(), close == 30);
  }
}

TEST(CallSample, OneSidedCallsAreNoWaits) {
  for (const int one_sided_calls : {24, 25}) {
    Recorded r;
    for (int i = 0; i < 100; ++i) r.call(i < one_sided_calls ? one_sided() : place(), 0);
    EXPECT_EQ(r.sample.is_close(), one_sided_calls == 24);
  }
}

TEST(CallSample, TheyLastAsLongAsTheirSizes) {
  Recorded r;
  for (int i = 0; i < 100; ++i) r.call(one_sided(), kGap, i % 2 == 0 ? 20 + 50 : 20 + 350);
  EXPECT_EQ(r.places()[0].lasts, 200U);
}

TEST(CallSample, OtherCallsAndManyPlacesAreAllRecorded) {
  Recorded other;
  int n = 0;
  while (n < 1'000 && other.call(CallPlace{})) ++n;
  EXPECT_GT(n, 1);
  EXPECT_LT(n, 32);
  Recorded many;
  const char places[1'000] = {};
  n = 0;
  while (n < 1'000 && many.call(place(kOp, &places[n]))) ++n;
  EXPECT_GT(n, static_cast<int>(CountedCalls::kPlaces));
  EXPECT_LT(n, 32);
}

TEST(CallSample, SoAreTestsOnSeveralCommunicators) {
  Recorded r;
  EXPECT_TRUE(r.call(place(kOp, &kHere, 1)));
  EXPECT_FALSE(r.call(place(kOp, &kHere, 2)));
}

}  // namespace
}  // namespace fallow::pmpi
