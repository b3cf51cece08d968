#include "pmpi/prepared_requests.hpp"

#include <gtest/gtest.h>

using fallow::pmpi::Prepared;
using fallow::pmpi::PreparedRequests;

TEST(PreparedRequests, KnowsWhatWasMadeUntilItIsFreed) {
  PreparedRequests prepared;
  EXPECT_FALSE(prepared.any());
  EXPECT_EQ(prepared.find(7), nullptr);
  prepared.made(7, {70, 1, 100, 0});
  prepared.made(8, {80, 2, 0, 200});
  EXPECT_TRUE(prepared.any());
  ASSERT_NE(prepared.find(7), nullptr);
  EXPECT_EQ(prepared.find(7)->comm, 70u);
  EXPECT_EQ(prepared.find(7)->sent, 100u);
  prepared.freed(7);
  EXPECT_EQ(prepared.find(7), nullptr) << "its handle may be another request's by now";
  ASSERT_NE(prepared.find(8), nullptr);
  EXPECT_EQ(prepared.find(8)->received, 200u);
  EXPECT_EQ(prepared.find(0), nullptr) << "of no request";
}

TEST(PreparedRequests, TheLastOfAHandleCounts) {
  PreparedRequests prepared;
  prepared.made(7, {70, 1, 100, 0});
  prepared.made(7, {71, 2, 50, 0});
  ASSERT_NE(prepared.find(7), nullptr);
  EXPECT_EQ(prepared.find(7)->sent, 50u);
  prepared.freed(7);
  EXPECT_EQ(prepared.find(7), nullptr);
}

TEST(PreparedRequests, IsTheSameUnderAnotherHandle) {
  PreparedRequests prepared;
  prepared.made(7, {70, 1, 100, 0});
  prepared.moved(7, 9);
  EXPECT_EQ(prepared.find(7), nullptr);
  ASSERT_NE(prepared.find(9), nullptr);
  EXPECT_EQ(prepared.find(9)->sent, 100u);
  prepared.moved(8, 10);
  EXPECT_EQ(prepared.find(10), nullptr);
}

TEST(PreparedRequests, TakesFreedPlacesAgain) {
  PreparedRequests prepared;
  for (std::uint64_t i = 1; i <= 100'000; ++i) {
    prepared.made(i * 64, {10 * i, 0, i, 0});
    ASSERT_NE(prepared.find(i * 64), nullptr);
    EXPECT_EQ(prepared.find(i * 64)->sent, i);
    prepared.freed(i * 64);
  }
}

TEST(PreparedRequests, LeavesOutWhatIsTooMuch) {
  PreparedRequests prepared;
  std::uint64_t known = 0, told = 0;
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) told += prepared.made(0x7f0000000000 + 192 * i, Prepared{i, 0, 0, 0}) ? 1 : 0;
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) known += prepared.find(0x7f0000000000 + 192 * i) != nullptr ? 1 : 0;
  EXPECT_EQ(told, known);
  EXPECT_GT(known, 100'000u);
  EXPECT_LE(known, 8u * (256 + 2048 + 16384));
}

TEST(PreparedRequests, MakesRoomForManyAndKeepsWhatItHas) {
  PreparedRequests prepared;
  const auto handle = [](std::uint64_t i) { return 0x7f0000000000 + 192 * i; };
  prepared.made(handle(0), {1, 0, 5, 0});
  const Prepared* const first = prepared.find(handle(0));
  for (std::uint64_t i = 1; i < 50'000; ++i) prepared.made(handle(i), {1, 0, i, 0});
  EXPECT_EQ(prepared.find(handle(0)), first) << "another thread may be looking at it";
  for (std::uint64_t i = 1; i < 50'000; ++i) {
    ASSERT_NE(prepared.find(handle(i)), nullptr) << i;
    EXPECT_EQ(prepared.find(handle(i))->sent, i);
    prepared.freed(handle(i));
    EXPECT_EQ(prepared.find(handle(i)), nullptr) << i;
  }
}

TEST(PreparedRequests, HasRoomForThoseOfManyNeighbours) {
  PreparedRequests prepared;
  for (std::uint64_t i = 0; i < 512; ++i) prepared.made(0x98000000 + i, Prepared{1, 0, i + 1, 0});
  for (std::uint64_t i = 0; i < 512; ++i) EXPECT_NE(prepared.find(0x98000000 + i), nullptr) << i;
}
