// The matcher: MPI's order of matching case by case, and against one that searches lists from their beginning.
#include "sim/match.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <vector>

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

/// A matcher with one rank's queues.
class Queues {
 public:
  std::uint32_t add(MatchQueue& queue, std::uint64_t key, std::int32_t tag) {
    const std::uint32_t node = pool_.take();
    pool_[node].key = key;
    pool_[node].tag = tag;
    matcher_.append(queue, node);
    return node;
  }
  std::uint32_t post(std::uint32_t source, std::int32_t tag, std::uint32_t comm = 1) { return add(posted, key_of(comm, source), tag); }
  std::uint32_t arrive(std::uint32_t source, std::int32_t tag, std::uint32_t comm = 1) { return add(unexpected, key_of(comm, source), tag); }
  std::uint32_t receive_for(std::uint32_t source, std::int32_t tag, std::uint32_t comm = 1) const {
    return matcher_.find_receive(posted, key_of(comm, source), tag);
  }
  std::uint32_t message_for(std::uint32_t source, std::int32_t tag, std::uint32_t comm = 1) const {
    return matcher_.find_message(unexpected, key_of(comm, source), tag);
  }
  void drop(MatchQueue& queue, std::uint32_t node) {
    matcher_.remove(queue, node);
    pool_.give(node);
  }
  std::vector<std::uint32_t> in_order(const MatchQueue& queue) const {
    const std::vector<std::uint32_t> nodes = matcher_.in_order(queue);
    EXPECT_EQ(queue.count, nodes.size());
    return nodes;
  }
  std::size_t memory_bytes() const { return matcher_.memory_bytes(); }

  MatchQueue posted, unexpected;

 private:
  NodePool pool_;
  Matcher<Node> matcher_{pool_};
};

constexpr std::uint32_t kLong = 4 * Matcher<Node>::kLinear;  // more than a queue without index holds

TEST(Matching, NothingFitsInEmptyQueues) {
  const Queues q;
  EXPECT_EQ(q.receive_for(0, 0), kNone);
  EXPECT_EQ(q.message_for(kAnySource, kAnyTag), kNone);
}

TEST(Matching, SourceTagAndCommunicatorMustAgree) {
  Queues q;
  const std::uint32_t receive = q.post(3, 7), message = q.arrive(3, 7);
  EXPECT_EQ(q.receive_for(3, 7), receive);
  EXPECT_EQ(q.receive_for(4, 7), kNone);
  EXPECT_EQ(q.receive_for(3, 8), kNone);
  EXPECT_EQ(q.receive_for(3, 7, 2), kNone);
  EXPECT_EQ(q.message_for(3, 7), message);
  EXPECT_EQ(q.message_for(kAnySource, 7), message);
  EXPECT_EQ(q.message_for(3, kAnyTag), message);
  EXPECT_EQ(q.message_for(kAnySource, kAnyTag), message);
  EXPECT_EQ(q.message_for(kAnySource, kAnyTag, 2), kNone);
  EXPECT_EQ(q.message_for(4, kAnyTag), kNone);
}

TEST(Matching, EqualOnesGoInOrderOfTheirComing) {
  for (const std::uint32_t others : {0u, kLong}) {  // without and with an index
    Queues q;
    for (std::uint32_t i = 0; i < others; ++i) q.post(100 + i, 0), q.arrive(100 + i, 0);
    const std::uint32_t receives[] = {q.post(1, 5), q.post(1, 5), q.post(1, 5)};
    const std::uint32_t messages[] = {q.arrive(1, 5), q.arrive(1, 5), q.arrive(1, 5)};
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(q.receive_for(1, 5), receives[i]);
      EXPECT_EQ(q.message_for(1, 5), messages[i]);
      q.drop(q.posted, receives[i]);
      q.drop(q.unexpected, messages[i]);
    }
    EXPECT_EQ(q.receive_for(1, 5), kNone);
    EXPECT_EQ(q.posted.count, others);
  }
}

TEST(Matching, AWildcardAloneStaysOneWhereTheIndexGrows) {  // more than once, with no other to come behind it
  Queues q;
  const std::uint32_t wild = q.post(kAnySource, 5);
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < 1000; ++i) others.push_back(q.post(i, 7));
  EXPECT_EQ(q.receive_for(999, 7), others.back());
  EXPECT_EQ(q.receive_for(3, 6), kNone);
  EXPECT_EQ(q.receive_for(3, 5), wild);
  q.drop(q.posted, wild);
  EXPECT_EQ(q.receive_for(3, 5), kNone);
}

TEST(Matching, TheEarlierOfAWildcardAndAnExactReceiveTakesTheMessage) {
  for (const std::uint32_t others : {0u, kLong}) {
    for (const bool wild_first : {true, false}) {
      for (const auto& [source, tag] : {std::pair(kAnySource, 5), std::pair(1u, kAnyTag), std::pair(kAnySource, kAnyTag)}) {
        Queues q;
        for (std::uint32_t i = 0; i < others; ++i) q.post(100 + i, 0);
        const std::uint32_t first = wild_first ? q.post(source, tag) : q.post(1, 5);
        const std::uint32_t second = wild_first ? q.post(1, 5) : q.post(source, tag);
        EXPECT_EQ(q.receive_for(1, 5), first);
        q.drop(q.posted, first);
        EXPECT_EQ(q.receive_for(1, 5), second);
        EXPECT_EQ(q.receive_for(2, 6), !wild_first && source == kAnySource && tag == kAnyTag ? second : kNone);
      }
    }
  }
}

TEST(Matching, AWildcardTakesTheOldestMessageOfAll) {
  Queues q;
  std::vector<std::uint32_t> messages;
  for (std::uint32_t i = 0; i < kLong; ++i) messages.push_back(q.arrive(i % 5, static_cast<std::int32_t>(i % 3)));
  while (!messages.empty()) {
    ASSERT_EQ(q.message_for(kAnySource, kAnyTag), messages.front());
    q.drop(q.unexpected, messages.front());
    messages.erase(messages.begin());
    ASSERT_EQ(q.in_order(q.unexpected), messages);
  }
}

TEST(Matching, CancelledReceivesLeaveFromAnywhere) {
  for (const std::uint32_t length : {3u, Matcher<Node>::kLinear, Matcher<Node>::kLinear + 1, kLong}) {
    for (std::uint32_t victim : {0u, length / 2, length - 1}) {
      Queues q;
      std::vector<std::uint32_t> receives;
      for (std::uint32_t i = 0; i < length; ++i) receives.push_back(q.post(i % 2 == 0 ? 1 : kAnySource, 5));
      q.drop(q.posted, receives[victim]);
      receives.erase(receives.begin() + victim);
      EXPECT_EQ(q.in_order(q.posted), receives);
      EXPECT_EQ(q.receive_for(1, 5), receives.front());
      receives.push_back(q.post(1, 5));
      EXPECT_EQ(q.in_order(q.posted), receives);
    }
  }
}

TEST(Matching, LongQueuesFillAndEmptyWithoutTakingMoreMemory) {
  Queues q;
  std::size_t after_first = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::uint32_t> receives;
    for (std::uint32_t i = 0; i < 1000; ++i) receives.push_back(q.post(i, static_cast<std::int32_t>(i % 7)));
    for (std::uint32_t i = 1000; i-- > 0;) {
      ASSERT_EQ(q.receive_for(i, static_cast<std::int32_t>(i % 7)), receives[i]);
      q.drop(q.posted, receives[i]);
    }
    EXPECT_EQ(q.posted.head, kNone);
    EXPECT_EQ(q.receive_for(0, 0), kNone);
    if (round == 0) after_first = q.memory_bytes();
    EXPECT_EQ(q.memory_bytes(), after_first);
  }
}

class RandomMatching : public ::testing::TestWithParam<int> {};

TEST_P(RandomMatching, AgreesWithTheNaiveOne) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  NodePool pool;
  Matcher<Node> matcher(pool);
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
      if (random() % 2 == 0) {
        matcher.remove(receive ? unexpected : posted, found);
      } else {
        ASSERT_EQ(receive ? matcher.take_message(unexpected, e.key, e.tag) : matcher.take_receive(posted, e.key, e.tag), found);
      }
      pool.give(found);
      theirs.erase(expected);
      ASSERT_EQ((receive ? unexpected : posted).count, theirs.size());
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
