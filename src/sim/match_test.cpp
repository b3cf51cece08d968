// The matcher against one that searches lists from their beginning.
#include "sim/match.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace fallow::sim {
namespace {

struct Entry {
  std::uint64_t key;
  std::int32_t tag;
  std::uint32_t node;
};

bool fits(const Entry& want, const Entry& message) {
  const bool comm = want.key >> 32 == message.key >> 32;
  const auto source = static_cast<std::uint32_t>(want.key);
  return comm && (source == kAnySource || source == static_cast<std::uint32_t>(message.key)) && (want.tag == kAnyTag || want.tag == message.tag);
}

class RandomMatching : public ::testing::TestWithParam<int> {};

TEST_P(RandomMatching, AgreesWithTheNaiveOne) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  NodePool pool;
  Matcher matcher(pool);
  MatchQueue posted, unexpected;
  std::list<Entry> naive_posted, naive_unexpected;
  const std::uint32_t sources = 1 + static_cast<std::uint32_t>(random() % 8);
  const auto wild_every = 2 + random() % 20;
  const auto bias = 1 + random() % 9;  // how much more often one side comes: long queues on either
  for (int i = 0; i < 20000; ++i) {
    const bool receive = random() % 10 < bias;
    Entry e{key_of(1 + random() % 2, static_cast<std::uint32_t>(random() % sources)), static_cast<std::int32_t>(random() % 3), 0};
    if (receive && random() % wild_every == 0) e.key |= 0xffffffffu;
    if (receive && random() % wild_every == 0) e.tag = kAnyTag;
    if (random() % 2000 == 0) {  // cancel
      if (naive_posted.empty()) continue;
      const std::uint32_t victim = naive_posted.back().node;
      matcher.remove(posted, victim);
      pool.give(victim);
      naive_posted.pop_back();
      continue;
    }
    std::list<Entry>& theirs = receive ? naive_unexpected : naive_posted;
    auto expected = theirs.begin();
    while (expected != theirs.end() && !(receive ? fits(e, *expected) : fits(*expected, e))) ++expected;
    const std::uint32_t found = receive ? matcher.find_message(unexpected, e.key, e.tag) : matcher.find_receive(posted, e.key, e.tag);
    ASSERT_EQ(found, expected == theirs.end() ? kNone : expected->node) << "step " << i;
    if (found != kNone) {
      matcher.remove(receive ? unexpected : posted, found);
      pool.give(found);
      theirs.erase(expected);
      continue;
    }
    e.node = pool.take();
    pool[e.node].key = e.key;
    pool[e.node].tag = e.tag;
    matcher.append(receive ? posted : unexpected, e.node);
    (receive ? naive_posted : naive_unexpected).push_back(e);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMatching, ::testing::Range(0, 40));

}  // namespace
}  // namespace fallow::sim
