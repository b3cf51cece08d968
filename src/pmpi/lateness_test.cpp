#include "pmpi/lateness.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

TEST(Lateness, NothingIsKnownAtFirst) {
  const Lateness late;
  EXPECT_FALSE(late.is_open());
  EXPECT_DOUBLE_EQ(late.lasting_share(), 0.5);
}

TEST(Lateness, TheNextWaitMakesGoodAsMuchAsItLasts) {
  Lateness late;
  late.open(1000, 40, 40);
  EXPECT_TRUE(late.is_open());
  EXPECT_EQ(late.due(), 1000u);
  EXPECT_EQ(late.paid(), 40u);
  EXPECT_EQ(late.made_good_by(500), 40u);
  EXPECT_FALSE(late.is_open());
  EXPECT_NEAR(late.lasting_share(), 0.0, 1e-4);
  late.open(2000, 40, 40);
  EXPECT_EQ(late.made_good_by(10), 10u);
  EXPECT_NEAR(late.lasting_share(), 30.0 / 80.0, 0.02);
}

TEST(Lateness, ADelayThatOthersWaitedForIsNotMadeGood) {
  Lateness late;
  late.open(1000, 40, 40);
  late.lasts();
  EXPECT_FALSE(late.is_open());
  EXPECT_EQ(late.paid(), 0u);
  EXPECT_EQ(late.made_good_by(500), 0u);
  EXPECT_NEAR(late.lasting_share(), 1.0, 1e-4);
}

TEST(Lateness, OldDelaysAreForgotten) {
  Lateness late;
  for (int i = 0; i < 100; ++i) {
    late.open(1000, 40, 40);
    late.lasts();
  }
  for (int i = 0; i < 200; ++i) {
    late.open(1000, 40, 40);
    EXPECT_EQ(late.made_good_by(1000), 40u);
  }
  EXPECT_LT(late.lasting_share(), 0.01);
}

TEST(Lateness, AWaitThatWasOnTimeTellsNothing) {
  Lateness late;
  late.open(1000, 0, 0);
  EXPECT_EQ(late.made_good_by(500), 0u);
  EXPECT_DOUBLE_EQ(late.lasting_share(), 0.5);
}

}  // namespace
}  // namespace fallow::pmpi
