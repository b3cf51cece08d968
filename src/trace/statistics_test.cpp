#include "trace/statistics.hpp"

#include <gtest/gtest.h>

namespace fallow::trace {
namespace {

TEST(Statistics, CountsCallsAndSortsGaps) {
  MemorySource source(2);
  const auto add = [&](std::uint32_t rank, Op op, std::uint64_t enter, std::uint64_t exit) {
    CallEvent e;
    e.op = op, e.enter_ns = enter, e.exit_ns = exit, e.bytes = 8;
    source.add(rank, e);
  };
  add(0, Op::send, 100, 200);
  add(0, Op::send, 20'199, 21'000);     // 19,999 ns: below
  add(0, Op::recv, 41'000, 42'000);     // 20,000 ns: middle
  add(0, Op::recv, 1'000'000, 1'000'010);
  add(1, Op::barrier, 50, 60);
  const Statistics s = summarize(source);
  EXPECT_EQ(s.events, 5u);
  EXPECT_EQ(s.first_ns, 50u);
  EXPECT_EQ(s.last_ns, 1'000'010u);
  EXPECT_EQ(s.gap_count, (std::array<std::uint64_t, kGapBins>{1, 1, 1}));
  EXPECT_EQ(s.gap_ns[2], 958'000u);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::send)].calls, 2u);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::send)].time_ns, 901u);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::recv)].bytes, 16u);
}

}  // namespace
}  // namespace fallow::trace
