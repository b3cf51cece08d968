// Programs whose ranks do not agree, and those that a trace does not tell enough of.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

std::string why(Program& p, const Machine& machine, unsigned threads = 1) {
  try {
    p.run(machine, {}, threads);
  } catch (const SimError& e) {
    return e.what();
  }
  return "";
}

std::string why(Program& p, std::uint32_t ranks, unsigned threads = 1) {
  Machine machine = crossbar(ranks);
  machine.domains = threads;
  return why(p, machine, threads);
}

bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

TEST(Differing, CollectivesAreNamed) {
  for (const unsigned threads : {1u, 2u}) {
    Program p(4);
    p.collective(0, Op::bcast, 8);
    for (std::uint32_t r = 1; r < 4; ++r) p.collective(r, Op::barrier, 0);
    const std::string text = why(p, 4, threads);
    EXPECT_TRUE(says(text, "Ranks make different collective calls: world rank ")) << text;
    EXPECT_TRUE(says(text, "MPI_Barrier number 1 on communicator ") && says(text, "rank 0 makes another one")) << text;
  }
}

TEST(Differing, RootsAreNamedThoughNobodyWaits) {
  Program p(2);
  p.collective(0, Op::barrier, 0).collective(1, Op::barrier, 0).collective(0, Op::bcast, 8, 0).collective(1, Op::bcast, 8, 1);
  const std::string text = why(p, 2);
  EXPECT_TRUE(says(text, "MPI_Bcast number 2") && says(text, "or with another root")) << text;
}

TEST(Differing, APartThatWasCutOutIsTold) {
  for (const bool cut : {false, true}) {
    Program p(2);
    p.collective(0, Op::bcast, 8, 0);
    p.source().edit().ranks[1].left_out = cut ? 3 : 0;
    const std::string text = why(p, 2);
    EXPECT_TRUE(says(text, "MPI_Bcast number 1") && says(text, "rank 1 makes none")) << text;
    EXPECT_EQ(says(text, "\nThe trace was cut out of a longer one: a replay needs the whole."), cut) << text;
  }
}

TEST(Differing, WhoIsNobodyIsNotWaitedFor) {
  Program to_nobody(1), from_nobody(2);
  EXPECT_TRUE(says(why(to_nobody.sendrecv(0, trace::kNullPeer, 0, 8), 1), "in MPI_Sendrecv (call 1) for a message from rank 0, tag 0, communicator 1"));
  from_nobody.sendrecv(0, 1, trace::kNullPeer, 1 << 20);
  EXPECT_TRUE(says(why(from_nobody, 2), "in MPI_Sendrecv (call 1) to rank 1, tag 0, communicator 1"));
}

TEST(Differing, WhoIsToReceiveIsNamed) {
  for (const unsigned threads : {1u, 2u}) {
    Program p(2);
    p.p2p(0, Op::isend, 1, 1 << 20, 5, 0).wait(0, Op::wait, {0});
    EXPECT_TRUE(says(why(p, 2, threads), "rank 0 in MPI_Wait (call 2) for world rank 1 to receive its message, tag 5, communicator 1 at ")) << threads;
  }
}

/// What is told of sizes where the replay comes to its end.
UnlikeSizes sizes(Program& p, std::uint32_t ranks) {
  const Machine machine = crossbar(ranks);
  Engine engine(machine, {}, p.source());
  Recorder recorder(ranks, 1, nullptr, true);
  engine.record(recorder);
  engine.run();
  return engine.details().unlike_sizes;
}

TEST(Differing, SizesAreToldThoughNobodyWaits) {
  for (const Op op : {Op::bcast, Op::reduce, Op::allreduce, Op::gather, Op::allgather, Op::alltoall, Op::scan, Op::reduce_scatter_block}) {
    Program p(3);
    for (const std::uint64_t bytes : {24, 48}) {
      for (std::uint32_t r = 0; r < 3; ++r) p.collective(r, op, r == 2 ? 48 : bytes, 0);
    }
    const UnlikeSizes found = sizes(p, 3);
    EXPECT_EQ(found.count, 1u) << trace::op_name(op);
    EXPECT_EQ(found.op, op);
    EXPECT_EQ(found.comm, trace::kCommWorld);
    EXPECT_EQ(found.before.rank + found.then.rank, found.before.rank == 0 || found.then.rank == 0 ? 2u : 3u);  // rank 2 and another one
    EXPECT_EQ(found.before.call, 1u);
    EXPECT_EQ(std::max(found.before.bytes, found.then.bytes), 2 * std::min(found.before.bytes, found.then.bytes));
  }
}

TEST(Differing, SizesThatTheTraceDoesNotTellAreNone) {
  Program p(3);
  for (std::uint32_t r = 0; r < 3; ++r) p.collective(r, Op::bcast, r == 1 ? 0 : 8, 1).collective(r, Op::gatherv, r + 8, 0).collective(r, Op::barrier, r);
  for (std::uint32_t r = 0; r < 3; ++r) p.collective(r, r == 2 ? Op::iallreduce : Op::allreduce, r < 2 ? 8 : 16, 0);
  const UnlikeSizes found = sizes(p, 3);
  EXPECT_EQ(found.count, 1u);
  EXPECT_EQ(found.then.call + found.before.call, 8u);
}

TEST(Differing, SizesAreNamedWhereRanksWait) {  // of which each goes by another algorithm
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) p.collective(r, Op::allreduce, r == 1 ? 1'000'000 : 8);
  const Machine machine = crossbar(4);
  Engine engine(machine, {}, p.source());
  Recorder recorder(4, 1, nullptr, true);
  engine.record(recorder);
  try {
    engine.run();
    FAIL();
  } catch (const SimError& e) {
    EXPECT_TRUE(says(e.what(), "Ranks name different sizes for a collective call: MPI_Allreduce on communicator 1 with 8 bytes on rank 0 (call 1) and "
                               "1000000 bytes on rank 1 (call 1).")) << e.what();
  }
}

TEST(Differing, WhoIsWaitedForInACollectiveIsNamed) {
  Program p(3);  // rank 2 sends nothing to rank 1, which expects it
  const std::vector<std::uint64_t> all{8, 8, 8}, none{8, 0, 8};
  for (std::uint32_t r = 0; r < 3; ++r) {
    CallEvent call;
    call.op = Op::alltoallv;
    call.bytes = call.recv_bytes = 24;
    call.counts = r == 2 ? none : all;
    call.recv_counts = all;
    p.add(r, call);
  }
  EXPECT_TRUE(says(why(p, 3), "\n  rank 1 in MPI_Alltoallv (call 1) on communicator 1 for world rank 2 at ")) << why(p, 3);
  Program q(2);
  const std::uint32_t request = 4;
  CallEvent begin;
  begin.op = Op::ibcast;
  begin.bytes = 8;
  begin.root = 0;
  begin.requests = {&request, 1};
  q.add(1, begin).wait(1, Op::wait, {request});
  EXPECT_TRUE(says(why(q, 2), "rank 1 in MPI_Wait (call 2) for world rank 0 in a collective call on communicator 1 at ")) << why(q, 2);
}

TEST(Differing, ACollectiveThatARankNeverMakes) {
  Program p(2);
  p.collective(0, Op::bcast, 8, 0);
  EXPECT_TRUE(says(why(p, 2), "for which rank 1 makes none"));
}

TEST(Differing, NotWhereAMessageOfALaterStepCameFirst) {
  Program p(3);  // rank 0 never comes to the barrier, of which rank 1 has a later step's message before the first one's
  p.p2p(0, Op::recv, 1, 4, 1).collective(0, Op::barrier, 0);
  p.collective(1, Op::barrier, 0).collective(2, Op::barrier, 0);
  const std::string text = why(p, 3);
  EXPECT_TRUE(says(text, "3 of 3 ranks") && !says(text, "different")) << text;
}

TEST(Differing, NotWhereATraceEndsEarly) {
  Program p(2);
  p.collective(0, Op::bcast, 8, 0);
  p.source().edit().ranks[1].complete = false;
  EXPECT_EQ(why(p, 2), "");
}

/// Makes a persistent broadcast (request 0), a barrier (1) and an allreduce (2).
void make_persistent(Program& p, std::uint32_t ranks) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::uint32_t request = 0;
    for (const Op op : {Op::bcast_init, Op::barrier_init, Op::allreduce_init}) {
      CallEvent call;
      call.op = op;
      call.bytes = op == Op::barrier_init ? 0 : 200'000;
      call.root = op == Op::bcast_init ? 0 : -1;
      call.requests = {&request, 1};
      p.add(r, call);
      ++request;
    }
  }
}

TEST(Differing, PersistentCollectivesMayStartInAnyOrder) {
  Program p(4);
  make_persistent(p, 4);
  std::vector<std::uint32_t> order = {0, 1, 2};
  for (int i = 0; i < 3; ++i) {
    for (std::uint32_t r = 0; r < 4; ++r) {
      std::next_permutation(order.begin(), order.end());
      p.on_requests(r, Op::startall, order).collective(r, Op::allreduce, 200'000).wait(r, Op::waitall, {0, 1, 2});
    }
  }
  EXPECT_EQ(why(p, 4), "");
}

TEST(Differing, PersistentCollectivesThatNotAllStart) {
  for (const bool ends : {true, false}) {
    Program p(2);
    make_persistent(p, 2);
    p.on_requests(0, Op::start, {1}).wait(0, Op::wait, {1});
    if (!ends) p.on_requests(1, Op::start, {2}).wait(1, Op::wait, {2});
    EXPECT_TRUE(says(why(p, 2), "rank 0 in MPI_Wait (call 5)")) << why(p, 2);
    EXPECT_EQ(says(why(p, 2), "world rank 0 its persistent MPI_Barrier number 2 on communicator 1, for which rank 1 starts none"), ends) << why(p, 2);
  }
}

TEST(Differing, ThousandsOfCollectivesAreToldApart) {
  Program p(2);
  for (int i = 0; i < 40'000; ++i) {
    for (std::uint32_t r = 0; r < 2; ++r) p.collective(r, i % 3 == 0 ? Op::bcast : Op::allreduce, 8, i % 2);
  }
  EXPECT_EQ(why(p, 2), "");
}

TEST(Unknown, WhatAReceiveFromAnySourceHadTakenIsSaid) {
  Program p(3);  // took what rank 1 sent, which is later here
  p.p2p(0, Op::irecv, trace::kAnyPeer, 4, 1, 0).wait(0, Op::wait, {0}).p2p(0, Op::recv, 2, 4, 1);
  p.p2p(2, Op::send, 0, 4, 1).compute(5'000'000).p2p(1, Op::send, 0, 4, 1);
  EXPECT_TRUE(says(why(p, 3), "Non-blocking receives from any source"));
}

TEST(Unknown, WhetherAReceiveWasCancelledInTimeIsSaid) {
  Program p(2);
  p.p2p(1, Op::send, 0, 4, 1).p2p(0, Op::irecv, 1, 4, 1, 0).compute(5'000'000).on_requests(0, Op::cancel, {0}).wait(0, Op::wait, {0});
  p.p2p(0, Op::recv, 1, 4, 1);
  EXPECT_TRUE(says(why(p, 2), "which receives were cancelled in time"));
}

/// The same programs where the trace tells what became of the requests.
TEST(Told, WhatAReceiveFromAnySourceHadTaken) {
  Program p(3);
  p.p2p(0, Op::irecv, trace::kAnyPeer, 4, trace::kAnyTag, 0).wait(0, {0}, {{trace::kOutcomeFrom + 1, 1}}).p2p(0, Op::recv, 2, 4, 1);
  p.p2p(2, Op::send, 0, 4, 1).compute(5'000'000).p2p(1, Op::send, 0, 4, 1);
  EXPECT_EQ(why(p, 3), "");
}

TEST(Told, WhatAPersistentReceiveHadTakenEachTime) {
  Program p(3);
  p.p2p(0, Op::recv_init, trace::kAnyPeer, 4, trace::kAnyTag, 0);
  for (const std::uint64_t from : {1, 2}) {
    p.on_requests(0, Op::start, {0}).wait(0, {0}, {{trace::kOutcomeFrom + from, 1}}).p2p(0, Op::recv, static_cast<std::int32_t>(from), 4, 1);
  }
  p.on_requests(0, Op::start, {0}).on_requests(0, Op::cancel, {0}).wait(0, {0}, {{trace::kOutcomeCancelled, 0}});
  for (int i = 0; i < 2; ++i) p.p2p(2, Op::send, 0, 4, 1);
  for (int i = 0; i < 2; ++i) p.compute(5'000'000).p2p(1, Op::send, 0, 4, 1);
  EXPECT_EQ(why(p, 3), "");
}

TEST(Told, WhetherAReceiveWasCancelledInTime) {
  for (const auto outcome : {trace::kOutcomeCancelled, trace::kOutcomeMatched}) {
    Program p(2);  // each time the message is where the replay by itself would not have it
    const bool in_time = outcome == trace::kOutcomeCancelled;
    p.compute(in_time ? 0 : 9'000'000).p2p(1, Op::send, 0, 4, 1).p2p(0, Op::irecv, 1, 4, 1, 0).compute(5'000'000);
    p.on_requests(0, Op::cancel, {0}).wait(0, {0}, {{outcome, 0}});
    if (in_time) p.p2p(0, Op::recv, 1, 4, 1);
    if (!in_time) p.p2p(1, Op::send, 0, 4, 2).p2p(0, Op::recv, 1, 4, 2);
    EXPECT_EQ(why(p, 2), "");
  }
}

TEST(Unknown, MessagesThatAreNeverReceivedAreCounted) {
  for (const unsigned threads : {1u, 2u}) {
    Program p(4);
    for (const std::uint32_t r : {1u, 2u, 3u}) p.p2p(r, Op::send, r == 1 ? 3 : 2, 4, static_cast<std::int32_t>(r)).p2p(r, Op::send, 0, 4, 9);
    p.p2p(2, Op::recv, 2, 4, 2);
    for (int i = 0; i < 3; ++i) p.p2p(0, Op::recv, trace::kAnyPeer, 4, 9);
    for (std::uint32_t r = 0; r < 4; ++r) p.collective(r, Op::barrier, 0);
    Machine machine = crossbar(4);
    machine.domains = threads;
    const Result result = p.run(machine, {}, threads);
    EXPECT_EQ(result.unreceived.count, 2u);  // of rank 1 to 3, and of rank 3 to 2
    EXPECT_EQ(result.unreceived.source, 3u);
    EXPECT_EQ(result.unreceived.target, 2u);
    EXPECT_EQ(result.unreceived.tag, 3);
    EXPECT_NE(to_json(result).find("\"unreceived\":{\"count\":2,\"source\":3,\"target\":2,\"communicator\":1,\"tag\":3}"), std::string::npos);
  }
}

TEST(Calls, EmptyBlocksAreNotSent) {
  std::uint64_t messages[3] = {};
  std::size_t kind = 0;
  for (const Op op : {Op::scatterv, Op::iscatterv, Op::scatterv_init}) {
    Program p(4);
    const std::vector<std::uint64_t> blocks = {0, 500, 0, 700};
    const std::vector<std::uint32_t> request = {0};
    for (std::uint32_t r = 0; r < 4; ++r) {
      CallEvent call;
      call.op = op;
      call.root = 2;
      if (r == 2) call.bytes = 1'200, call.counts = blocks;
      call.recv_bytes = blocks[r];
      if (op != Op::scatterv) call.requests = request;
      p.add(r, call);
      if (op == Op::scatterv_init) p.on_requests(r, Op::start, {0});
      if (op != Op::scatterv) p.wait(r, Op::wait, {0});
      if (op == Op::scatterv_init) p.on_requests(r, Op::request_free, {0});
      p.collective(r, Op::barrier, 0);
    }
    const Result result = p.run(crossbar(4));
    messages[kind++] = result.messages;
  }
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[2], messages[0] + 1) << "whose counts are not known when it starts";
}

TEST(Unknown, MoreTimeThanTheClockHasIsRefused) {
  Program p(1);
  for (int i = 0; i < 8; ++i) p.compute(std::int64_t{300'000} * 1'000'000'000).collective(0, Op::barrier, 0);
  EXPECT_TRUE(says(why(p, 1), "more than 26 days of simulated time have passed, the most that a replay can hold; take a shorter run"));
  EXPECT_TRUE(says(why(p, 1), "rank 0, call 8, MPI_Barrier: "));
}

TEST(Unknown, MessagesTakeAsLongAsTheirBytesOrAreRefused) {
  constexpr std::uint64_t kBytes = 100'000'000'000'000;  // whose bits, times those of a rate, are more than 64
  for (const std::uint32_t per_node : {1u, 2u}) {
    Machine machine = crossbar(2, per_node);
    machine.contention = Contention::none;
    Program p(2);
    p.p2p(0, Op::send, 1, kBytes).p2p(1, Op::recv, 0, kBytes);
    const Time rate = per_node == 1 ? machine.link.ps_per_kib : machine.node.memory_ps_per_kib;
    EXPECT_EQ(p.run(machine).makespan / kMs, static_cast<Time>(kBytes >> 10) * rate / kMs);
    Program longer(2);
    longer.p2p(0, Op::send, 1, 10 * kBytes).p2p(1, Op::recv, 0, 10 * kBytes);
    const std::string text = why(longer, machine);
    EXPECT_TRUE(says(text, "rank 0, call 1, MPI_Send: a message of 1000000000000000 bytes takes longer than can be simulated")) << text;
    Program many(2);
    for (int i = 0; i < 200; ++i) many.p2p(0, Op::send, 1, 2 * kBytes).p2p(1, Op::recv, 0, 2 * kBytes);
    EXPECT_TRUE(says(why(many, machine), "take smaller messages, or a faster network")) << why(many, machine);
  }
}

}  // namespace
}  // namespace fallow::sim
