#include "pmpi/trust.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

TEST(Trust, IsLentOrEarned) {
  EXPECT_TRUE(Trust(0.5, 0.0).holds());
  Trust earned(0.1, 1.0);
  EXPECT_FALSE(earned.holds());
  for (int i = 0; i < 30; ++i) earned.tell(true);
  EXPECT_TRUE(earned.holds());
  earned.tell(false);
  EXPECT_FALSE(earned.holds());
}

TEST(Trust, OutlastsAFewEndsThatNobodyTold) {
  Trust trust(0.5, 0.0);
  for (int i = 0; i < 5; ++i) {
    trust.tell(false);
    EXPECT_TRUE(trust.holds());
  }
  trust.tell(false);
  EXPECT_FALSE(trust.holds());
  trust.tell(true);
  EXPECT_TRUE(trust.holds());
}

TEST(Trust, HoldsWhereOneEndInThreeIsNotTold) {
  Trust trust(0.5, 0.0);
  for (int i = 0; i < 300; ++i) {
    trust.tell(i % 3 != 0);
    EXPECT_TRUE(trust.holds());
  }
}

}  // namespace
}  // namespace fallow::pmpi
