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

TEST(EventSorter, OrdersWhateverTheEventsShare) {
  std::mt19937_64 random(11);
  EventSorter sorter;
  for (const std::size_t size : {0, 1, 2, 13, 40, 64, 65, 1000, 9000}) {
    for (const int shape : {0, 1, 2, 3, 4, 5}) {
      constexpr std::uint32_t kFirst = 12'345;
      std::vector<ShortEvent> events(size);
      for (std::uint32_t i = 0; i < size; ++i) {
        const auto rank = static_cast<std::uint32_t>(random() % kMaxRanks);
        const std::uint64_t times[] = {1, random() % 131072, random() % 3 * 60'000, i == 0 ? 131071u : 7u,
                                       random() % 20 == 0 ? random() % 131072 : 500, random() % EventSorter::kReach};
        events[i] = {kFirst + static_cast<std::uint32_t>(times[shape]), shape == 3 ? tie_of(5, 5, i * 7919 % 9001) : tie_of(rank, rank / 2, i % 3), i, EventKind::pass};
      }
      std::vector<ShortEvent> expected = events;
      std::sort(expected.begin(), expected.end());
      sorter.sort(events, kFirst);
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(events[i].time(), expected[i].time()) << size << " events, shape " << shape;
        ASSERT_EQ(events[i].tie(), expected[i].tie()) << size << " events, shape " << shape;
      }
    }
  }
}

/// As a replay asks: what comes before an end, or before another event, and what comes next at all.
TEST(EventQueue, GivesNothingThatIsNotYetToCome) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 20; ++round) {
    EventQueue queue;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> heap;
    Time now = 0;
    std::uint32_t count = 0;
    const auto ahead = [&] { return static_cast<Time>(random() & ((std::uint64_t{1} << random() % (round % 2 == 0 ? 20 : 40)) - 1)); };
    const auto tie = [&] { return tie_of(static_cast<std::uint32_t>(random() % 3), static_cast<std::uint32_t>(random() % 3), ++count); };
    for (int i = 0; i < 20000; ++i) {
      if (random() % 2 != 0) {
        const Event e{now + ahead(), tie(), count, EventKind::hop};
        queue.push(e);
        heap.push(e);
      }
      const Time end = random() % 3 == 0 && !heap.empty() ? heap.top().time + static_cast<Time>(random() % 3) - 1 : now + ahead();
      const std::uint64_t near = heap.empty() ? tie() : heap.top().tie + random() % 3 - 1;
      const Event limit{end, random() % 2 == 0 ? near : tie()};
      const int how = static_cast<int>(random() % 4);
      if (how == 0) {
        ASSERT_EQ(queue.next_time(), heap.empty() ? kNever : heap.top().time);
        continue;
      }
      const bool comes = !heap.empty() && (how == 1 ? heap.top() < limit : how == 2 ? heap.top().time < end : true);
      Event e;
      ASSERT_EQ(how == 1 ? queue.pop_before(e, limit) : how == 2 ? queue.pop(e, end) : queue.pop(e), comes);
      if (!comes) continue;
      ASSERT_EQ(e.time, heap.top().time);
      ASSERT_EQ(e.tie, heap.top().tie);
      ASSERT_EQ(e.index, heap.top().index);
      ASSERT_EQ(e.kind, EventKind::hop);
      now = e.time;
      heap.pop();
      ASSERT_EQ(queue.size(), heap.size());
      ASSERT_EQ(queue.empty(), heap.empty());
    }
  }
}

TEST(EventQueue, GivesTheSameOrderOfVeryManyAndWhereItNeverRunsDry) {
  std::mt19937_64 random(17);
  struct Kind {
    std::uint32_t pending;
    Time ahead;
    int steps;
  };
  for (const Kind& kind : {Kind{300'000, 2 * kMs, 1000}, Kind{200, 3 * kUs, 100'000}}) {  // the second for 0.7 ms, beyond what its short times reach
    EventQueue queue;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> heap;
    std::uint32_t count = 0;
    Time now = 0;
    const auto push = [&] {
      const Event e{now + static_cast<Time>(random() % static_cast<std::uint64_t>(kind.ahead)), tie_of(static_cast<std::uint32_t>(random() % 50), 0, count++)};
      queue.push(e);
      heap.push(e);
    };
    while (queue.size() < kind.pending) push();
    for (int i = 0; !heap.empty(); ++i) {
      Event e;
      ASSERT_TRUE(queue.pop(e));
      ASSERT_EQ(e.time, heap.top().time) << i;
      ASSERT_EQ(e.tie, heap.top().tie) << i;
      now = e.time;
      heap.pop();
      if (i < kind.steps) push();
    }
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
