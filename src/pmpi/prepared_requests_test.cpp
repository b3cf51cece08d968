#include "pmpi/prepared_collectives.hpp"

#include <gtest/gtest.h>

using fallow::pmpi::PreparedCollectives;

TEST(PreparedCollectives, KnowsWhatWasMadeUntilItIsFreed) {
  PreparedCollectives prepared;
  EXPECT_FALSE(prepared.any());
  EXPECT_EQ(prepared.comm_of(7), 0u);
  prepared.made(7, 70);
  prepared.made(8, 80);
  EXPECT_TRUE(prepared.any());
  EXPECT_EQ(prepared.comm_of(7), 70u);
  prepared.freed(7);
  EXPECT_EQ(prepared.comm_of(7), 0u) << "its handle may be another request's by now";
  EXPECT_EQ(prepared.comm_of(8), 80u);
}

TEST(PreparedCollectives, TakesFreedPlacesAgain) {
  PreparedCollectives prepared;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    prepared.made(i, 10 * i);
    EXPECT_EQ(prepared.comm_of(i), 10 * i);
    prepared.freed(i);
  }
}

TEST(PreparedCollectives, LeavesOutWhatIsTooMuch) {
  PreparedCollectives prepared;
  for (std::uint64_t i = 1; i <= 1000; ++i) prepared.made(i, 10 * i);
  EXPECT_EQ(prepared.comm_of(1), 10u);
  EXPECT_EQ(prepared.comm_of(1000), 0u);
}
