#include "pmpi/aftermath.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kPlace = std::uint64_t{9} << 58, kSameEntry = kPlace + 1;
constexpr double kLeast = 10e3;

void learn(Aftermath& aftermath, int calls, double awake_ns, double slept_ns) {
  for (int i = 0; i < calls; ++i) {
    aftermath.learn(kPlace, awake_ns, false);
    aftermath.learn(kPlace, slept_ns, true);
  }
}

TEST(Aftermath, IsTheLeastUntilItIsKnown) {
  Aftermath aftermath;
  EXPECT_EQ(aftermath.slower_by(kPlace, kLeast), kLeast);
  learn(aftermath, 3, 70e3, 140e3);
  EXPECT_EQ(aftermath.slower_by(kPlace, kLeast), kLeast);
}

TEST(Aftermath, IsByHowMuchTransfersAreSlower) {
  Aftermath aftermath;
  learn(aftermath, 20, 70e3, 140e3);
  EXPECT_NEAR(aftermath.slower_by(kPlace, kLeast), 70e3, 1.0);
  EXPECT_EQ(aftermath.slower_by(kSameEntry, kLeast), kLeast);
}

TEST(Aftermath, IsNeverLessThanTheLeast) {
  Aftermath aftermath;
  learn(aftermath, 20, 140e3, 70e3);
  EXPECT_EQ(aftermath.slower_by(kPlace, kLeast), kLeast);
}

TEST(Aftermath, IsNotKnownFromOneKindAlone) {
  for (const bool slept : {false, true}) {
    Aftermath aftermath;
    for (int i = 0; i < 20; ++i) aftermath.learn(kPlace, 140e3, slept);
    EXPECT_EQ(aftermath.slower_by(kPlace, kLeast), kLeast);
  }
}

TEST(Aftermath, OutgrowsFirstTransfersThatTookNoTime) {
  Aftermath aftermath;
  aftermath.learn(kPlace, 0, false);
  aftermath.learn(kPlace, 0, true);
  learn(aftermath, 200, 70e3, 140e3);
  EXPECT_NEAR(aftermath.slower_by(kPlace, kLeast), 70e3, 5e3);
}

TEST(Aftermath, FollowsChangesAndBearsInterruptions) {
  Aftermath aftermath;
  learn(aftermath, 20, 70e3, 140e3);
  aftermath.learn(kPlace, 50e6, true);
  EXPECT_LT(aftermath.slower_by(kPlace, kLeast), 90e3);
  learn(aftermath, 100, 70e3, 100e3);
  EXPECT_NEAR(aftermath.slower_by(kPlace, kLeast), 30e3, 3e3);
}

TEST(Aftermath, APlaceForgetsTheOneItShares) {
  Aftermath aftermath;
  learn(aftermath, 20, 70e3, 140e3);
  aftermath.learn(kSameEntry, 1e3, true);
  EXPECT_EQ(aftermath.slower_by(kPlace, kLeast), kLeast);
}

}  // namespace
}  // namespace fallow::pmpi
