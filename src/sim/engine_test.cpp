// The engine against closed forms, and what it does with every kind of call.
#include "sim/engine.hpp"

#include <gtest/gtest.h>

#include "sim/synth.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

TEST(ClosedForm, PingPong) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1024}, std::uint64_t{65536}}) {
    Program p(2);
    for (int i = 0; i < 10; ++i) {
      p.p2p(0, Op::send, 1, bytes).p2p(0, Op::recv, 1, bytes);
      p.p2p(1, Op::recv, 0, bytes).p2p(1, Op::send, 0, bytes);
    }
    const Time wire = static_cast<Time>(bytes / 1024) * kPerKib;
    EXPECT_EQ(p.run(crossbar(2)).makespan, 20 * (kLatency + wire)) << bytes;
  }
}

TEST(ClosedForm, LongMessageIsAnnouncedClearedAndSent) {
  Program p(2);
  constexpr std::uint64_t kBytes = 1 << 20;
  p.p2p(0, Op::send, 1, kBytes).compute(5000).p2p(1, Op::recv, 0, kBytes);
  // The receive comes after the announcement: answer and data remain.
  EXPECT_EQ(p.run(crossbar(2)).makespan, 5 * kUs + 2 * kLatency + 1024 * kPerKib);
}

TEST(ClosedForm, Pipeline) {
  // Every rank passes ten messages on: the last has gone through the chain after 10 + 3 - 1 slots.
  Program p(4);
  constexpr std::uint64_t kBytes = 32768;
  for (int i = 0; i < 10; ++i) {
    p.p2p(0, Op::send, 1, kBytes);
    for (std::uint32_t r = 1; r < 3; ++r) {
      p.p2p(r, Op::recv, static_cast<std::int32_t>(r) - 1, kBytes).p2p(r, Op::send, static_cast<std::int32_t>(r) + 1, kBytes);
    }
    p.p2p(3, Op::recv, 2, kBytes);
  }
  EXPECT_EQ(p.run(crossbar(4)).makespan, 3 * kLatency + (10 + 2) * 32 * kPerKib);
}

TEST(ClosedForm, SaturatedLink) {
  // Seven ranks send to one: its link is busy without a gap from the first byte on.
  Program p(8);
  constexpr std::uint64_t kBytes = 8192;
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t r = 1; r < 8; ++r) {
      p.p2p(r, Op::send, 0, kBytes);
      p.p2p(0, Op::recv, static_cast<std::int32_t>(r), kBytes);
    }
  }
  const Result result = p.run(crossbar(8));
  EXPECT_EQ(result.makespan, kLatency + 20 * 7 * 8 * kPerKib);
  EXPECT_EQ(result.edge.busy, 2 * 20 * 7 * 8 * kPerKib);
}

TEST(ClosedForm, LongMessagesShareALink) {
  // Two rendezvous messages to one node interleave in trains: both end within a train of each other.
  Program p(3);
  constexpr std::uint64_t kBytes = 1 << 20;
  p.p2p(0, Op::irecv, 1, kBytes, 0, 0).p2p(0, Op::irecv, 2, kBytes, 0, 1).wait(0, Op::waitall, {0, 1});
  p.p2p(1, Op::send, 0, kBytes).p2p(2, Op::send, 0, kBytes);
  const Result result = p.run(crossbar(3));
  EXPECT_EQ(result.makespan, 3 * kLatency + 2 * 1024 * kPerKib);
}

TEST(ClosedForm, BinomialBroadcast) {
  Program p(16);
  for (std::uint32_t r = 0; r < 16; ++r) p.collective(r, Op::bcast, 1024);
  // The root's sends follow each other; the longest way has four messages, the last one sent first.
  const Result result = p.run(crossbar(16));
  EXPECT_EQ(result.messages, 15u);
  EXPECT_EQ(result.makespan, 4 * (kLatency + kPerKib));
}

TEST(ClosedForm, MemoryOfANode) {
  Program p(2);
  p.p2p(0, Op::send, 1, 2048).p2p(1, Op::recv, 0, 2048);
  Machine machine = crossbar(1, 2);
  EXPECT_EQ(p.run(machine).makespan, machine.node.memory_latency + 2 * machine.node.memory_ps_per_kib);
}

TEST(ClosedForm, WhatMessagesCostTheirCores) {
  Machine machine = crossbar(2);
  machine.message.overhead = 5 * kUs;
  machine.message.receive_overhead = 2 * kUs;
  machine.message.unexpected = 11 * kUs;
  machine.message.match = 3 * kUs;
  Program waited(2);
  waited.p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  EXPECT_EQ(waited.run(machine).makespan, 5 * kUs + kLatency + kPerKib + 3 * kUs);
  Program late(2);
  late.p2p(0, Op::send, 1, 1024).compute(1000000).p2p(1, Op::recv, 0, 1024);
  EXPECT_EQ(late.run(machine).makespan, kMs + 2 * kUs + 11 * kUs + 3 * kUs);
  machine.message.receive_overhead = -1;  // not told: a receive costs what a send costs
  EXPECT_EQ(late.run(machine).makespan, kMs + 5 * kUs + 11 * kUs + 3 * kUs);
}

TEST(ClosedForm, WithoutContentionOnlyTheCardCounts) {
  Program p(3);
  p.p2p(0, Op::irecv, 1, 0, 0, 0).p2p(0, Op::irecv, 2, 0, 0, 1).wait(0, Op::waitall, {0, 1});
  p.p2p(1, Op::send, 0, 65536).p2p(2, Op::send, 0, 65536);
  Machine machine = crossbar(3);
  EXPECT_EQ(p.run(machine).makespan, kLatency + 2 * 64 * kPerKib);
  machine.contention = Contention::none;
  EXPECT_EQ(p.run(machine).makespan, kLatency + 64 * kPerKib);
}

TEST(ClosedForm, FasterCpu) {
  Program p(1);
  p.compute(1000000).collective(0, Op::barrier, 0);
  Machine machine = crossbar(1);
  machine.node.compute_ps_per_ns = 500;
  EXPECT_EQ(p.run(machine).makespan, kMs / 2);
  machine.node.compute_ps_per_ns = 1000 / 700.0;  // no whole number of picoseconds
  EXPECT_EQ(p.run(machine).makespan, 1'428'571);
}

TEST(Calls, RequestsOfEveryKind) {
  Program p(2);
  p.p2p(0, Op::irecv, 1, 100, 7, 0).p2p(0, Op::irecv, trace::kAnyPeer, 100, trace::kAnyTag, 1);
  p.p2p(0, Op::issend, 1, 10, 3, 2).wait(0, Op::test, {}).wait(0, Op::waitany, {1}).wait(0, Op::waitsome, {0, 2});
  p.compute(3000).p2p(1, Op::send, 0, 100, 8).p2p(1, Op::send, 0, 100, 7).p2p(1, Op::ibsend, 0, 1 << 20, 9, 0);
  p.wait(1, Op::wait, {0}).compute(50000).p2p(1, Op::recv, 0, 10, 3);
  p.p2p(0, Op::probe, 1, 0, 9).p2p(0, Op::recv, 1, 1 << 20, 9);
  const Result result = p.run(crossbar(2));
  EXPECT_GT(result.makespan, 53 * kUs);
  EXPECT_EQ(result.calls, 13u);
}

TEST(Calls, PersistentRequestsCancelAndFree) {
  Program p(2);
  p.p2p(0, Op::send_init, 1, 64, 1, 0).p2p(0, Op::recv_init, 1, 64, 2, 1);
  p.p2p(1, Op::recv_init, 0, 64, 1, 4).p2p(1, Op::ssend_init, 0, 64, 2, 5);
  for (int i = 0; i < 5; ++i) {
    p.on_requests(0, Op::startall, {0, 1}).wait(0, Op::waitall, {0, 1});
    p.on_requests(1, Op::startall, {4, 5}).wait(1, Op::waitall, {4, 5});
  }
  p.on_requests(0, Op::start, {1}).on_requests(0, Op::cancel, {1}).wait(0, Op::wait, {1});
  p.on_requests(0, Op::request_free, {0}).on_requests(0, Op::request_free, {1});
  p.p2p(0, Op::irecv, 1, 0, 99, 0).on_requests(0, Op::cancel, {0}).wait(0, Op::wait, {0});
  EXPECT_GT(p.run(crossbar(2)).makespan, 5 * kLatency);
}

TEST(Calls, CollectivesOfEveryKindOnEveryLibrary) {
  for (const auto library : {coll::Library::openmpi, coll::Library::mpich}) {
    for (const std::uint32_t ranks : {2u, 7u, 16u}) {
      Program p(ranks);
      trace::Comm odd;
      for (std::uint32_t r = 1; r < ranks; r += 2) odd.group.append(static_cast<std::int32_t>(r), 1, 1);
      const std::uint32_t comm = p.source().edit().comms.add(odd);
      for (std::uint32_t r = 0; r < ranks; ++r) {
        for (const Op op : {Op::barrier, Op::bcast, Op::reduce, Op::allreduce, Op::gather, Op::scatter, Op::allgather, Op::alltoall,
                            Op::reduce_scatter, Op::scan, Op::exscan, Op::comm_split, Op::win_fence}) {
          for (const std::uint64_t bytes : {8u, 20000u, 1000000u}) {
            CallEvent call;
            call.op = op;
            call.bytes = op == Op::scatter && r != 1 ? 0 : bytes * (op == Op::alltoall || op == Op::scatter ? ranks : 1);
            call.recv_bytes = bytes;
            call.root = 1;
            p.add(r, call);
          }
        }
        if (r % 2 == 1) p.collective(r, Op::allreduce, 8, 0, comm);
      }
      Machine machine = crossbar((ranks + 1) / 2, 2);
      machine.collectives = library;
      EXPECT_GT(p.run(machine).makespan, 0);
    }
  }
}

TEST(Calls, NonBlockingCollectivesOverlap) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      CallEvent call;
      call.op = i == 1 ? Op::ibcast : Op::iallreduce;
      call.bytes = 100000;
      call.root = 2;
      call.requests = {&i, 1};
      p.add(r, call);
    }
    p.compute(1000 * r).wait(r, Op::waitall, {2, 0, 1});
  }
  EXPECT_GT(p.run(crossbar(4)).makespan, kLatency);
}

TEST(Calls, BarriersHaveNoDataAndScattervMayHaveNone) {
  const auto takes = [](Op op, std::uint64_t bytes) {
    Program p(4);
    for (std::uint32_t r = 0; r < 4; ++r) p.collective(r, op, bytes);
    return p.run(crossbar(4)).makespan;
  };
  EXPECT_EQ(takes(Op::barrier, 1 << 20), takes(Op::barrier, 0));
  EXPECT_EQ(takes(Op::scatterv, 0), 0);  // of other tools, without counts
}

TEST(Calls, OneSided) {
  Program p(2);
  p.p2p(0, Op::put, 1, 1 << 16).p2p(0, Op::get, 1, 1 << 16).collective(0, Op::win_fence, 0);
  p.collective(1, Op::win_fence, 0);
  EXPECT_EQ(p.run(crossbar(2)).makespan, 3 * kLatency + 64 * kPerKib + 64 * kPerKib - kLatency);
}

TEST(Deadlock, NamesRanksCallsAndWhatTheyWaitFor) {
  Program p(3);
  p.p2p(0, Op::send, 1, 4, 5).p2p(0, Op::recv, 1, 4, 5).p2p(1, Op::recv, 0, 4, 6).p2p(2, Op::irecv, 0, 1, 2, 0).wait(2, Op::waitall, {0});
  try {
    p.run(crossbar(3));
    FAIL() << "no deadlock found";
  } catch (const SimError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("3 of 3 ranks"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 0 in MPI_Recv (call 2) for a message from rank 1, tag 5"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 in MPI_Recv (call 1) for a message from rank 0, tag 6"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2 in MPI_Waitall (call 2) for a message from world rank 0, tag 2"), std::string::npos) << text;
  }
}

TEST(Deadlock, TellsOfCallsThatReturnedAnError) {
  Program p(2);
  CallEvent failed;
  failed.op = Op::recv;
  failed.flags = trace::kEventFailed;
  p.add(1, failed);
  EXPECT_EQ(p.run(crossbar(2)).refused, 1u);
  p.p2p(0, Op::ssend, 1, 4);
  try {
    p.run(crossbar(2));
    FAIL() << "no deadlock found";
  } catch (const SimError& e) {
    EXPECT_NE(std::string(e.what()).find("1 call that returned an error is left out"), std::string::npos) << e.what();
  }
}

TEST(Deadlock, OfSendsThatWaitForEachOther) {
  Program p(2);
  p.p2p(0, Op::send, 1, 1 << 20).p2p(0, Op::recv, 1, 0).p2p(1, Op::send, 0, 1 << 20).p2p(1, Op::recv, 0, 0);
  EXPECT_THROW(p.run(crossbar(2)), SimError);
  Program q(2);
  q.sendrecv(0, 1, 1, 1 << 20).p2p(1, Op::recv, 0, 0).p2p(1, Op::send, 0, 1 << 20);
  EXPECT_GT(q.run(crossbar(2)).makespan, 0);
}

TEST(Truncated, SaysWhoseTraceEnds) {
  Program p(2);
  p.p2p(0, Op::recv, 1, 4).p2p(0, Op::recv, 1, 4).p2p(1, Op::send, 0, 4);
  p.source().edit().ranks[1].complete = false;
  try {
    p.run(crossbar(2));
    FAIL();
  } catch (const SimError& e) {
    EXPECT_NE(std::string(e.what()).find("ends early for:\n  rank 1 after call 1"), std::string::npos) << e.what();
  }
}

TEST(Truncated, SaysThatRanksWereCutOut) {
  Program p(3);
  p.p2p(0, Op::recv, 1, 4);
  try {
    p.run(crossbar(3));
    FAIL();
  } catch (const SimError& e) {
    EXPECT_NE(std::string(e.what()).find("\nOf 2 ranks the trace has no calls"), std::string::npos) << e.what();
  }
}

TEST(Inconsistent, IsRefusedWithItsPosition) {
  const auto refused = [](Program& p, const char* what) {
    try {
      p.run(crossbar(2));
      ADD_FAILURE() << "accepted: " << what;
    } catch (const SimError& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  };
  Program peer(2), twice(2), unknown(2), root(2), many(3);
  peer.p2p(0, Op::send, 2, 4);
  refused(peer, "rank 0, call 1, MPI_Send: names rank 2");
  twice.p2p(1, Op::irecv, 0, 4, 0, 3).p2p(1, Op::irecv, 0, 4, 0, 3);
  refused(twice, "rank 1, call 2, MPI_Irecv: creates request 3");
  unknown.wait(0, Op::wait, {5});
  refused(unknown, "waits for request 5");
  root.collective(0, Op::bcast, 4, 7);
  refused(root, "names root 7");
  refused(many, "room for 2");
}

TEST(Determinism, SameBytesTwiceWithEveryPolicy) {
  SynthOptions options;
  options.ranks = 60;
  options.iterations = 12;
  options.jitter = 0.05;
  for (const PolicyInfo& info : policies()) {
    std::string first;
    for (int i = 0; i < 2; ++i) {
      Machine machine;
      machine.topology = full_fat_tree(30, 3);
      machine.topology.routing = Routing::random;
      machine.node.ranks = 2;
      const auto source = synthesize("stencil3d", options);
      const std::string json = to_json(Engine(machine, make_policy(info.name, {}, machine), *source).run());
      if (i == 0) first = json;
      EXPECT_EQ(json, first);
    }
  }
}

TEST(Threads, SameBytesOnAnyNumber) {
  SynthOptions options;
  options.ranks = 64;
  options.iterations = 2;
  for (const char* program : {"stencil3d", "fft", "random"}) {
    for (const char* policy : {"hardware", "adaptive"}) {
      for (const std::uint64_t bytes : {std::uint64_t{8192}, std::uint64_t{70'000}}) {
        for (const Contention contention : {Contention::full, Contention::none}) {
          options.bytes = bytes;
          options.jitter = bytes == 8192 ? 0.05 : 0;
          Machine machine;
          machine.topology = parse_xgft("XGFT(3;4,2,8;1,2,2)");
          machine.contention = contention;
          machine.domains = 5;
          machine.link.latency = 1 * kUs;
          std::string alone;
          for (const unsigned threads : {1u, 2u, 3u}) {
            const auto source = synthesize(program, options);
            PolicyOptions edge_only;
            edge_only.upper_links = false;  // else predictions of all ranks below a link join, on one thread
            Engine engine(machine, make_policy(policy, edge_only, machine), *source, threads);
            ASSERT_EQ(engine.threads(), threads);
            const std::string json = to_json(engine.run());
            if (threads == 1) alone = json;
            ASSERT_EQ(json, alone) << program << ' ' << policy << ' ' << bytes << ' ' << threads;
          }
        }
      }
    }
  }
}

TEST(Threads, FailAlike) {
  for (const bool stuck : {true, false}) {
    Program p(8);
    for (std::uint32_t r = 0; r < 8; ++r) {
      p.compute(100 * (8 - r)).p2p(r, Op::sendrecv, static_cast<std::int32_t>((r + 1) % 8), 100);
      p.p2p(r, Op::recv, stuck ? static_cast<std::int32_t>((r + 3) % 8) : 9, 4);
    }
    std::string alone;
    for (const unsigned threads : {1u, 2u, 4u}) {
      Machine machine = crossbar(8);
      machine.domains = 4;
      std::string text;
      try {
        p.run(machine, {}, threads);
      } catch (const SimError& e) {
        text = e.what();
      }
      ASSERT_NE(text, "");
      if (threads == 1) alone = text;
      EXPECT_EQ(text, alone);
    }
  }
}

TEST(Threads, CallsOfEveryKindCrossBorders) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) {
    const auto next = static_cast<std::int32_t>((r + 1) % 4), last = static_cast<std::int32_t>((r + 3) % 4);
    p.p2p(r, Op::put, next, 1 << 16).p2p(r, Op::get, last, 1 << 16).p2p(r, Op::rput, next, 8, 0, 7).wait(r, Op::wait, {7});
    p.collective(r, Op::win_fence, 0);
    p.p2p(r, Op::irecv, trace::kAnyPeer, 1 << 20, 1, 0).p2p(r, Op::issend, next, 100, 2, 1).p2p(r, Op::ibsend, last, 1 << 18, 3, 2);
    p.p2p(r, Op::send, next, 1 << 20, 1).p2p(r, Op::probe, last, 0, 2).p2p(r, Op::recv, last, 100, 2).p2p(r, Op::recv, next, 1 << 18, 3);
    p.wait(r, Op::waitall, {0, 1, 2});
    p.collective(r, Op::allreduce, 1 << 20).collective(r, Op::alltoall, 1 << 22);
  }
  for (const bool tree : {true, false}) {
    Machine machine = crossbar(4);
    if (tree) machine.topology = parse_xgft("XGFT(2;1,4;1,2)");
    machine.domains = 4;
    const std::string alone = to_json(p.run(machine, {}, 1));
    EXPECT_EQ(to_json(p.run(machine, {}, 2)), alone);
    EXPECT_EQ(to_json(p.run(machine, {}, 4)), alone);
  }
}

TEST(Threads, ManyPutsCrossABorder) {
  Program p(64);
  for (std::uint32_t r = 0; r < 64; ++r) {
    for (int i = 0; i < 20; ++i) p.p2p(r, Op::put, static_cast<std::int32_t>((r + 32) % 64), 8);
    p.collective(r, Op::win_fence, 0);
  }
  Machine machine;
  machine.topology = parse_xgft("XGFT(3;4,2,8;1,2,2)");
  machine.domains = 2;
  machine.link.latency = 1 * kUs;
  EXPECT_EQ(to_json(p.run(machine, {}, 2)), to_json(p.run(machine, {}, 1)));
}

TEST(Domains, ChangeLittle) {
  SynthOptions options;
  options.ranks = 64;
  options.iterations = 10;
  options.jitter = 0.05;
  for (const char* program : {"stencil3d", "cg", "fft", "random"}) {
    const auto run = [&](std::uint32_t domains, Time lookahead) {
      Machine machine;
      machine.topology = parse_xgft("XGFT(2;8,8;1,4)");
      machine.domains = domains;
      machine.lookahead = lookahead;
      const auto source = synthesize(program, options);
      return static_cast<double>(Engine(machine, {}, *source).run().makespan);
    };
    EXPECT_NEAR(run(8, 1 * kUs) / run(1, 0), 1.0, 0.01) << program;
    EXPECT_NEAR(run(1, 1 * kUs) / run(1, 0), 1.0, 0.01) << program;
    EXPECT_EQ(run(8, 0), run(1, 0)) << program;  // order of arrival everywhere, borders or not
  }
}

}  // namespace
}  // namespace fallow::sim
