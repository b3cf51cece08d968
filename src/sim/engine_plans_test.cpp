// Collectives along neighbours and between two groups, against closed forms.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;
using Counts = std::vector<std::uint64_t>;

constexpr std::uint64_t kKib = 1024;

CallEvent call_of(Op op, std::uint64_t bytes = 0, std::uint64_t recv_bytes = 0, std::uint32_t comm = trace::kCommWorld) {
  CallEvent call;
  call.op = op;
  call.bytes = bytes;
  call.recv_bytes = recv_bytes;
  call.comm = comm;
  return call;
}

/// A communicator with a topology; ranks as in the program, -1 for nobody.
void topology(Program& p, std::uint32_t rank, const std::vector<int>& to, const std::vector<int>& from) {
  Counts out, in;
  for (const int r : to) out.push_back(static_cast<std::uint64_t>(r + 1));
  for (const int r : from) in.push_back(static_cast<std::uint64_t>(r + 1));
  CallEvent call = call_of(Op::cart_create);
  call.counts = out;
  call.recv_counts = in;
  p.add(rank, call);
}

/// Four ranks in a ring, or in a row.
Program line(bool closed) {
  Program p(4);
  for (int r = 0; r < 4; ++r) {
    const std::vector<int> beside{closed ? (r + 3) % 4 : r - 1, closed || r < 3 ? (r + 1) % 4 : -1};
    topology(p, static_cast<std::uint32_t>(r), beside, beside);
  }
  return p;
}

Time more_than(Program& with, Program without) { return with.run(crossbar(4)).makespan - without.run(crossbar(4)).makespan; }

TEST(Neighbors, ABlockToEach) {
  for (const Op op : {Op::neighbor_alltoall, Op::neighbor_alltoallv, Op::neighbor_alltoallw}) {
    Program p = line(true);
    for (std::uint32_t r = 0; r < 4; ++r) p.add(r, call_of(op, 16 * kKib, 16 * kKib));
    EXPECT_EQ(more_than(p, line(true)), kLatency + 16 * kPerKib);  // one after the other through the rank's card
  }
}

TEST(Neighbors, TheOwnBlockToAll) {
  Program p = line(false);
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, call_of(Op::neighbor_allgather, 8 * kKib, 16 * kKib));
  const Result result = p.run(crossbar(4));
  EXPECT_EQ(more_than(p, line(false)), kLatency + 16 * kPerKib);
  EXPECT_EQ(result.messages - line(false).run(crossbar(4)).messages, 6u);  // the ends have one neighbour each
}

TEST(Neighbors, BlocksOfDifferentSizes) {
  Program p = line(true);
  const Counts sent{0, 8 * kKib}, received{8 * kKib, 0};
  for (std::uint32_t r = 0; r < 4; ++r) {
    CallEvent call = call_of(Op::neighbor_alltoallv, 8 * kKib, 8 * kKib);
    call.counts = sent;
    call.recv_counts = received;
    p.add(r, call);
  }
  EXPECT_EQ(more_than(p, line(true)), kLatency + 8 * kPerKib);
}

TEST(Neighbors, NonBlockingAndPersistent) {
  Program p = line(true);
  for (std::uint32_t r = 0; r < 4; ++r) {
    const std::uint32_t one = 1, two = 2;
    CallEvent call = call_of(Op::ineighbor_alltoall, 16 * kKib, 16 * kKib);
    call.requests = {&one, 1};
    p.add(r, call).wait(r, Op::wait, {1});
    call = call_of(Op::neighbor_alltoall_init, 16 * kKib, 16 * kKib);
    call.requests = {&two, 1};
    p.add(r, call);
    for (int i = 0; i < 2; ++i) p.on_requests(r, Op::start, {2}).wait(r, Op::wait, {2});
    p.on_requests(r, Op::request_free, {2});
  }
  EXPECT_EQ(more_than(p, line(true)), 3 * (kLatency + 16 * kPerKib));
}

TEST(Neighbors, ACopyOfTheCommunicatorHasThemToo) {
  Program p = line(true);
  trace::Comm copy;
  copy.group = trace::Group::contiguous(0, 4);
  const std::uint32_t first = p.source().edit().comms.add(copy), second = p.source().edit().comms.add(copy);
  Program q(4);
  q.source().edit().comms = p.source().edit().comms;
  for (int r = 0; r < 4; ++r) {
    const Counts beside{static_cast<std::uint64_t>((r + 3) % 4 + 1), static_cast<std::uint64_t>((r + 1) % 4 + 1)};
    CallEvent call = call_of(Op::dist_graph_create_adjacent, 0, 0, first);
    call.counts = call.recv_counts = beside;
    q.add(static_cast<std::uint32_t>(r), call);
  }
  const Time before = q.run(crossbar(4)).makespan;
  for (std::uint32_t r = 0; r < 4; ++r) q.add(r, call_of(Op::neighbor_alltoall, 16 * kKib, 16 * kKib, second));
  EXPECT_EQ(q.run(crossbar(4)).makespan - before, kLatency + 16 * kPerKib);
}

/// Two topologies of the same ranks: a ring both ways, and a message from rank 0 to rank 1 only.
TEST(Neighbors, ACopyHasThoseOfWhatItWasMadeFrom) {
  Program p(4);
  trace::CommGroups& comms = p.source().edit().comms;
  trace::Comm made;
  made.group = trace::Group::contiguous(0, 4);
  made.parent = trace::kCommWorld;
  const std::uint32_t ring = comms.add(made), one_way = comms.add(made);
  made.parent = one_way;
  const std::uint32_t copy = comms.add(made);
  for (std::uint32_t r = 0; r < 4; ++r) {
    const Counts beside{(r + 3) % 4 + 1, (r + 1) % 4 + 1}, first{1}, second{2};
    CallEvent call = call_of(Op::cart_create, 0, 0, ring);
    call.counts = call.recv_counts = beside;
    p.add(r, call);
    call = call_of(Op::dist_graph_create_adjacent, 0, 0, one_way);
    if (r == 0) call.counts = second;
    if (r == 1) call.recv_counts = first;
    p.add(r, call);
  }
  const std::uint64_t before = p.run(crossbar(4)).messages;
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, call_of(Op::neighbor_alltoall, r == 0 ? kKib : 0, r == 1 ? kKib : 0, copy));
  EXPECT_EQ(p.run(crossbar(4)).messages - before, 1u);
}

TEST(Neighbors, NothingMovesWhereTheyAreNotKnownWhichIsTold) {
  Program p(2);
  for (std::uint32_t r = 0; r < 2; ++r) p.add(r, call_of(Op::neighbor_alltoall, kKib, kKib));
  const Result result = p.run(crossbar(2));
  EXPECT_EQ(result.makespan, 0);
  EXPECT_EQ(result.unplaced, 2u);
}

TEST(Neighbors, OneThatNeverCallsIsNamed) {
  Program p = line(true);
  for (std::uint32_t r = 0; r < 3; ++r) p.add(r, call_of(Op::neighbor_alltoall, 2 * kKib, 2 * kKib));
  try {
    p.run(crossbar(4));
    FAIL();
  } catch (const SimError& e) {
    EXPECT_NE(std::string(e.what()).find("2 of 4 ranks wait"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("rank 0 in MPI_Neighbor_alltoall (call 2)"), std::string::npos) << e.what();
  }
}

/// `own` ranks and `other` ranks, with the number of their intercommunicator.
struct Two {
  Two(std::uint32_t own, std::uint32_t other) : program(own + other), first(own), size(own + other) {
    trace::Comm c;
    c.group = trace::Group::contiguous(0, own);
    c.remote = trace::Group::contiguous(static_cast<std::int32_t>(own), other);
    comm = program.source().edit().comms.add(c);
  }
  void all(Op op, std::uint64_t bytes, std::uint64_t recv_bytes) {
    for (std::uint32_t r = 0; r < size; ++r) program.add(r, call_of(op, bytes, recv_bytes, comm));
  }
  /// Root is the first group's rank `root`.
  void rooted(Op op, std::uint32_t root, std::uint64_t root_bytes, std::uint64_t root_recv, std::uint64_t bytes, std::uint64_t recv) {
    for (std::uint32_t r = 0; r < size; ++r) {
      const bool here = r == root;
      CallEvent call = r < first ? call_of(op, here ? root_bytes : 0, here ? root_recv : 0, comm) : call_of(op, bytes, recv, comm);
      call.root = here ? trace::kRootHere : r < first ? trace::kNullPeer : static_cast<std::int32_t>(root);
      program.add(r, call);
    }
  }
  Time run() { return program.run(crossbar(size)).makespan; }
  Program program;
  std::uint32_t first, size, comm = 0;
};

TEST(TwoGroups, Barrier) {
  Two t(2, 2);
  t.all(Op::barrier, 0, 0);
  EXPECT_EQ(t.run(), 3 * kLatency);  // to the leaders, between them, and back
  t.all(Op::comm_dup, 0, 0);
  EXPECT_EQ(t.run(), 6 * kLatency);
}

TEST(TwoGroups, DataGoesByWayOfTheLeaders) {
  Two bcast(2, 2), reduce(2, 2), allreduce(2, 2), gather(2, 2), scatter(2, 2), allgather(2, 2);
  bcast.rooted(Op::bcast, 1, kKib, 0, kKib, 0);
  EXPECT_EQ(bcast.run(), 2 * (kLatency + kPerKib));
  reduce.rooted(Op::reduce, 0, kKib, 0, kKib, 0);
  EXPECT_EQ(reduce.run(), 2 * (kLatency + kPerKib));
  allreduce.all(Op::allreduce, kKib, 0);
  EXPECT_EQ(allreduce.run(), 3 * (kLatency + kPerKib));
  gather.rooted(Op::gather, 1, 0, 2 * kKib, kKib, 0);
  EXPECT_EQ(gather.run(), 2 * kLatency + 3 * kPerKib);
  scatter.rooted(Op::scatter, 0, 2 * kKib, 0, 0, kKib);
  EXPECT_EQ(scatter.run(), 2 * kLatency + 3 * kPerKib);
  allgather.all(Op::allgather, kKib, 2 * kKib);
  EXPECT_EQ(allgather.run(), 3 * kLatency + 5 * kPerKib);
  for (const Op op : {Op::reduce_scatter, Op::reduce_scatter_block}) {  // a vector to each leader, to the other, and half of it on
    Two reduce_scatter(2, 2);
    reduce_scatter.all(op, 2 * kKib, kKib);
    EXPECT_EQ(reduce_scatter.run(), 3 * kLatency + 5 * kPerKib);
  }
}

TEST(TwoGroups, HaveNoRootBeyondTheOther) {
  for (const std::int32_t root : {1, 2}) {
    Two t(2, 2);
    for (std::uint32_t r = 0; r < 4; ++r) {
      CallEvent call = call_of(Op::bcast, kKib, 0, t.comm);
      call.root = r == 1 ? trace::kRootHere : r < 2 ? trace::kNullPeer : root;
      t.program.add(r, call);
    }
    std::string why;
    try {
      t.run();
    } catch (const SimError& e) {
      why = e.what();
    }
    EXPECT_EQ(why.find("names root 2") != std::string::npos, root == 2) << why;
  }
}

TEST(TwoGroups, EachToEach) {
  Two t(2, 2);
  t.all(Op::alltoall, 2 * kKib, 2 * kKib);
  Machine machine = crossbar(4);
  machine.lookahead = 0;
  const Result result = t.program.run(machine);
  EXPECT_EQ(result.makespan, kLatency + 2 * kPerKib);
  EXPECT_EQ(result.messages, 8u);
}

TEST(TwoGroups, BlocksOfDifferentSizesGoStraight) {
  Two t(1, 3);
  const Counts blocks{kKib, 0, 2 * kKib};
  for (std::uint32_t r = 0; r < 4; ++r) {
    CallEvent call = call_of(Op::scatterv, r == 0 ? 3 * kKib : 0, r == 0 ? 0 : blocks[r - 1], t.comm);
    if (r == 0) call.counts = blocks;
    call.root = r == 0 ? trace::kRootHere : 0;
    t.program.add(r, call);
  }
  EXPECT_EQ(t.run(), kLatency + 3 * kPerKib);
  EXPECT_EQ(t.program.run(crossbar(4)).messages, 2u);
  for (std::uint32_t r = 0; r < 4; ++r) {
    CallEvent call = call_of(Op::gatherv, r == 0 ? 0 : blocks[r - 1], r == 0 ? 3 * kKib : 0, t.comm);
    if (r == 0) call.recv_counts = blocks;
    call.root = r == 0 ? trace::kRootHere : 0;
    t.program.add(r, call);
  }
  EXPECT_EQ(t.program.run(crossbar(4)).messages, 4u);
}

TEST(TwoGroups, EveryOperationOfUnevenGroupsEnds) {
  for (const auto& [own, other] : {std::pair<std::uint32_t, std::uint32_t>{1, 5}, {4, 3}, {2, 8}}) {
    Two t(own, other);
    const std::uint64_t n = 8 * kKib;
    for (int i = 0; i < 3; ++i) {
      for (const Op op : {Op::allreduce, Op::reduce_scatter, Op::reduce_scatter_block, Op::allgather, Op::allgatherv, Op::alltoall, Op::alltoallw, Op::barrier}) {
        t.all(op, n, n);
      }
      for (const Op op : {Op::bcast, Op::reduce, Op::gather, Op::gatherv, Op::scatter, Op::scatterv}) t.rooted(op, own - 1, n * other, n * other, n, n);
    }
    const Result result = t.program.run(crossbar(t.size));
    EXPECT_GT(result.makespan, 0);
    EXPECT_EQ(t.program.run(crossbar(t.size), {}, 2).makespan, result.makespan);
  }
}

TEST(TwoGroups, NonBlocking) {
  Two t(2, 2);
  for (std::uint32_t r = 0; r < 4; ++r) {
    const std::uint32_t one = 1;
    CallEvent call = call_of(Op::iallreduce, kKib, 0, t.comm);
    call.requests = {&one, 1};
    t.program.add(r, call).compute(1000).wait(r, Op::wait, {1});
  }
  EXPECT_EQ(t.run(), 3 * (kLatency + kPerKib));
}

TEST(TwoGroups, WhatMakesNoSenseIsRefused) {
  Two root(2, 2);
  CallEvent call = call_of(Op::bcast, kKib, 0, root.comm);
  call.root = 2;
  root.program.add(0, call);
  EXPECT_THROW(root.run(), SimError);
  Two stuck(2, 2);
  stuck.program.add(0, call_of(Op::barrier, 0, 0, stuck.comm));
  try {
    stuck.run();
    FAIL();
  } catch (const SimError& e) {
    EXPECT_NE(std::string(e.what()).find("rank 0 in MPI_Barrier (call 1) on communicator 3"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace fallow::sim
