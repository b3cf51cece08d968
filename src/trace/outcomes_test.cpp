#include "trace/outcomes.hpp"

#include <gtest/gtest.h>

#include "trace/trace_test_files.hpp"

namespace fallow::trace {
namespace {

using Numbers = std::vector<std::uint32_t>;
using Words = std::vector<std::uint64_t>;

class Calls {
 public:
  explicit Calls(std::uint32_t ranks = 1) : source_(std::make_unique<MemorySource>(ranks)) {}
  Calls& begin(Op op, std::int32_t peer, std::int32_t tag, std::uint32_t request) {
    CallEvent e = made(op);
    e.comm = kCommWorld, e.peer = peer, e.tag = tag;
    const Numbers requests{request};
    e.requests = requests;
    return add(e);
  }
  Calls& on(Op op, const Numbers& requests) {
    CallEvent e = made(op);
    e.requests = requests;
    return add(e);
  }
  Calls& end(const Numbers& completed, const Words& outcomes = {}, const Words& tags = {}) {
    CallEvent e = made(Op::waitall);
    e.completed = completed, e.counts = outcomes, e.recv_counts = tags;
    return add(e);
  }
  std::unique_ptr<MemorySource> take() { return std::move(source_); }

 private:
  CallEvent made(Op op) {
    CallEvent e;
    e.op = op;
    e.enter_ns = 10 * time_, e.exit_ns = 10 * time_ + 5;
    ++time_;
    return e;
  }
  Calls& add(const CallEvent& e) {
    source_->add(0, e);
    return *this;
  }
  std::unique_ptr<MemorySource> source_;
  std::uint64_t time_ = 1;
};

std::vector<CallEvent> all(EventSource& source) {
  std::vector<CallEvent> events;
  for (CallEvent e; source.next(0, e);) events.push_back(e);
  return events;
}

TEST(Outcomes, WhatACallLookedAtIsSaidToo) {
  MemorySource source(1);
  const Numbers requests{0};
  for (const Op op : {Op::irecv, Op::request_get_status, Op::request_get_status, Op::request_free}) {
    CallEvent e;
    e.op = op, e.comm = kCommWorld, e.peer = kAnyPeer, e.tag = kAnyTag, e.requests = requests;
    const Words outcomes{kOutcomeFrom + 3}, tags{8};
    if (op == Op::request_get_status && source.info().ranks[0].events == 2) e.counts = outcomes, e.recv_counts = tags;
    source.add(0, e);
  }
  EXPECT_TRUE(source.has_outcomes(0));
  const auto events = all(*std::make_unique<Outcomes>(source));
  EXPECT_EQ(events[0].peer, 3);
  EXPECT_EQ(events[0].tag, 8);
}

TEST(Outcomes, WhatAReceiveTookIsSaidWhereItBegins) {
  Calls calls;
  calls.begin(Op::irecv, kAnyPeer, kAnyTag, 0).begin(Op::irecv, 3, 7, 1).begin(Op::irecv, kAnyPeer, 9, 2);
  calls.end({0, 1, 2}, {kOutcomeFrom + 5, kOutcomeUnsaid, kOutcomeFrom}, {8, 0, 9}).begin(Op::irecv, kAnyPeer, 9, 0).end({0});
  Outcomes told(calls.take());
  for (int pass = 0; pass < 2; ++pass) {
    const auto events = all(told);
    ASSERT_EQ(events.size(), 6u);
    EXPECT_EQ(events[0].peer, 5);
    EXPECT_EQ(events[0].tag, 8);
    EXPECT_EQ(events[1].peer, 3);
    EXPECT_EQ(events[1].tag, 7);
    EXPECT_EQ(events[2].peer, 0);
    EXPECT_EQ(events[4].peer, kAnyPeer) << "of which nothing was said";
    told.rewind(0);
  }
}

TEST(Outcomes, ARequestEndsOnce) {
  Calls calls;
  calls.begin(Op::irecv, kAnyPeer, kAnyTag, 0).end({0}, {kOutcomeFrom + 5}, {8}).end({0}, {kOutcomeFrom + 3}, {4});
  Outcomes told(calls.take());
  const auto events = all(told);
  EXPECT_EQ(events[0].peer, 5);
  EXPECT_EQ(events[0].tag, 8);
}

TEST(Outcomes, OfASendAndReceiveTheReceiveIsSaid) {
  Calls calls;
  calls.begin(Op::isendrecv, 4, 6, 0).begin(Op::isendrecv, 4, 6, 1).end({0, 1}, {kOutcomeFrom + 5, kOutcomeCancelled}, {8, 0});
  Outcomes told(calls.take());
  const auto events = all(told);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(events[i].peer, 4);
    EXPECT_EQ(events[i].tag, 6);
  }
  EXPECT_EQ(events[0].recv_peer, 5);
  EXPECT_EQ(events[0].recv_tag, 8);
  EXPECT_EQ(events[1].recv_peer, kNullPeer);
}

TEST(Outcomes, AgainGivesTheSame) {
  Calls calls;
  calls.begin(Op::irecv, kAnyPeer, kAnyTag, 0).begin(Op::irecv, kAnyPeer, 1, 1).end({0}, {kOutcomeFrom + 2}, {4}).end({1});
  Outcomes told(calls.take());
  CallEvent e, again;
  ASSERT_TRUE(told.next(0, e));
  told.again(0, again);
  EXPECT_EQ(again.peer, 2);
  EXPECT_EQ(again.tag, 4);
  ASSERT_TRUE(told.next(0, e));
  told.again(0, again);
  EXPECT_EQ(again.peer, kAnyPeer);
}

TEST(Outcomes, PersistentReceivesTakeAnotherOneEachTime) {
  Calls calls;
  calls.begin(Op::recv_init, kAnyPeer, 1, 0).begin(Op::send_init, 1, 1, 1);
  calls.on(Op::startall, {1, 0}).end({0, 1}, {kOutcomeFrom + 1, kOutcomeUnsaid}, {1, 0});
  calls.on(Op::start, {0}).end({0}, {kOutcomeFrom + 2}, {1}).on(Op::start, {0}).end({0});
  Outcomes told(calls.take());
  const std::pair<std::size_t, Words> wanted[] = {{2, {kOutcomeUnsaid, kOutcomeFrom + 1}}, {4, {kOutcomeFrom + 2}}, {6, {}}};
  std::size_t number = 0;
  const auto* next = wanted;
  for (CallEvent e; told.next(0, e); ++number) {
    if (next == std::end(wanted) || number != next->first) continue;
    EXPECT_EQ(Words(e.counts.begin(), e.counts.end()), next->second);
    EXPECT_EQ(e.recv_counts.size(), e.counts.size());
    ++next;
  }
  EXPECT_EQ(next, std::end(wanted));
}

TEST(Outcomes, CancelledInTimeOrTooLate) {
  Calls calls;
  calls.begin(Op::irecv, 1, 1, 0).on(Op::cancel, {0}).end({0}, {kOutcomeCancelled}, {0});
  calls.begin(Op::irecv, 1, 1, 0).on(Op::cancel, {0}).end({0}, {kOutcomeMatched}, {0});
  calls.begin(Op::irecv, 1, 1, 0).on(Op::cancel, {0}).end({0});
  Outcomes told(calls.take());
  const auto events = all(told);
  EXPECT_EQ(events[0].peer, kNullPeer);
  EXPECT_EQ(events[1].requests.size(), 1u);
  EXPECT_EQ(events[3].peer, 1);
  EXPECT_TRUE(events[4].requests.empty());
  EXPECT_EQ(events[6].peer, 1) << "of which nothing was said";
  EXPECT_EQ(events[7].requests.size(), 1u);
}

TEST(Outcomes, ListsThatDoNotFitSayNothing) {
  Calls calls;
  constexpr std::uint64_t kLarge = (std::uint64_t{1} << 40) + kOutcomeFrom + 1;
  calls.begin(Op::irecv, kAnyPeer, 1, 0).begin(Op::irecv, kAnyPeer, 1, 1).end({0, 1}, {kOutcomeFrom}, {1});
  calls.begin(Op::irecv, kAnyPeer, 1, 0).end({0, 9}, {kLarge, kOutcomeFrom + 1}, {1, 1});
  calls.begin(Op::irecv, kAnyPeer, 1, 0).end({0}, {kOutcomeFrom + 1}, {kLarge});
  Outcomes told(calls.take());
  const auto events = all(told);
  EXPECT_EQ(events[0].peer, kAnyPeer);
  EXPECT_EQ(events[3].peer, kAnyPeer);
  EXPECT_EQ(events[5].peer, 1);
  EXPECT_EQ(events[5].tag, 0);
}

TEST(Outcomes, AFileTellsWhetherItHasAny) {
  for (const bool some : {false, true}) {
    Calls calls;
    calls.begin(Op::irecv, kAnyPeer, 1, 0);
    some ? calls.end({0}, {kOutcomeFrom + 1}, {1}) : calls.end({0});
    auto source = calls.take();
    const testing::TemporaryFolder folder;
    write_trace(*source, folder / "trace.ftr", {});
    const TraceReader trace({folder / "trace.ftr"});
    EXPECT_EQ(source->has_outcomes(0), some);
    EXPECT_EQ(trace.has_outcomes(0), some);
  }
}

TEST(Outcomes, WithoutAnyTheSourceIsTheSame) {
  Calls calls;
  auto source = calls.begin(Op::irecv, 1, 1, 0).end({0}).take();
  const EventSource* const before = source.get();
  EXPECT_EQ(with_outcomes(std::move(source)).get(), before);
}

}  // namespace
}  // namespace fallow::trace
