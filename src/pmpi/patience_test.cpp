#include "pmpi/patience.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kPlace = 0x9e3779b97f4a7c15u, kOther = 0x1e3779b97f4a7c15u, kSameEntry = kPlace + 1;

void short_waits(Patience& patience, std::uint64_t place, int count, std::uint64_t polls) {
  for (int i = 0; i < count; ++i) patience.short_wait(place, polls);
}

TEST(Patience, ComesAfterSomeShortWaitsInARow) {
  Patience patience;
  short_waits(patience, kPlace, 7, 100);
  EXPECT_EQ(patience.polls(kPlace), 0u);
  short_waits(patience, kPlace, 1, 100);
  EXPECT_EQ(patience.polls(kPlace), 200u);
  EXPECT_EQ(patience.polls(kOther), 0u);
}

TEST(Patience, EndsWithALongWait) {
  Patience patience;
  short_waits(patience, kPlace, 20, 100);
  patience.long_wait(kOther);
  EXPECT_EQ(patience.polls(kPlace), 200u);
  patience.long_wait(kPlace);
  EXPECT_EQ(patience.polls(kPlace), 0u);
  short_waits(patience, kPlace, 7, 100);
  EXPECT_EQ(patience.polls(kPlace), 0u);
}

TEST(Patience, FollowsTheLongestOfTheLatestWaits) {
  Patience patience;
  short_waits(patience, kPlace, 8, 100);
  patience.short_wait(kPlace, 400);
  EXPECT_EQ(patience.polls(kPlace), 800u);
  short_waits(patience, kPlace, 100, 100);
  EXPECT_EQ(patience.polls(kPlace), 200u);
}

TEST(Patience, PlacesThatShareAnEntryDoNotBorrowFromEachOther) {
  Patience patience;
  short_waits(patience, kPlace, 20, 100);
  EXPECT_EQ(patience.polls(kSameEntry), 0u);
  patience.short_wait(kSameEntry, 5);
  EXPECT_EQ(patience.polls(kPlace), 0u);
  patience.long_wait(kPlace);  // another's entry by now
  short_waits(patience, kSameEntry, 7, 5);
  EXPECT_EQ(patience.polls(kSameEntry), 10u);
}

TEST(Patience, IsBounded) {
  Patience patience;
  short_waits(patience, kPlace, 8, ~std::uint64_t{0});
  EXPECT_EQ(patience.polls(kPlace), 100'000u);
}

}  // namespace
}  // namespace fallow::pmpi
