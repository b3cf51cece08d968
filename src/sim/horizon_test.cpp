#include "sim/horizon.hpp"

#include <gtest/gtest.h>

#include <random>

namespace fallow::sim {
namespace {

TEST(Horizon, IsTheEarliestOfWhatHasNotHappened) {
  Horizon h;
  EXPECT_EQ(h.earliest(0), kNever);
  h.add(100, 400);
  h.add(150, 250);
  h.add(300, 500);
  EXPECT_EQ(h.earliest(100), 250);
  EXPECT_EQ(h.earliest(150), 250);  // what happens at 150 has not happened before 150
  EXPECT_EQ(h.earliest(151), 500);  // neither has what is at 300; what was at 100 is over, though it reaches less far
  h.add(310, 410);
  EXPECT_EQ(h.earliest(300), 410);
  EXPECT_EQ(h.earliest(311), kNever);
}

TEST(Horizon, AgreesWithAListOfAll) {
  struct Held {
    Time event, earliest;
  };
  std::mt19937 random(1);
  Horizon h;
  std::vector<Held> all;
  Time done = 0;
  for (int i = 0; i < 2000; ++i) {
    const Time event = done + static_cast<Time>(random() % 500);
    all.push_back({event, event + 100 + static_cast<Time>(random() % 3) * 100});
    h.add(all.back().event, all.back().earliest);
    if (i % 3 != 0) continue;
    done += static_cast<Time>(random() % 200);
    Time expected = kNever;
    for (const Held& held : all) {
      if (held.event >= done) expected = std::min(expected, held.earliest);
    }
    ASSERT_EQ(h.earliest(done), expected) << done;
  }
}

}  // namespace
}  // namespace fallow::sim
