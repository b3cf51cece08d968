// Collectives of one group, against what their algorithms' messages take: on a crossbar nothing but a rank's own card is shared.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

constexpr std::uint64_t kKib = 1024;

CallEvent call_of(Op op, std::uint64_t bytes, std::uint64_t recv_bytes = 0, std::int32_t root = 0) {
  CallEvent call;
  call.op = op;
  call.bytes = bytes;
  call.recv_bytes = recv_bytes;
  call.root = root;
  return call;
}

/// The same call of all ranks.
Result run(std::uint32_t ranks, const CallEvent& call, Time reduce_ps_per_kib = 0) {
  Program p(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) p.add(r, call);
  Machine machine = crossbar(ranks);
  machine.lookahead = 0;  // links serve who comes first: what a rank sends first is the first of the other's as well
  machine.message.reduce_ps_per_kib = reduce_ps_per_kib;
  return p.run(machine);
}

constexpr Time kReduce = 3 * kUs;  // a KiB

TEST(Combining, FollowsEveryMessageOfAReduction) {
  const auto takes = [](Op op, std::uint64_t bytes) { return run(4, call_of(op, bytes), kReduce).makespan; };
  EXPECT_EQ(takes(Op::allreduce, kKib), 2 * (kLatency + kPerKib + kReduce));  // recursive doubling
  EXPECT_EQ(takes(Op::reduce, kKib), 2 * (kLatency + kPerKib + kReduce));     // 3 to 2, 2 to 0
  EXPECT_EQ(takes(Op::reduce_scatter, 4 * kKib), 2 * kLatency + 3 * (kPerKib + kReduce));  // half of it, and a quarter
  EXPECT_EQ(takes(Op::reduce_scatter_block, 4 * kKib), 2 * kLatency + 3 * (kPerKib + kReduce));
  EXPECT_EQ(takes(Op::scan, kKib), 3 * (kLatency + kPerKib + kReduce));
  EXPECT_EQ(takes(Op::exscan, kKib), 3 * (kLatency + kPerKib + kReduce));
  EXPECT_EQ(takes(Op::bcast, kKib), 2 * (kLatency + kPerKib)) << "nothing is combined";
  EXPECT_EQ(takes(Op::allgather, kKib), 2 * kLatency + 3 * kPerKib) << "nothing is combined";
}

TEST(Combining, TakesAsLongWhereAllHadCome) {
  Program p(4);
  p.compute(1'000'000);
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, call_of(Op::reduce, kKib));
  Machine machine = crossbar(4);
  machine.message.reduce_ps_per_kib = kReduce;
  EXPECT_EQ(p.run(machine).makespan, 1 * kMs + 2 * kReduce);
}

TEST(Combining, IsPartOfWhatARequestWaitsFor) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) {
    const std::uint32_t request = 0;
    CallEvent call = call_of(Op::iallreduce, kKib);
    call.requests = {&request, 1};
    p.add(r, call).wait(r, Op::wait, {0});
  }
  Machine machine = crossbar(4);
  machine.message.reduce_ps_per_kib = kReduce;
  EXPECT_EQ(p.run(machine).makespan, 2 * (kLatency + kPerKib + kReduce));
}

TEST(Blocks, OfAScatterAreWhatEachReceives) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, r == 2 ? call_of(Op::scatter, 4 * kKib, 0, 2) : call_of(Op::scatter, 0, kKib, 2));  // the root in place
  const Result result = p.run(crossbar(4));
  EXPECT_EQ(result.makespan, kLatency + 3 * kPerKib);
  EXPECT_EQ(result.messages, 3u);
}

TEST(Blocks, OfDifferentSizesGoRoundAsTheirMean) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, call_of(Op::allgatherv, r == 0 ? 4 * kKib : 0, 4 * kKib));
  EXPECT_EQ(p.run(crossbar(4)).makespan, 3 * (kLatency + kPerKib));
  EXPECT_EQ(run(4, call_of(Op::allgatherv, kKib)).messages, 12u) << "round a ring";
  EXPECT_EQ(run(4, call_of(Op::allgather, kKib)).messages, 8u) << "by recursive doubling";
}

TEST(Blocks, OfDifferentSizesGoStraightToTheirRanks) {
  EXPECT_EQ(run(64, call_of(Op::gatherv, kKib)).makespan, kLatency + 63 * kPerKib);
  EXPECT_EQ(run(64, call_of(Op::gather, kKib)).makespan, 6 * kLatency + 63 * kPerKib) << "up a tree, whose last step has half of all";
  EXPECT_EQ(run(16, call_of(Op::alltoallv, 16 * 100)).messages, 16u * 15) << "where the trace has no counts";
  EXPECT_EQ(run(16, call_of(Op::alltoallw, 16 * 100)).messages, 16u * 15);
  EXPECT_EQ(run(16, call_of(Op::alltoall, 16 * 100)).messages, 16u * 4) << "by Bruck's algorithm";
  Program p(16);
  for (std::uint32_t r = 0; r < 16; ++r) p.add(r, call_of(Op::scatterv, r == 0 ? 16 * 128 : 0, 128));
  EXPECT_EQ(p.run(crossbar(16)).makespan, kLatency + 15 * kPerKib / 8);
}

TEST(Blocks, AreUnderWayTogetherOrOneAfterTheOther) {
  EXPECT_EQ(run(4, call_of(Op::alltoall, 4 * kKib)).makespan, kLatency + 3 * kPerKib) << "all at once";
  EXPECT_EQ(run(4, call_of(Op::alltoall, 12 * kKib)).makespan, 3 * (kLatency + 3 * kPerKib)) << "pairwise";
}

TEST(Blocks, OfAnExchangeWithCountsTakeTheirBytes) {
  Program p(3);
  for (std::uint32_t r = 0; r < 3; ++r) {  // 1 KiB to the next rank, 5 to the one after, and what stays
    std::vector<std::uint64_t> sent(3, 64 * kKib), received(3, 64 * kKib);
    sent[(r + 1) % 3] = received[(r + 2) % 3] = kKib;
    sent[(r + 2) % 3] = received[(r + 1) % 3] = 5 * kKib;
    CallEvent call = call_of(Op::alltoallv, 70 * kKib, 70 * kKib);
    call.counts = sent;
    call.recv_counts = received;
    p.add(r, call);
  }
  Machine machine = crossbar(3);
  machine.lookahead = 0;
  const Result result = p.run(machine);
  EXPECT_EQ(result.messages, 6u);
  EXPECT_EQ(result.makespan, kLatency + 6 * kPerKib);
  Program from_one(3);  // 1 KiB to rank 1, which computes when it has it, then 5 to rank 2
  for (std::uint32_t r = 0; r < 3; ++r) {
    const std::vector<std::uint64_t> none(3, 0), sent{0, kKib, 5 * kKib}, received{r == 0 ? 0 : sent[r], 0, 0};
    CallEvent call = call_of(Op::alltoallv, r == 0 ? 6 * kKib : 0, received[0]);
    call.counts = r == 0 ? sent : none;
    call.recv_counts = received;
    from_one.add(r, call);
  }
  from_one.compute(1'000'000).p2p(1, Op::send, trace::kNullPeer, 0);
  EXPECT_EQ(from_one.run(machine).makespan, kLatency + kPerKib + 1 * kMs);
}

std::uint64_t messages_of_nothing(Op op, const std::string& library) {
  Program p(4);
  p.source().edit().mpi_version = library;
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, call_of(op, 0, 0, 3));
  return p.run(crossbar(4)).messages;
}

TEST(Nothing, IsMovedByNobody) {
  for (const Op op : {Op::bcast, Op::reduce, Op::allreduce, Op::gather, Op::scatter, Op::scatterv, Op::allgather, Op::allgatherv, Op::alltoall,
                      Op::reduce_scatter, Op::reduce_scatter_block, Op::scan, Op::exscan}) {
    EXPECT_EQ(messages_of_nothing(op, "Open MPI v4.1.4"), 0u) << trace::op_name(op);
    if (op == Op::scatterv) continue;
    EXPECT_GT(messages_of_nothing(op, ""), 0u) << "another tool may have left out the size of " << trace::op_name(op);
  }
  EXPECT_GT(messages_of_nothing(Op::barrier, "Open MPI v4.1.4"), 0u);
}

}  // namespace
}  // namespace fallow::sim
