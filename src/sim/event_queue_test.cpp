#include "sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <queue>
#include <random>

namespace fallow::sim {
namespace {

TEST(EventQueue, GivesTheSameOrderAsAHeap) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    EventQueue queue;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> heap;
    Time now = 0;
    std::uint32_t count = 0;
    for (int i = 0; i < 20000; ++i) {
      if (random() % 3 != 0 || heap.empty()) {
        const int scale = static_cast<int>(random() % 45);  // from the same picosecond to half a minute ahead
        const Time ahead = static_cast<Time>(random() & ((std::uint64_t{1} << scale) - 1));
        const Event e{now + ahead, tie_of(static_cast<std::uint32_t>(random() % 50), static_cast<std::uint32_t>(random() % 50), count++)};
        queue.push(e);
        heap.push(e);
      } else {
        Event e;
        ASSERT_TRUE(queue.pop(e));
        ASSERT_EQ(e.time, heap.top().time);
        ASSERT_EQ(e.tie, heap.top().tie);
        now = e.time;
        heap.pop();
      }
    }
    Event e;
    for (; !heap.empty(); heap.pop()) {
      ASSERT_TRUE(queue.pop(e));
      ASSERT_EQ(e.tie, heap.top().tie);
    }
    ASSERT_FALSE(queue.pop(e));
    ASSERT_EQ(queue.size(), 0u);
  }
}

TEST(EventQueue, OrdersTiesByTargetThenOriginThenCount) {
  EventQueue queue;
  queue.push({5, tie_of(2, 0, 0)});
  queue.push({5, tie_of(1, 9, 0)});
  queue.push({5, tie_of(1, 3, 8)});
  queue.push({5, tie_of(1, 3, 7)});
  std::vector<std::uint64_t> ties;
  for (Event e; queue.pop(e);) ties.push_back(e.tie);
  EXPECT_EQ(ties, (std::vector<std::uint64_t>{tie_of(1, 3, 7), tie_of(1, 3, 8), tie_of(1, 9, 0), tie_of(2, 0, 0)}));
}

TEST(EventQueue, TakesNoMoreMemoryOnceThePeakIsReached) {
  EventQueue queue;
  std::size_t peak = 0;
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t r = 0; r < 5000; ++r) queue.push({round * kMs + r % 7, tie_of(r, r, 0), r});
    for (Event e; queue.pop(e);) {
    }
    if (round == 3) peak = queue.memory_bytes();
  }
  EXPECT_EQ(queue.memory_bytes(), peak);
}

}  // namespace
}  // namespace fallow::sim
