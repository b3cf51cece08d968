#include "sim/threads_in_turn.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using trace::CallEvent;
using trace::Op;

/// A program in memory of ranks with three threads each, whose calls begin and end when they are said to.
class Threads {
 public:
  explicit Threads(std::uint32_t ranks, trace::ComputeClock clock = trace::ComputeClock::wall) : source_(std::make_unique<trace::MemorySource>(ranks)) {
    trace::TraceInfo& info = source_->edit();
    info.comms = trace::CommGroups(ranks);
    info.ranks.resize(ranks);
    info.clock = clock;
    for (auto& r : info.ranks) r.threads = kThreads;
    last_.resize(kThreads * ranks);
  }

  struct Span {
    std::uint64_t enter, exit;
  };
  Threads& call(std::uint32_t rank, std::uint16_t thread, Span span, CallEvent e) {
    std::uint64_t& last = last_[kThreads * rank + thread];
    e.thread = thread;
    e.enter_ns = span.enter, e.exit_ns = span.exit;
    e.compute_ns = span.enter - last;
    if (e.comm == trace::kCommNone) e.comm = trace::kCommWorld;
    last = span.exit;
    source_->add(rank, e);
    return *this;
  }
  /// A communicator of all ranks.
  std::uint32_t copy_of_world(std::uint32_t which) {
    trace::CommGroups& comms = source_->edit().comms;
    trace::Comm all;
    all.group = trace::Group::contiguous(0, static_cast<std::uint32_t>(source_->info().ranks.size()));
    while (copies_.size() <= which) copies_.push_back(comms.add(all));
    return copies_[which];
  }
  /// Receives of such ranks are never left.
  void end_early() {
    for (trace::RankInfo& rank : source_->edit().ranks) rank.complete = false;
  }
  std::unique_ptr<trace::EventSource> as_begun() { return std::move(source_); }
  std::unique_ptr<trace::EventSource> in_turn() { return with_threads_in_turn(std::move(source_)); }

 private:
  static constexpr std::size_t kThreads = 3;
  std::unique_ptr<trace::MemorySource> source_;
  std::vector<std::uint64_t> last_;
  std::vector<std::uint32_t> copies_;
};

CallEvent message(Op op, std::int32_t peer, std::int32_t tag) {
  CallEvent e;
  e.op = op;
  e.peer = peer, e.tag = tag;
  e.bytes = 8;
  return e;
}

CallEvent plain(Op op) {
  CallEvent e;
  e.op = op;
  return e;
}

/// Operation, computation before it, and requests, call by call.
std::vector<std::string> told(trace::EventSource& source, std::uint32_t rank) {
  std::vector<std::string> all;
  CallEvent e, same;
  while (source.next(rank, e)) {
    std::string line(trace::op_name(e.op).substr(4));
    line += ' ' + std::to_string(e.compute_ns);
    for (const auto n : e.requests) line += " makes " + std::to_string(n);
    for (const auto n : e.completed) line += " ends " + std::to_string(n);
    source.again(rank, same);
    EXPECT_EQ(same.op, e.op);
    EXPECT_TRUE(std::equal(same.requests.begin(), same.requests.end(), e.requests.begin(), e.requests.end()));
    all.push_back(std::move(line));
  }
  return all;
}

Result replayed(Threads& t, std::uint32_t nodes) {
  const auto source = t.in_turn();
  return Engine(testing::crossbar(nodes), {}, *source).run();
}

using Lines = std::vector<std::string>;

TEST(ThreadsInTurn, ACallInWhichAnotherBeginsIsCutInTwo) {
  Threads t(1);
  t.call(0, 0, {10, 20}, plain(Op::barrier));
  t.call(0, 1, {100, 200}, message(Op::recv, 0, 1));
  t.call(0, 0, {120, 130}, message(Op::send, 0, 1));
  t.call(0, 0, {150, 155}, plain(Op::iprobe));
  t.call(0, 0, {240, 250}, plain(Op::barrier));
  const auto source = t.in_turn();
  // 130 to 150 computes between the calls in the receive; 155 to 200 before the receive's end, and 200 to 240 after it.
  const Lines expected = {"Barrier 10", "Irecv 80 makes 0", "Send 20", "Iprobe 20", "Wait 45 ends 0", "Barrier 40"};
  EXPECT_EQ(told(*source, 0), expected);
  source->rewind(0);
  EXPECT_EQ(told(*source, 0), expected);
}

TEST(ThreadsInTurn, NoTimeIsComputedWhileAllThreadsAreInside) {
  Threads t(1);
  t.call(0, 0, {10, 100}, message(Op::recv, 0, 1));
  t.call(0, 1, {30, 80}, message(Op::recv, 0, 2));
  t.call(0, 1, {90, 95}, plain(Op::iprobe));
  t.call(0, 0, {110, 111}, plain(Op::iprobe));
  const auto source = t.in_turn();
  EXPECT_EQ(told(*source, 0), (Lines{"Irecv 10 makes 0", "Recv 20", "Iprobe 10", "Wait 5 ends 0", "Iprobe 10"}));
}

TEST(ThreadsInTurn, WaitsComeWhereTheyEnded) {
  Threads t(1);
  const std::vector<std::uint32_t> number = {4};
  CallEvent start = message(Op::irecv, 0, 1), wait = plain(Op::wait);
  start.requests = number, wait.completed = number;
  t.call(0, 0, {10, 20}, start).call(0, 0, {30, 70}, wait);
  t.call(0, 1, {40, 90}, message(Op::probe, 0, 3));
  t.call(0, 0, {80, 82}, message(Op::send, 0, 1));
  const auto source = t.in_turn();
  EXPECT_EQ(told(*source, 0), (Lines{"Irecv 10 makes 0", "Wait 20 ends 0", "Send 10", "Probe 8"}));
}

TEST(ThreadsInTurn, WhatLooksAtWindowsComesWhereItEnded) {
  for (const Op op : {Op::win_wait, Op::win_test, Op::win_start}) {
    Threads t(1);
    t.call(0, 0, {10, 50}, plain(op)).call(0, 1, {20, 30}, plain(Op::barrier));
    const auto source = t.in_turn();
    EXPECT_EQ(told(*source, 0), (Lines{"Barrier 20", std::string(trace::op_name(op).substr(4)) + " 20"}));
  }
}

TEST(ThreadsInTurn, ANumberThatComesBackInACallThatHadBegunIsAnother) {
  Threads t(1);
  const std::vector<std::uint32_t> number = {0};
  CallEvent receive = message(Op::irecv, 0, 1), send = message(Op::isend, 0, 1), init = message(Op::recv_init, 0, 2), wait = plain(Op::wait);
  CallEvent start = plain(Op::start), free = plain(Op::request_free);
  receive.requests = send.requests = init.requests = start.requests = free.requests = wait.completed = number;
  t.call(0, 1, {1, 2}, receive);
  t.call(0, 0, {10, 50}, send);  // takes the number that the other thread's wait leaves
  t.call(0, 1, {20, 30}, wait);
  t.call(0, 0, {60, 61}, wait);
  t.call(0, 1, {70, 71}, init).call(0, 1, {72, 73}, start).call(0, 1, {74, 75}, wait).call(0, 1, {76, 77}, free);
  t.call(0, 0, {80, 81}, send);
  const auto source = t.in_turn();
  const Lines expected = {"Irecv 1 makes 0", "Isend 8 makes 1", "Wait 0 ends 0", "Wait 10 ends 1", "Recv_init 9 makes 0", "Start 1 makes 0",
                          "Wait 1 ends 0", "Request_free 1 makes 0", "Isend 3 makes 1"};
  EXPECT_EQ(told(*source, 0), expected);
}

TEST(ThreadsInTurn, ANumberThatIsUsedWithinACallIsAnother) {
  const std::vector<std::uint32_t> number = {0};
  CallEvent receive = message(Op::irecv, 0, 1), wait = plain(Op::wait);
  receive.requests = wait.completed = number;
  Threads own(1);  // the call was interrupted before it got its number
  own.call(0, 0, {10, 50}, receive).call(0, 1, {20, 30}, receive).call(0, 1, {31, 32}, wait).call(0, 0, {60, 61}, wait);
  const auto first = own.in_turn();
  EXPECT_EQ(told(*first, 0), (Lines{"Irecv 10 makes 0", "Irecv 0 makes 1", "Wait 0 ends 1", "Wait 10 ends 0"}));
  Threads after(1);  // or after it had returned, and before it was given the number
  after.call(0, 0, {10, 15}, receive).call(0, 1, {20, 30}, receive).call(0, 1, {31, 32}, wait).call(0, 0, {60, 61}, wait);
  const auto second = after.in_turn();
  EXPECT_EQ(told(*second, 0), (Lines{"Irecv 10 makes 0", "Irecv 5 makes 1", "Wait 1 ends 1", "Wait 28 ends 0"}));
  Threads others(1);  // a third thread waits for it
  others.call(0, 0, {10, 50}, receive).call(0, 1, {20, 30}, receive).call(0, 2, {31, 32}, wait).call(0, 0, {60, 61}, wait);
  const auto third = others.in_turn();
  EXPECT_EQ(told(*third, 0), (Lines{"Irecv 10 makes 0", "Irecv 0 makes 1", "Wait 0 ends 1", "Wait 10 ends 0"}));
}

TEST(ThreadsInTurn, ANumberIsUnderstoodWhereTheCallEnds) {
  const std::vector<std::uint32_t> zero = {0}, one = {1}, both = {0, 1};
  CallEvent send = message(Op::isend, 0, 1), receive = message(Op::irecv, 0, 2), slow = plain(Op::waitall), wait = plain(Op::wait);
  Threads t(1);
  send.requests = zero;
  t.call(0, 0, {10, 11}, send);
  receive.requests = one;
  t.call(0, 0, {12, 13}, receive);
  slow.completed = both;
  t.call(0, 1, {20, 90}, slow);
  // The library has one handle for all sends that are complete, so the first one is this call's, and the waitall's what comes then.
  wait.completed = zero;
  t.call(0, 2, {30, 31}, wait);
  t.call(0, 0, {40, 41}, send);
  const auto source = t.in_turn();
  EXPECT_EQ(told(*source, 0), (Lines{"Isend 10 makes 0", "Irecv 1 makes 1", "Wait 17 ends 0", "Isend 9 makes 2", "Waitall 49 ends 2 ends 1"}));
}

/// The thread was interrupted between the end of its call and the taking of the number, which another thread's call had got meanwhile.
TEST(ThreadsInTurn, ARequestMayEndBeforeItIsMade) {
  const std::vector<std::uint32_t> number = {0};
  CallEvent send = message(Op::isend, 0, 1), wait = plain(Op::wait);
  send.requests = wait.completed = number;
  Threads t(1);
  t.call(0, 0, {10, 11}, wait).call(0, 1, {12, 13}, send).call(0, 1, {20, 21}, send).call(0, 0, {30, 31}, wait);
  const auto source = t.in_turn();
  EXPECT_EQ(told(*source, 0), (Lines{"Wait 10 ends " + std::to_string(trace::kNoRequest), "Isend 1 makes 0", "Isend 7 makes 1", "Wait 9 ends 1"}));
}

TEST(ThreadsInTurn, WhatBecameOfARequestIsSaidOfThatOne) {
  const std::vector<std::uint32_t> number = {0};
  const std::vector<std::uint64_t> outcome = {trace::kOutcomeFrom + 3}, tag = {7};
  CallEvent any = message(Op::irecv, trace::kAnyPeer, trace::kAnyTag), plainly = message(Op::irecv, 2, 1), wait = plain(Op::wait);
  any.flags = trace::kEventAnySource | trace::kEventAnyTag;
  any.requests = plainly.requests = wait.completed = number;
  Threads t(4);
  t.call(0, 0, {10, 50}, any).call(0, 1, {20, 25}, plainly).call(0, 1, {26, 27}, wait);
  wait.counts = outcome, wait.recv_counts = tag;
  t.call(0, 0, {60, 61}, wait);
  const auto source = trace::with_outcomes(t.in_turn());
  CallEvent e;
  ASSERT_TRUE(source->next(0, e));
  EXPECT_EQ(std::pair(e.peer, e.tag), std::pair(3, 7));
  ASSERT_TRUE(source->next(0, e));
  EXPECT_EQ(std::pair(e.peer, e.tag), std::pair(2, 1));
}

TEST(ThreadsInTurn, CallsThatTakeTurnsStayAsTheyAre) {
  Threads t(1);
  t.call(0, 0, {10, 20}, plain(Op::barrier)).call(0, 1, {30, 40}, message(Op::send, 0, 1)).call(0, 0, {50, 60}, message(Op::recv, 0, 1));
  const auto source = t.in_turn();
  EXPECT_EQ(told(*source, 0), (Lines{"Barrier 10", "Send 10", "Recv 10"}));  // the time that has passed, not that of each thread
}

TEST(ThreadsInTurn, OfCpuTimeCountsWhatIsNotComputedMeanwhile) {
  Threads t(1, trace::ComputeClock::cpu);
  t.call(0, 0, {10, 20}, plain(Op::barrier)).call(0, 1, {30, 40}, message(Op::send, 0, 1)).call(0, 0, {50, 60}, message(Op::recv, 0, 1));
  const auto source = t.in_turn();
  EXPECT_EQ(told(*source, 0), (Lines{"Barrier 10", "Send 20", "Recv 10"}));  // 30 of the second thread's own, 30 of the first one's
}

TEST(ThreadsInTurn, RanksOfOneThreadArePassedOn) {
  auto source = std::make_unique<trace::MemorySource>(2);
  source->edit().ranks.resize(2);
  const trace::EventSource* const before = source.get();
  EXPECT_EQ(with_threads_in_turn(std::move(source)).get(), before);
}

/// Each thread waits for what another thread of its own rank lets the peer send.
void wait_for_each_other(Threads& t) {
  t.call(0, 0, {10, 90}, message(Op::recv, 1, 1));
  t.call(0, 1, {20, 40}, message(Op::ssend, 1, 2));
  t.call(1, 0, {10, 50}, message(Op::recv, 0, 2));
  t.call(1, 1, {15, 85}, plain(Op::comm_dup));
  t.call(1, 0, {60, 95}, message(Op::ssend, 0, 1));
  t.call(0, 1, {50, 85}, plain(Op::comm_dup));
  t.call(0, 0, {100, 120}, plain(Op::allreduce)).call(1, 0, {100, 120}, plain(Op::allreduce));
}

TEST(ThreadsInTurn, ThreadsThatWaitForEachOtherEnd) {
  Threads t(2), same(2);
  for (Threads* const threads : {&t, &same}) wait_for_each_other(*threads);
  const Result result = replayed(t, 2);
  EXPECT_EQ(result.unreceived.count, 0u);
  EXPECT_GE(result.messages, 4u);
  EXPECT_EQ(result.let_go, 0u);
  EXPECT_GT(Engine(testing::crossbar(2), {}, *same.as_begun()).run().let_go, 0u);
}

/// A send went ahead where it was recorded; here it waits for a receive that stands behind what another thread's send lets go on.
TEST(ThreadsInTurn, ACallThatWaitsForMoreThanItDidIsLeft) {
  constexpr std::uint64_t kLong = 1 << 20;
  for (const bool cut : {false, true}) {
    Threads t(2);
    CallEvent large = message(Op::send, 1, 1);
    large.bytes = kLong;
    t.call(0, 0, {10, 14}, large);
    if (cut) t.call(0, 2, {11, 12}, plain(Op::iprobe));
    t.call(0, 1, {20, 22}, message(Op::send, 1, 2));
    t.call(1, 1, {5, 26}, message(Op::recv, 0, 2)).call(1, 0, {30, 40}, message(Op::recv, 0, 1));
    t.call(0, 0, {100, 120}, plain(Op::allreduce)).call(1, 0, {100, 120}, plain(Op::allreduce));
    const auto source = t.in_turn();
    const Result result = Engine(testing::crossbar(2), {}, *source, 2).run();
    EXPECT_EQ(result.unreceived.count, 0u);
    EXPECT_EQ(result.let_go, 1u) << cut;
  }
}

/// Likewise one that sends and has received, and whose message went ahead. What has not been received is waited for.
TEST(ThreadsInTurn, AnExchangeThatHasReceivedIsLeft) {
  constexpr std::uint64_t kLong = 1 << 20;
  for (const std::int32_t from : {1, trace::kNullPeer}) {
    for (const bool cut : {false, true}) {
      Threads t(2);
      CallEvent exchange = message(Op::sendrecv, 1, 1);
      exchange.bytes = kLong;
      exchange.recv_peer = from, exchange.recv_tag = 3, exchange.recv_bytes = 8;
      t.call(0, 0, {10, 14}, exchange);
      if (cut) t.call(0, 2, {11, 12}, plain(Op::iprobe));
      t.call(0, 1, {20, 22}, message(Op::send, 1, 2));
      if (from == 1) t.call(1, 1, {1, 2}, message(Op::send, 0, 3));
      t.call(1, 1, {5, 26}, message(Op::recv, 0, 2)).call(1, 0, {30, 40}, message(Op::recv, 0, 1));
      t.call(0, 0, {100, 120}, plain(Op::allreduce)).call(1, 0, {100, 120}, plain(Op::allreduce));
      t.end_early();
      const Result result = replayed(t, 2);
      EXPECT_EQ(result.unreceived.count, 0u);
      EXPECT_EQ(result.let_go, 1u) << cut;
    }
  }
}

/// Rank 1 gave its part of the first reduction straight to the root. Here it waits for rank 2, whose other thread waits for the second one's.
TEST(ThreadsInTurn, ACollectiveCallGoesOnWithoutTheRankThatHasLeftIt) {
  Threads t(4);
  const auto reduce = [&](std::uint32_t rank, std::uint16_t thread, Threads::Span span) {
    CallEvent e = plain(Op::reduce);
    e.bytes = 8;
    e.root = thread == 0 ? 3 : 2;
    e.comm = t.copy_of_world(thread);
    t.call(rank, thread, span, e);
  };
  reduce(0, 0, {10, 11}), reduce(0, 1, {12, 13});
  reduce(1, 0, {10, 12}), reduce(1, 1, {14, 16});
  reduce(2, 1, {10, 20}), reduce(2, 0, {30, 32});
  reduce(3, 0, {5, 40}), reduce(3, 1, {6, 7});
  for (std::uint32_t r = 0; r < 4; ++r) t.call(r, 0, {100, 110}, plain(Op::barrier));
  const Result result = replayed(t, 4);
  EXPECT_EQ(result.let_go, 1u);
  EXPECT_EQ(result.unreceived.count, 0u);
}

TEST(ThreadsInTurn, TopologiesAreMadeInAnyOrder) {
  Threads t(2);
  const std::vector<std::uint64_t> neighbor[] = {{2}, {1}};  // world ranks, from 1
  for (std::uint32_t r = 0; r < 2; ++r) {
    for (std::uint16_t thread = 0; thread < 2; ++thread) {
      CallEvent made = plain(Op::cart_create), exchange = plain(Op::neighbor_alltoall);
      made.comm = exchange.comm = t.copy_of_world(thread);
      made.counts = made.recv_counts = neighbor[r];
      exchange.bytes = exchange.recv_bytes = 8;
      const std::uint64_t at = thread == r ? 10 : 20;
      t.call(r, thread, {at, at + 20}, made).call(r, thread, {at + 40, at + 60}, exchange);
    }
  }
  t.call(0, 2, {200, 201}, plain(Op::comm_dup)).call(1, 2, {200, 201}, plain(Op::comm_dup));
  const Result result = replayed(t, 2);
  EXPECT_EQ(result.unreceived.count, 0u);
  EXPECT_EQ(result.let_go, 0u);
  EXPECT_GE(result.messages, 2u * (2 + 2 + 1));  // of barriers, and to each neighbour
}

/// The first thread's receive was posted after the second one's, although its call began before.
TEST(ThreadsInTurn, AReceiveThatAnotherOneTookTheMessageOfIsLeft) {
  const std::vector<std::uint32_t> number = {0};
  Threads t(2);
  CallEvent receive = message(Op::irecv, 1, 1), wait = plain(Op::wait);
  receive.requests = wait.completed = number;
  t.call(0, 0, {10, 50}, receive).call(0, 1, {20, 30}, message(Op::recv, 1, 1)).call(0, 1, {35, 40}, message(Op::send, 1, 2));
  t.call(0, 0, {60, 90}, wait);
  t.call(1, 0, {5, 15}, message(Op::send, 0, 1)).call(1, 0, {16, 45}, message(Op::recv, 0, 2)).call(1, 0, {70, 75}, message(Op::send, 0, 1));
  const Result result = replayed(t, 2);
  EXPECT_EQ(result.let_go, 1u);
  EXPECT_EQ(result.unreceived.count, 0u);
}

/// What had to be there when its call ended is waited for.
TEST(ThreadsInTurn, AReceiveOfWhatNeverComesIsNotLeft) {
  Threads t(2);
  t.call(0, 0, {10, 12}, message(Op::recv, 1, 1)).call(0, 1, {20, 22}, message(Op::send, 1, 2)).call(1, 0, {5, 26}, message(Op::recv, 0, 3));
  EXPECT_THROW(replayed(t, 2), SimError);
}

/// One thread waits for all ranks in a call that is more than that; what another one does meanwhile lets the other rank come.
TEST(ThreadsInTurn, FencesAndFileAccessesBeginWhereTheyBegan) {
  for (const Op op : {Op::win_fence, Op::file_open, Op::file_set_view, Op::file_write_at_all, Op::file_read_all_end, Op::file_close}) {
    Threads t(2);
    t.call(0, 0, {1, 2}, message(Op::put, 1, 0)).call(0, 0, {10, 90}, plain(op)).call(0, 1, {20, 40}, message(Op::recv, 1, 1));
    t.call(1, 0, {15, 45}, message(Op::ssend, 0, 1)).call(1, 0, {50, 90}, plain(op));
    t.call(0, 1, {100, 120}, plain(Op::comm_dup)).call(1, 1, {100, 120}, plain(Op::comm_dup));
    const Result result = replayed(t, 2);
    EXPECT_EQ(result.let_go, 0u) << trace::op_name(op);
    EXPECT_EQ(result.unreceived.count, 0u) << trace::op_name(op);
  }
}

/// The file system needed nobody else for it, or what the others have is not for this rank.
TEST(ThreadsInTurn, ACallOfAllRanksMayHaveEndedBeforeTheOthersCame) {
  for (const Op op : {Op::file_sync, Op::win_fence, Op::reduce_scatter, Op::allgatherv}) {
    Threads t(2);
    t.call(0, 0, {10, 12}, plain(op)).call(0, 1, {20, 22}, message(Op::send, 1, 1));
    t.call(1, 1, {5, 25}, message(Op::recv, 0, 1)).call(1, 1, {30, 40}, plain(op));
    const Result result = replayed(t, 2);
    EXPECT_EQ(result.let_go, 1u) << trace::op_name(op);
    EXPECT_EQ(result.unreceived.count, 0u) << trace::op_name(op);
  }
}

}  // namespace
}  // namespace fallow::sim
