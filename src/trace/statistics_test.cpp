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

TEST(Statistics, BytesAreCountedWhereTheyMove) {
  MemorySource source(1);
  std::uint64_t now = 0;
  const std::uint32_t both[] = {0, 1};
  const auto add = [&](Op op, std::int32_t peer, std::span<const std::uint32_t> requests, std::uint16_t flags = 0) {
    CallEvent e;
    e.op = op, e.enter_ns = now++, e.exit_ns = now++, e.peer = peer, e.flags = flags;
    e.bytes = has(op, kOpStarts) && (op == Op::start || op == Op::startall) ? 0 : 8;
    e.requests = requests;
    source.add(0, e);
  };
  const std::span<const std::uint32_t> first(both, 1), second(both + 1, 1);
  add(Op::send, 0, {});
  add(Op::send, kNullPeer, {});
  add(Op::send, 0, {}, kEventFailed);
  add(Op::send_init, 0, first);
  add(Op::recv_init, 0, second);
  for (int i = 0; i < 3; ++i) add(Op::startall, kNoPeer, both);
  add(Op::request_free, kNoPeer, first);
  add(Op::send_init, kNullPeer, first);
  add(Op::start, kNoPeer, first);
  const Statistics s = summarize(source);
  const auto bytes = [&](Op op) { return s.ops[static_cast<std::size_t>(op)].bytes; };
  EXPECT_EQ(bytes(Op::send), 8u);
  EXPECT_EQ(bytes(Op::send_init) + bytes(Op::recv_init), 0u);
  EXPECT_EQ(bytes(Op::startall), 24u);
  EXPECT_EQ(bytes(Op::start), 0u);
}

TEST(Statistics, NothingMovesBeyondTheEdgeOfAGrid) {
  MemorySource source(2);
  CommGroups& comms = source.edit().comms;
  const std::uint32_t line = comms.add({.group = Group::contiguous(0, 2), .remote = {}});
  const std::uint32_t copy = comms.add({.group = Group::contiguous(0, 2), .remote = {}, .ordinal = 1, .parent = line});
  const std::uint64_t left_end[] = {0, 2}, sizes[] = {3, 5};
  std::uint64_t now = 0;
  const auto add = [&](Op op, std::uint32_t comm, std::uint64_t bytes, std::span<const std::uint64_t> counts = {}) {
    CallEvent e;
    e.op = op, e.enter_ns = now++, e.exit_ns = now++, e.comm = comm, e.bytes = bytes, e.counts = counts;
    source.add(0, e);
  };
  add(Op::cart_create, line, 0, left_end);
  add(Op::neighbor_alltoall, line, 16);
  add(Op::neighbor_alltoallv, copy, 8, sizes);
  add(Op::neighbor_allgather, line, 7);
  const Statistics s = summarize(source);
  const auto bytes = [&](Op op) { return s.ops[static_cast<std::size_t>(op)].bytes; };
  EXPECT_EQ(bytes(Op::neighbor_alltoall), 8u);
  EXPECT_EQ(bytes(Op::neighbor_alltoallv), 5u);
  EXPECT_EQ(bytes(Op::neighbor_allgather), 7u);
}

TEST(Statistics, CollectivesMoveBytesWhereTheyAreStarted) {
  MemorySource source(1);
  const std::uint32_t request[] = {0};
  std::uint64_t now = 0;
  const auto add = [&](Op op, std::int32_t root, std::span<const std::uint32_t> requests, std::uint16_t flags = 0) {
    CallEvent e;
    e.op = op, e.enter_ns = now++, e.exit_ns = now++, e.root = root, e.flags = flags;
    e.bytes = op == Op::start ? 0 : 8;
    e.requests = requests;
    source.add(0, e);
  };
  add(Op::bcast, 0, {});
  add(Op::bcast, kNullPeer, {});  // of an intercommunicator: beside the root
  add(Op::allreduce_init, kNoPeer, request);
  add(Op::start, kNoPeer, request);
  add(Op::start, kNoPeer, request, kEventFailed);
  const Statistics s = summarize(source);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::bcast)].bytes, 8u);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::allreduce_init)].bytes, 0u);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::start)].bytes, 8u);
}

TEST(Statistics, TimesAddUpAndGapsAreThoseOfAThread) {
  MemorySource source(3);
  const auto add = [&](std::uint32_t rank, std::uint16_t thread, std::uint64_t enter, std::uint64_t exit) {
    CallEvent e;
    e.op = Op::recv, e.thread = thread, e.enter_ns = enter, e.exit_ns = exit, e.compute_ns = 30, e.wait_ns = 7;
    source.add(rank, e);
  };
  add(0, 0, 1'000, 2'000);
  add(0, 1, 1'500, 9'000);
  add(0, 0, 202'001, 203'000);  // 200,001 ns after its thread's last call
  add(0, 0, 202'500, 202'500);  // in a callback, as it seems: begins before the other has ended
  add(2, 0, 500, 600);
  source.edit().ranks[0].complete = false;
  source.edit().ranks[0].dropped = 4;
  source.edit().ranks[1].dropped = 5;
  const Statistics s = summarize(source);
  EXPECT_EQ(s.gap_count, (std::array<std::uint64_t, kGapBins>{1, 0, 1}));
  EXPECT_EQ(s.gap_ns, (std::array<std::uint64_t, kGapBins>{0, 0, 200'001}));
  EXPECT_EQ(s.mpi_ns, 1'000u + 7'500u + 999u + 100u);
  EXPECT_EQ(s.compute_ns, 150u);
  EXPECT_EQ(s.ops[static_cast<std::size_t>(Op::recv)].wait_ns, 35u);
  EXPECT_EQ(s.first_ns, 500u);
  EXPECT_EQ(s.last_ns, 203'000u);
  EXPECT_EQ(s.dropped, 9u);
  EXPECT_EQ(s.incomplete_ranks, 1u);
  EXPECT_EQ(s.empty_ranks, 1u);
  int ranks = 0;
  EXPECT_THROW(summarize(source, [&ranks] { if (++ranks == 2) throw std::runtime_error("enough"); }), std::runtime_error);
}

}  // namespace
}  // namespace fallow::trace
