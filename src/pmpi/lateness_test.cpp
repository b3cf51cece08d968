#include "pmpi/lateness.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kLong = 200;

TEST(Lateness, NothingIsKnownAtFirst) {
  Lateness late;
  EXPECT_EQ(late.take().ticks, 0u);
  EXPECT_DOUBLE_EQ(late.lasting_share(), 0.5);
}

TEST(Lateness, IsJudgedOnceTheNextWaitIsOver) {
  Lateness late;
  late.open(1000, 40, 30);
  EXPECT_EQ(late.take().ticks, 0u);  // not answered yet
  late.answer(1100, 500, kLong);
  const Lateness::Delay d = late.take();
  EXPECT_EQ(d.from, 1000u);
  EXPECT_EQ(d.to, 1350u);
  EXPECT_EQ(d.ticks, 40u);
  EXPECT_EQ(d.good, 40u);
  EXPECT_EQ(d.paid, 30u);
  EXPECT_TRUE(d.clearly);
  EXPECT_EQ(late.take().ticks, 0u);
}

TEST(Lateness, TheNextDelayDoesNotDisturbTheOneToJudge) {
  Lateness late;
  late.open(1000, 40, 40);
  late.answer(1100, 500, kLong);
  late.open(1600, 7, 7);
  EXPECT_EQ(late.take().ticks, 40u);
  late.answer(1700, 5, kLong);
  const Lateness::Delay d = late.take();
  EXPECT_EQ(d.ticks, 7u);
  EXPECT_EQ(d.good, 5u);
  EXPECT_FALSE(d.clearly);
}

TEST(Lateness, OnlyAWaitMuchLongerThanTheDelayOrLongInItselfIsClear) {
  const auto clearly = [](std::uint64_t ticks, std::uint64_t wait) {
    Lateness late;
    late.open(1000, ticks, ticks);
    late.answer(2000, wait, kLong);
    return late.take().clearly;
  };
  EXPECT_TRUE(clearly(10, 80));
  EXPECT_FALSE(clearly(10, 79));
  EXPECT_TRUE(clearly(100, 200));
  EXPECT_FALSE(clearly(100, 199));
  EXPECT_FALSE(clearly(300, 250));  // shorter than the delay
}

TEST(Lateness, OldDelaysAreForgotten) {
  Lateness late;
  for (int i = 0; i < 100; ++i) late.learn(40, 0);
  EXPECT_NEAR(late.lasting_share(), 1.0, 1e-4);
  late.learn(40, 10);
  EXPECT_LT(late.lasting_share(), 1.0);
  for (int i = 0; i < 200; ++i) late.learn(40, 40);
  EXPECT_LT(late.lasting_share(), 0.01);
}

TEST(Lateness, CostsNobodyAnythingWhereNobodyWaitedAndIsPaidBackWhereThatIsClear) {
  Lateness::Delay d{.ticks = 100, .good = 60, .paid = 80, .clearly = false};
  EXPECT_EQ(Lateness::verdict(d, false).good, 60u);
  EXPECT_EQ(Lateness::verdict(d, false).back, 0u) << "what seems made good by a short wait may not be";
  d.good = 100;
  d.clearly = true;
  EXPECT_EQ(Lateness::verdict(d, false).good, 100u);
  EXPECT_EQ(Lateness::verdict(d, false).back, 80u);
  EXPECT_EQ(Lateness::verdict(d, true).good, 0u);
  EXPECT_EQ(Lateness::verdict(d, true).back, 0u);
}

}  // namespace
}  // namespace fallow::pmpi
