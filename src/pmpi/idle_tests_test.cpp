#include "pmpi/idle_tests.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

TEST(IdleTests, OfAnUnknownCallEachMayHaveDoneSomething) {
  IdleTests tests;
  int idle = 0;
  for (int i = 0; i < 15; ++i) idle += tests.is_idle(3, 20) ? 1 : 0;
  EXPECT_EQ(idle, 0);
  EXPECT_TRUE(tests.is_idle(3, 20));
}

TEST(IdleTests, SoBesideOurs) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) tests.is_idle(3, 20);
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(tests.is_idle_beside_ours(3, 200));
  EXPECT_FALSE(tests.knows_beside_ours(3));
  EXPECT_TRUE(tests.is_idle_beside_ours(3, 200));
  EXPECT_TRUE(tests.knows_beside_ours(3));
  EXPECT_FALSE(tests.knows_beside_ours(67)) << "a call that has the same place";
}

TEST(IdleTests, BesideOursLongerThanTheShortestIsUsual) {
  IdleTests tests;
  const auto lasts = [](int i) { return 150u + static_cast<unsigned>(i * 37 % 200); };  // 150 to 349
  for (int i = 0; i < 100; ++i) tests.is_idle_beside_ours(3, lasts(i));
  int idle = 0;
  for (int i = 100; i < 300; ++i) idle += tests.is_idle_beside_ours(3, lasts(i)) ? 1 : 0;
  EXPECT_EQ(idle, 200);
  EXPECT_FALSE(tests.is_idle_beside_ours(3, 700));
}

TEST(IdleTests, WhereMostMoveSomethingThatIsNotUsual) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) tests.is_idle_beside_ours(3, 200);
  int idle = 0;
  for (int i = 0; i < 1000; ++i) idle += tests.is_idle_beside_ours(3, i % 16 == 0 ? 200 : 5000) ? 1 : 0;
  EXPECT_EQ(idle, 63);
}

TEST(IdleTests, BesideOursFollowsTestsThatBecomeSlower) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) tests.is_idle_beside_ours(3, 200);
  bool idle = false;
  for (int i = 0; i < 1000; ++i) idle = tests.is_idle_beside_ours(3, 5000);
  EXPECT_TRUE(idle);
}

TEST(IdleTests, WhatLastsLongerMayHaveSentSomething) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) tests.is_idle(3, 20 + static_cast<unsigned>(i) % 10);
  EXPECT_TRUE(tests.is_idle(3, 40));
  EXPECT_TRUE(tests.is_idle(3, 95)) << "no message is sent in 60 ns more";
  EXPECT_FALSE(tests.is_idle(3, 200));
  EXPECT_TRUE(tests.is_idle(3, 25)) << "one that did is no measure";
}

TEST(IdleTests, CallsAreToldApart) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) {
    tests.is_idle(3, 20);
    tests.is_idle(4, 2000);
  }
  EXPECT_TRUE(tests.is_idle(4, 2000));
  EXPECT_FALSE(tests.is_idle(3, 2000));
  EXPECT_TRUE(tests.is_idle(4, 4000));
  EXPECT_FALSE(tests.is_idle(4, 4100)) << "twice as long, and a message more";
}

TEST(IdleTests, ACallThatTakesAnothersPlaceIsNotMeasuredByIt) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) tests.is_idle(3, 20);
  for (int i = 0; i < 100; ++i) tests.is_idle(67, 2000);
  EXPECT_TRUE(tests.is_idle(67, 2000));
}

TEST(IdleTests, FollowsTestsThatBecomeSlower) {
  IdleTests tests;
  for (int i = 0; i < 100; ++i) tests.is_idle(3, 20);
  bool idle = false;
  for (int i = 0; i < 100000; ++i) idle = tests.is_idle(3, 500);
  EXPECT_TRUE(idle);
}

}  // namespace
}  // namespace fallow::pmpi
