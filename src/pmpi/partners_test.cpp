#include "pmpi/partners.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

namespace fallow::pmpi {
namespace {

using Ranks = std::set<std::int32_t>;

std::vector<Ranks> partners_of_all(std::int32_t n) {
  std::vector<Ranks> partners(static_cast<std::size_t>(n));
  for (std::int32_t me = 0; me < n; ++me) {
    each_partner(me, n, [&](std::int32_t rank) { partners[static_cast<std::size_t>(me)].insert(rank); });
  }
  return partners;
}

/// Whether two ranks are each other's partners, or one of them is the root, which need not look for those that wait for it.
bool are_partners(const std::vector<Ranks>& partners, std::int32_t a, std::int32_t b) {
  const auto has = [&](std::int32_t x, std::int32_t y) { return x == 0 || partners[static_cast<std::size_t>(x)].contains(y); };
  return a == b || (has(a, b) && has(b, a));
}

TEST(Partners, AreRanksOfTheCommunicatorAndFew) {
  for (std::int32_t n = 1; n <= 130; ++n) {
    for (const Ranks& some : partners_of_all(n)) {
      if (some.empty()) {
        EXPECT_EQ(n, 1);
        continue;
      }
      EXPECT_GE(*some.begin(), 0);
      EXPECT_LT(*some.rbegin(), n);
      EXPECT_LE(some.size(), 24U + 6 * std::bit_width(static_cast<unsigned>(n)));
    }
  }
}

TEST(Partners, AreThoseOfRingsDisseminationAndRecursiveDoubling) {
  for (std::int32_t n = 2; n <= 130; ++n) {
    const auto partners = partners_of_all(n);
    for (std::int32_t me = 0; me < n; ++me) {
      EXPECT_FALSE(partners[static_cast<std::size_t>(me)].contains(me));
      EXPECT_TRUE(me == 0 || partners[static_cast<std::size_t>(me)].contains(0)) << "the usual root";
      for (std::int32_t distance = 1; distance < n; distance *= 2) {
        EXPECT_TRUE(partners[static_cast<std::size_t>(me)].contains((me + distance) % n)) << me << " of " << n;
        EXPECT_TRUE(partners[static_cast<std::size_t>((me + distance) % n)].contains(me)) << me << " of " << n;
        EXPECT_TRUE((me ^ distance) >= n || are_partners(partners, me, me ^ distance)) << me << " of " << n;
      }
    }
  }
}

/// In a tree of k branches each rank has its parent where the lowest digit of its number to the base k that is not 0 is 0 instead.
TEST(Partners, AreThoseOfTreesOfSeveralBranches) {
  for (const std::int32_t branches : {2, 4}) {
    for (std::int32_t n = 2; n <= 130; ++n) {
      const auto partners = partners_of_all(n);
      for (std::int32_t me = 1; me < n; ++me) {
        std::int32_t place = 1;
        while (me / place % branches == 0) place *= branches;
        const std::int32_t parent = me - me / place % branches * place;
        EXPECT_TRUE(are_partners(partners, me, parent)) << me << " of " << n << " in a tree of " << branches;
      }
    }
  }
}

TEST(Partners, AreAllOfASmallCommunicator) {
  for (std::int32_t n = 2; n <= 9; ++n) {
    for (const Ranks& some : partners_of_all(n)) EXPECT_GE(some.size(), static_cast<std::size_t>(n - 1)) << n;
  }
}

}  // namespace
}  // namespace fallow::pmpi
