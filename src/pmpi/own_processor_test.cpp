#include "pmpi/own_processor.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>

namespace fallow::pmpi {
namespace {

constexpr TickRate kRate{1.0};
constexpr double kLate = OwnProcessor::kQueuedNs;

cpu_set_t set_of(std::initializer_list<std::size_t> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t p : processors) CPU_SET(p, &set);
  return set;
}

TEST(FreeProcessor, IsTheNearestThatNoneHas) {
  const cpu_set_t allowed = set_of({0, 1, 2, 3, 8, 9});
  EXPECT_EQ(free_processor(allowed, set_of({}), 2), 2);
  EXPECT_EQ(free_processor(allowed, set_of({2, 3}), 2), 1);
  EXPECT_EQ(free_processor(allowed, set_of({1, 2, 3}), 2), 0);
  EXPECT_EQ(free_processor(allowed, set_of({0, 1, 2, 3}), 2), 8);
  EXPECT_EQ(free_processor(allowed, set_of({}), 5), 3) << "it may not be where it was";
  EXPECT_EQ(free_processor(allowed, set_of({0, 1, 2, 3, 8, 9}), 2), -1);
  EXPECT_EQ(free_processor(set_of({}), set_of({}), 0), -1);
}

/// Two ranks, of which the first is this thread. The kernel may move it at any time, so what it does is told by its slot.
struct Ranks {
  Ranks() {
    EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &allowed)) continue;
      if (first < 0) first = i;
      last = i;
    }
  }
  /// Sleeps on one processor, and comes to another, where its waker is.
  bool sleeps(int from, int to, double late_ns = kLate, std::uint64_t now = 1'000) {
    processor.leave(*page, 2, own(), from);
    processor.widen();
    own().woken_from = other().processor = to + 1;
    return processor.come_back(to, *page, 2, own(), late_ns, now, kRate);
  }
  NodeSlot& own() { return page->slots[0]; }
  NodeSlot& other() { return page->slots[1]; }
  bool several() const { return first != last; }

  cpu_set_t allowed{};
  int first = -1, last = -1;
  std::unique_ptr<NodePage> page = std::make_unique<NodePage>();
  OwnProcessor processor;
};

TEST(OwnProcessor, AThreadThatWasQueuedBehindItsWakerGoesWhereNoRankIs) {
  Ranks ranks;
  EXPECT_EQ(ranks.sleeps(ranks.first, ranks.first), ranks.several());
  EXPECT_EQ(ranks.own().processor - 1 != ranks.first, ranks.several());
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &ranks.allowed)) << "it may run where it might before";
}

TEST(OwnProcessor, ItIsThereThen) {
  bool seen = false;
  for (int i = 0; i < 50 && !seen; ++i) {  // unless the kernel moves it in the same moment
    Ranks ranks;
    ranks.sleeps(ranks.first, i % 2 == 0 ? ranks.first : ranks.last);
    seen = sched_getcpu() == ranks.own().processor - 1 || !ranks.several();
  }
  EXPECT_TRUE(seen);
}

TEST(OwnProcessor, ItGoesBackWhereItWasBefore) {
  Ranks ranks;
  EXPECT_EQ(ranks.sleeps(ranks.last, ranks.first), ranks.several());
  EXPECT_EQ(ranks.own().processor - 1, ranks.last);
  EXPECT_EQ(ranks.sleeps(ranks.first, ranks.last, kLate, 1'000'000'000), ranks.several());
  EXPECT_EQ(ranks.own().processor - 1, ranks.first);
}

TEST(OwnProcessor, ItStaysWhereItWasNotLateOrItsWakerWasElsewhere) {
  Ranks ranks;
  EXPECT_FALSE(ranks.sleeps(ranks.last, ranks.first, kLate - 1));
  EXPECT_EQ(ranks.own().processor - 1, ranks.first);
  for (const int waker : {ranks.first + 1, -1}) {  // -1: its timer has woken it
    ranks.own().woken_from = waker + 1;
    EXPECT_FALSE(ranks.processor.come_back(ranks.first, *ranks.page, 2, ranks.own(), kLate, 1'000, kRate));
  }
}

TEST(OwnProcessor, ItStaysWhereTheKernelDoesNotTell) {
  Ranks ranks;
  EXPECT_FALSE(ranks.sleeps(-1, -1));
}

TEST(OwnProcessor, ItStaysWhereRanksHaveAllProcessors) {
  Ranks ranks;
  std::uint32_t slots = 1;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &ranks.allowed)) ranks.page->slots[slots++].processor = i + 1;
  }
  ranks.processor.leave(*ranks.page, slots, ranks.own(), ranks.last);
  EXPECT_EQ(ranks.own().processor - 1, ranks.last);
  ranks.own().woken_from = ranks.first + 1;
  EXPECT_FALSE(ranks.processor.come_back(ranks.first, *ranks.page, slots, ranks.own(), kLate, 1'000, kRate));
}

TEST(OwnProcessor, ItIsNotMovedAgainAndAgain) {
  Ranks ranks;
  constexpr auto kSeldom = static_cast<std::uint64_t>(OwnProcessor::kSeldomNs);
  EXPECT_EQ(ranks.sleeps(ranks.first, ranks.first, kLate, 1'000), ranks.several());
  EXPECT_FALSE(ranks.sleeps(ranks.first, ranks.first, kLate, 1'000 + kSeldom - 1));
  EXPECT_EQ(ranks.sleeps(ranks.first, ranks.first, kLate, 1'000 + kSeldom), ranks.several());
}

cpu_set_t allowed_now() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

TEST(OwnProcessor, OnceItWasQueuedItSleepsWhereNoRankIs) {
  Ranks ranks;
  const auto is_kept = [&] {
    ranks.processor.leave(*ranks.page, 2, ranks.own(), ranks.first);
    const cpu_set_t asleep = allowed_now();
    const bool kept = !CPU_EQUAL(&asleep, &ranks.allowed);
    EXPECT_EQ(kept, !CPU_ISSET(static_cast<std::size_t>(ranks.other().processor - 1), &asleep));
    ranks.processor.widen();
    const cpu_set_t awake = allowed_now();
    EXPECT_TRUE(CPU_EQUAL(&awake, &ranks.allowed));
    return kept;
  };
  ranks.other().processor = ranks.last + 1;
  EXPECT_FALSE(is_kept());
  ranks.sleeps(ranks.first, ranks.last);
  for (std::uint32_t i = 0; i < OwnProcessor::kFewSleeps; ++i) EXPECT_EQ(is_kept(), ranks.several());
  EXPECT_FALSE(is_kept());
  ranks.sleeps(ranks.first, ranks.last, kLate, 1'000'000'000);
  for (std::uint32_t i = 0; i < 2 * OwnProcessor::kFewSleeps; ++i) EXPECT_EQ(is_kept(), ranks.several()) << "again, so for longer";
  for (std::uint32_t i = 0; i < OwnProcessor::kFewSleeps; ++i) EXPECT_FALSE(is_kept());
  ranks.sleeps(ranks.first, ranks.last, kLate, 2'000'000'000);
  for (std::uint32_t i = 0; i < OwnProcessor::kFewSleeps; ++i) EXPECT_EQ(is_kept(), ranks.several());
  EXPECT_FALSE(is_kept()) << "it had done well without";
}

TEST(OwnProcessor, WhatSomebodyElseHasSetMeanwhileStays) {
  Ranks ranks;
  ranks.sleeps(ranks.first, ranks.last);
  ranks.processor.leave(*ranks.page, 2, ranks.own(), ranks.first);
  const cpu_set_t theirs = set_of({static_cast<std::size_t>(ranks.last)});
  ASSERT_EQ(sched_setaffinity(0, sizeof theirs, &theirs), 0);
  ranks.processor.widen();
  const cpu_set_t after = allowed_now();
  EXPECT_TRUE(CPU_EQUAL(&after, &theirs));
  sched_setaffinity(0, sizeof ranks.allowed, &ranks.allowed);
}

}  // namespace
}  // namespace fallow::pmpi
