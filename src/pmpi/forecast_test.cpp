#include "pmpi/forecast.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace fallow::pmpi {
namespace {

/// Makes calls at times of its own choice; ticks are as long as the machine's.
class Rank {
 public:
  explicit Rank(double budget = 0.01) { forecast.open(clock, slot, budget, this); }

  /// Computes, then is in a call from this place; `wait` of it is only waited. Returns the forecast's key.
  std::uint64_t call(int place, double gap_us, double wait_us = 0.0) {
    now += ticks(gap_us);
    const CallNow call{now, &places[place * 64], static_cast<std::uint16_t>(place)};
    const std::uint64_t key = wait_us > 0 ? forecast.enter(call) : 0;
    now += ticks(wait_us + 1.0);
    forecast.learn(call, now, ticks(wait_us));
    if (matters_after(place)) forecast.promise();
    return key;
  }
  /// A loop in which a long gap comes after the second of two calls.
  void repeat(int times) {
    for (int i = 0; i < times; ++i) {
      call(1, 1000);
      call(2, 3);
    }
  }
  bool matters_after(int place) const { return forecast.matters_after(&places[place * 64]); }
  std::uint64_t ticks(double us) const { return clock.to_ticks(us * 1e3); }
  double rest_us() const {
    const std::uint64_t until = slot.rest_until.load();
    return until == 0 ? 0.0 : clock.to_ns(until - now) * 1e-3;
  }

  TickClock clock;
  NodeSlot slot;
  Forecast forecast;
  char places[512] = {};
  std::uint64_t now = clock.now() + ticks(1000);
};

TEST(Forecast, ALongGapThatRepeatsIsPublishedWithItsEnd) {
  const auto rank = std::make_unique<Rank>();
  for (int i = 0; i < 200; ++i) {
    rank->call(1, 1000);
    EXPECT_LT(rank->rest_us(), 10.0);
    rank->call(2, 3);
    if (i >= 50) {
      EXPECT_GT(rank->rest_us(), 900.0);
      EXPECT_LT(rank->rest_us(), 1000.0);
    }
  }
}

TEST(Forecast, AGapTooShortToRestInIsNotPublished) {  // of more ticks than nanoseconds, as a rule
  const auto rank = std::make_unique<Rank>();
  for (int i = 0; i < 100; ++i) rank->call(1, 15);
  rank->forecast.promise();
  EXPECT_EQ(rank->rest_us(), 0.0);
}

TEST(Forecast, TheFirstCallMayHaveBegunBeforeIt) {  // MPI_Init has, in which it is opened
  const auto rank = std::make_unique<Rank>();
  rank->now -= rank->ticks(50e3);
  rank->call(3, 0, 60e3);
  rank->repeat(100);
  EXPECT_GT(rank->rest_us(), 900.0);
  EXPECT_LT(rank->rest_us(), 1000.0);
}

TEST(Forecast, ACallThatComesEarlyAndWaitsTakesThePromiseBack) {
  const auto rank = std::make_unique<Rank>();
  rank->repeat(100);
  EXPECT_GT(rank->rest_us(), 900.0);
  rank->now += rank->ticks(100);
  rank->forecast.enter({rank->now, &rank->places[64], 1});
  EXPECT_EQ(rank->rest_us(), 0.0);
}

TEST(Forecast, OnlyPlacesThatLongGapsFollowMatter) {
  const auto rank = std::make_unique<Rank>(0.0);  // no delay allowed: nothing is promised
  EXPECT_FALSE(rank->matters_after(1));
  rank->repeat(3);
  EXPECT_FALSE(rank->matters_after(1));
  EXPECT_TRUE(rank->matters_after(2));
  for (int i = 0; i < 7; ++i) rank->call(2, 3);
  EXPECT_TRUE(rank->matters_after(2));
  for (int i = 0; i < 2; ++i) rank->call(2, 3);
  EXPECT_FALSE(rank->matters_after(2));
}

TEST(Forecast, CallsThatWentByLeaveNoGapAndNoPromiseBehind) {
  const auto rank = std::make_unique<Rank>();
  rank->repeat(100);
  EXPECT_GT(rank->rest_us(), 900.0);
  rank->now += rank->ticks(1e6);
  rank->forecast.withdraw();
  rank->forecast.pass_over();
  EXPECT_EQ(rank->rest_us(), 0.0);
  rank->call(3, 1000);
  EXPECT_FALSE(rank->matters_after(3));
  for (int i = 0; i < 100; ++i) {  // what it knows of the loop is still there, after a gap that it has not seen whole
    rank->call(1, 1000);
    rank->call(2, 3);
  }
  EXPECT_GT(rank->rest_us(), 900.0);
}

TEST(Forecast, WhatIsLearntOutsideOfWaitsIsRationed) {
  const auto rank = std::make_unique<Rank>();
  const std::uint64_t start = rank->clock.now();  // what was earned until now is not known exactly
  rank->forecast.affords(0, start);
  while (rank->forecast.affords(1, start)) {
  }
  EXPECT_FALSE(rank->forecast.affords(10, start + rank->ticks(2000)));
  EXPECT_TRUE(rank->forecast.affords(10, start + rank->ticks(2080)));
  EXPECT_FALSE(rank->forecast.affords(1, start + rank->ticks(2080)));
  EXPECT_TRUE(rank->forecast.affords(500, start + rank->ticks(1e6)));
  EXPECT_FALSE(rank->forecast.affords(500, start + rank->ticks(1e6)));  // no more than a burst was saved
}

TEST(Forecast, WaitsAtOnePlaceAreToldApartByTheCallsBefore) {
  const auto rank = std::make_unique<Rank>();
  std::uint64_t after_exchange = 0, after_sum = 0;
  for (int i = 0; i < 400; ++i) {
    rank->call(1, 50);
    after_exchange = rank->call(2, 20, 1500);
    after_sum = rank->call(2, 20, 40);
  }
  EXPECT_NE(after_exchange, 0u);
  EXPECT_NE(after_exchange, after_sum);
}

TEST(Forecast, WaitsOfDifferentCallsAtOnePlaceAreToldApart) {
  const auto rank = std::make_unique<Rank>();
  const auto enter = [&](std::uint16_t op) {
    const CallNow call{rank->now, rank->places, op};
    const std::uint64_t key = rank->forecast.enter(call);
    rank->forecast.learn(call, rank->now += 1000, 0);
    return key;
  };
  EXPECT_NE(enter(1), enter(2));
}

TEST(Forecast, ACallBeginsToWaitOnce) {
  const auto rank = std::make_unique<Rank>();
  const CallNow call{rank->now, rank->places, 1};
  EXPECT_NE(rank->forecast.enter(call), 0u);
  EXPECT_EQ(rank->forecast.enter(call), 0u);
  rank->forecast.pass_over();
  EXPECT_NE(rank->forecast.enter(call), 0u) << "that was another call";
  rank->forecast.learn(call, rank->now + 1000, 0);
  EXPECT_NE(rank->forecast.enter(call), 0u) << "so was that";
}

TEST(Forecast, NothingIsPaidForRestsAfterASilenceWhichNobodyTakes) {
  const auto rank = std::make_unique<Rank>(3e-4);
  char elsewhere[400] = {};
  for (char& place : elsewhere) {  // gaps that come once
    const CallNow call{rank->now, &place, 1};
    rank->forecast.learn(call, rank->now += rank->ticks(1), 0);
    rank->now += rank->ticks(20e3);
  }
  rank->repeat(5);
  EXPECT_GT(rank->rest_us(), 900.0) << "there is enough left for a rest that is foreseen";
}

TEST(Forecast, AWaitPublishesItsEndAndTheCallAfterItTakesItBack) {
  const auto rank = std::make_unique<Rank>(0.0);  // no delay allowed: gaps are not rested in
  rank->call(1, 1000);
  rank->forecast.wait_until(rank->now + rank->ticks(70));
  EXPECT_NEAR(rank->rest_us(), 70.0, 0.1);
  EXPECT_TRUE(rank->matters_after(3));
  rank->call(1, 100);
  EXPECT_EQ(rank->rest_us(), 0.0);
}

TEST(Forecast, BelongsToNobodyUntilOpened) {
  const auto forecast = std::make_unique<Forecast>();
  int somebody = 0;
  EXPECT_FALSE(forecast->belongs_to(&somebody));
  const auto rank = std::make_unique<Rank>();
  EXPECT_TRUE(rank->forecast.belongs_to(rank.get()));
  EXPECT_FALSE(rank->forecast.belongs_to(&somebody));
  rank->forecast.close();
  EXPECT_FALSE(rank->forecast.belongs_to(rank.get()));
}

}  // namespace
}  // namespace fallow::pmpi
