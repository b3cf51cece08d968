// Requests that stand for more than one message, or for one that goes later than they were started.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

constexpr std::uint64_t kLong = 1 << 20;
constexpr Time kData = 1024 * kPerKib;

TEST(Persistent, BufferedSendsAreCompleteAtOnceWhateverTheirSize) {
  Program p(2);  // both send, wait, and receive then
  for (std::uint32_t r = 0; r < 2; ++r) {
    const auto other = static_cast<std::int32_t>(1 - r);
    p.p2p(r, Op::bsend_init, other, kLong, 1, 0);
    for (int i = 0; i < 3; ++i) p.on_requests(r, Op::start, {0}).wait(r, Op::wait, {0}).p2p(r, Op::recv, other, kLong, 1);
    p.on_requests(r, Op::request_free, {0});
  }
  EXPECT_EQ(p.run(crossbar(2)).makespan, 3 * (3 * kLatency + kData));
  Program late(2);  // the receiver is late by 10 ms: the sender is not
  late.p2p(0, Op::bsend_init, 1, kLong, 1, 0).on_requests(0, Op::start, {0}).wait(0, Op::wait, {0}).compute(1000).p2p(0, Op::send, 1, 8, 2);
  late.compute(10'000'000).p2p(1, Op::recv, 0, 8, 2).p2p(1, Op::recv, 0, kLong, 1);
  EXPECT_EQ(late.run(crossbar(2)).makespan, 10 * kMs + 2 * kLatency + kData);
}

CallEvent exchange(std::int32_t to, std::uint64_t bytes, std::int32_t from, std::uint64_t recv_bytes, std::span<const std::uint32_t> request) {
  CallEvent call;
  call.op = Op::isendrecv;
  call.peer = to;
  call.recv_peer = from;
  call.tag = call.recv_tag = 3;
  call.bytes = bytes;
  call.recv_bytes = recv_bytes;
  call.requests = request;
  return call;
}

TEST(SendReceive, ThatDoesNotBlockIsCompleteWhenBothMessagesAre) {
  const std::uint32_t number[] = {5};
  Program p(2);  // a long message one way, a short one back
  p.add(0, exchange(1, kLong, 1, 8, number)).wait(0, Op::wait, {5});
  p.add(1, exchange(0, 8, 0, kLong, number)).wait(1, Op::wait, {5});
  const Time end = 3 * kLatency + kData;
  Machine machine = crossbar(2);
  Engine engine(machine, {}, p.source());
  EXPECT_EQ(engine.run().makespan, end);
  for (const RankDetail& r : engine.details().ranks) EXPECT_EQ(r.end, end);
  Program null(2);  // one half of it, or none
  null.add(0, exchange(1, kLong, trace::kNullPeer, 0, number)).wait(0, Op::wait, {5});
  null.p2p(1, Op::recv, 0, kLong, 3).add(1, exchange(trace::kNullPeer, 8, trace::kNullPeer, 8, number)).wait(1, Op::waitall, {5});
  EXPECT_EQ(null.run(machine).makespan, end);
}

TEST(SendReceive, ThatNeverComesIsNamed) {
  const std::uint32_t number[] = {5};
  Program p(3);
  p.add(0, exchange(1, 8, 2, 8, number)).wait(0, Op::wait, {5}).p2p(1, Op::recv, 0, 8, 3);
  try {
    p.run(crossbar(3));
    FAIL() << "no deadlock found";
  } catch (const SimError& e) {
    EXPECT_NE(std::string(e.what()).find("rank 0 in MPI_Wait (call 2) for a message from world rank 2, tag 3, communicator 1 at"), std::string::npos) << e.what();
  }
}

/// The second of two messages comes while their receiver, who has just got the first, is on its way to the next call.
TEST(Unexpected, CostsWhereverTheClockIs) {
  constexpr Time kAsks = 100 * kNs, kCost = 300 * kNs;
  Machine machine = crossbar(3);
  machine.message.receive_overhead = kAsks;
  machine.message.unexpected = kCost;
  for (const std::int64_t after : {0, 50, 99, 101, 400, 950}) {  // ns by which the second comes later than the first
    for (const std::int64_t way : {0, 200, 900, 1500}) {         // ns
      const Time asked = way * kNs + kAsks, came = after * kNs;
      const Time had = came <= asked ? asked + kCost : came;
      const auto program = [&] {
        Program p(3);
        p.p2p(0, Op::send, 1, 0).compute(after).p2p(2, Op::send, 1, 0).p2p(1, Op::recv, 0, 0).compute(way);
        return p;
      };
      Program blocking = program();
      blocking.p2p(1, Op::recv, 2, 0);
      EXPECT_EQ(blocking.run(machine).makespan, kLatency + had) << after << " " << way;
      Program later = program();  // the core has that to do in the call which asks, and computes then
      later.p2p(1, Op::irecv, 2, 0, 0, 0).compute(5000).wait(1, Op::wait, {0});
      EXPECT_EQ(later.run(machine).makespan, kLatency + (came <= asked ? had : asked) + 5 * kUs) << after << " " << way;
    }
  }
}

TEST(Partitioned, ASendGoesWhenItsLastPartitionIsReady) {
  const std::vector<std::uint64_t> four{4}, one{1}, two{2};
  const std::uint32_t number[] = {2};
  const auto call = [&](Op op, std::span<const std::uint64_t> parts) {
    CallEvent c;
    c.op = op;
    c.peer = 1;
    c.tag = 7;
    c.bytes = op == Op::psend_init ? kLong : 0;
    c.requests = number;
    c.counts = parts;
    return c;
  };
  Program p(2);
  p.add(0, call(Op::psend_init, four)).p2p(1, Op::precv_init, 0, kLong, 7, 2);
  for (int i = 0; i < 2; ++i) {  // a millisecond for each partition; they go as one message
    p.on_requests(0, Op::start, {2});
    p.compute(1'000'000).add(0, call(Op::pready, one));
    p.compute(2'000'000).add(0, call(Op::pready_range, two));
    p.compute(1'000'000).add(0, call(Op::pready_list, one));
    p.wait(0, Op::wait, {2});
    p.on_requests(1, Op::start, {2}).wait(1, Op::wait, {2});
  }
  EXPECT_EQ(p.run(crossbar(2)).makespan, 2 * (4 * kMs + 3 * kLatency + kData));
  Program untold(2);  // by an earlier recorder: with the start, for want of anything better
  untold.add(0, call(Op::psend_init, {})).on_requests(0, Op::start, {2}).compute(1'000'000).add(0, call(Op::pready, {})).wait(0, Op::wait, {2});
  untold.p2p(1, Op::precv_init, 0, kLong, 7, 2).on_requests(1, Op::start, {2}).wait(1, Op::wait, {2});
  EXPECT_EQ(untold.run(crossbar(2)).makespan, 1 * kMs);
}

// MPICH takes a persistent request with MPI_PROC_NULL for inactive once it has begun: MPI_Waitany and its kin never name it.
TEST(Persistent, ARequestThatGoesNowhereNeedsNoWait) {
  Program p(2);
  p.p2p(0, Op::recv_init, trace::kNullPeer, 64, 1, 0).p2p(0, Op::send_init, 1, 64, 1, 1);
  p.p2p(1, Op::recv_init, 0, 64, 1, 0).p2p(1, Op::send_init, trace::kNullPeer, 64, 1, 1);
  for (int i = 0; i < 3; ++i) {
    p.on_requests(0, Op::startall, {0, 1}).wait(0, Op::waitany, {1});
    p.on_requests(1, Op::startall, {0, 1}).wait(1, Op::waitany, {0});
  }
  p.on_requests(0, Op::startall, {0, 1}).wait(0, Op::waitall, {0, 1}).on_requests(1, Op::startall, {0, 1}).wait(1, Op::waitall, {0, 1});
  EXPECT_EQ(p.run(crossbar(2)).calls, 4u + 4 * 4u);
}

TEST(Persistent, ARequestThatACallWaitsForTwiceIsRefused) {
  Program p(2);
  p.p2p(0, Op::recv_init, 1, 64, 1, 0).on_requests(0, Op::start, {0}).wait(0, Op::waitall, {0, 0}).p2p(1, Op::send, 0, 64, 1);
  try {
    p.run(crossbar(2));
    FAIL();
  } catch (const SimError& e) {
    EXPECT_STREQ(e.what(), "rank 0, call 3, MPI_Waitall: waits for request 0 twice");
  }
}

}  // namespace
}  // namespace fallow::sim
