// What waiting hides of a lag, and what it does not.
#include "sim/lags.hpp"

#include <gtest/gtest.h>

namespace fallow::sim {
namespace {

TEST(Lags, AreHiddenByWaitingForSomethingElse) {
  EXPECT_EQ(Lags::joined(100, 30, 200, 0), 0);    // the other comes later anyway
  EXPECT_EQ(Lags::joined(200, 30, 100, 0), 30);   // nobody was waited for
  EXPECT_EQ(Lags::joined(200, 30, 180, 0), 20);   // else the other would have been waited for, for 10
  EXPECT_EQ(Lags::joined(200, 30, 200, 30), 30);  // both lag alike
  EXPECT_EQ(Lags::joined(100, 50, 120, 10), 10);
}

TEST(Lags, DoNotDependOnOrder) {
  for (const Time a : {100, 150, 200}) {
    for (const Time b : {90, 150, 210}) {
      EXPECT_EQ(Lags::joined(a, 40, b, 7), Lags::joined(b, 7, a, 40));
      const Time both = Lags::joined(a, 40, b, 7);
      EXPECT_EQ(Lags::joined(std::max(a, b), both, 160, 20), Lags::joined(a, 40, std::max<Time>(b, 160), Lags::joined(b, 7, 160, 20)));
    }
  }
}

TEST(Lags, OfMessagesAreNotHiddenByLinks) {
  Lags lags;
  lags.message(1) = 30;
  lags.take(0, 1, 0, 100, 100);  // a free link
  EXPECT_EQ(lags.message(1), 30);
  EXPECT_EQ(lags.link(0), 30);
  lags.message(2) = 0;
  lags.take(0, 2, 120, 110, 120);  // behind it: but for that, the link had been free from 90 on
  EXPECT_EQ(lags.message(2), 10);
  lags.message(3) = 40;
  lags.take(7, 3, 150, 100, 150);  // behind one that does not lag
  EXPECT_EQ(lags.message(3), 40);
  lags.message(4) = 0;
  lags.take(8, 4, 0, 100, 125);  // the link had to wake
  EXPECT_EQ(lags.message(4), 25);
}

TEST(Lags, TellTheMostOfANodesRanks) {
  Lags lags;
  lags.rank(5) = 3;
  lags.rank(6) = 9;
  EXPECT_EQ(lags.most(4, 6), 3);
  EXPECT_EQ(lags.most(4, 8), 9);
  EXPECT_EQ(lags.most(100, 104), 0);
}

}  // namespace
}  // namespace fallow::sim
