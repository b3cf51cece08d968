// What the recorder of a thread packs is what is read.
#include "trace/recorder.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "trace/trace_test_files.hpp"

namespace fallow::trace {
namespace {

using testing::TemporaryFolder;

/// A part of one rank, to be recorded into.
class RecorderOfOneRank : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string problem;
    ASSERT_EQ(w.open((folder / "a").c_str(), {.world_size = 1}, problem), Status::ok);
    w.define_rank(0, {});
  }
  const TemporaryFolder folder;
  FileWriter w;
};

TEST_F(RecorderOfOneRank, AFullRingDropsAndSaysSo) {
  RecorderOptions options;
  options.ring_records = 8;
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {}, options);
  std::uint64_t t = 0;
  const auto put = [&] {
    if (RawRecord* x = r.begin()) {
      x->op = Op::barrier, x->enter = t += 10, x->exit = t += 10;
      r.end();
    }
  };
  for (int i = 0; i < 11; ++i) put();
  EXPECT_EQ(r.dropped(), 3u);
  r.pump(100, 0);
  put();
  r.flush();
  w.end_rank(0, 0);
  TraceReader trace({folder / "a"});
  EXPECT_EQ(trace.info().ranks[0].events, 9u);
  EXPECT_EQ(trace.info().ranks[0].dropped, 3u);
  CallEvent e;
  int marked = 0;
  while (trace.next(0, e)) marked += (e.flags & kEventAfterLoss) != 0;
  EXPECT_EQ(marked, 1);
}

TEST_F(RecorderOfOneRank, ComputationByTheCpuClockIsKept) {
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {}, {});
  for (std::uint64_t i = 0; i < 20; ++i) {
    RawRecord* x = r.begin();
    x->op = Op::barrier, x->enter = 1000 * i, x->exit = x->enter + 100;
    if (i % 2 == 1) x->flags = kEventCpuTime, x->extra().cpu_ns = 70 + i % 3;
    r.end();
    r.pump(100, 0);
  }
  r.flush();
  TraceReader trace({folder / "a"});
  CallEvent e;
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(trace.next(0, e));
    EXPECT_EQ(e.compute_ns, i == 0 ? 0 : i % 2 == 1 ? 70 + i % 3 : 900) << i;
    EXPECT_EQ((e.flags & kEventCpuTime) != 0, i % 2 == 1);
  }
}

TEST_F(RecorderOfOneRank, CallsThatDifferInOneThingAreToldApart) {
  using Change = void (*)(Recorder&, RawRecord&);
  const Change changes[] = {
      [](Recorder&, RawRecord& x) { x.caller = 0x2000; },
      [](Recorder&, RawRecord& x) { x.bytes = 9; },
      [](Recorder&, RawRecord& x) { x.comm = kCommSelf; },
      [](Recorder&, RawRecord& x) { x.peer = 1; },
      [](Recorder&, RawRecord& x) { x.tag = 6; },
      [](Recorder&, RawRecord& x) { x.op = Op::allgatherv; },
      [](Recorder&, RawRecord& x) { x.flags = static_cast<std::uint16_t>(x.flags | kEventInPlace); },
      [](Recorder&, RawRecord& x) { x.first_request = 4; },
      [](Recorder&, RawRecord& x) { x.first_completed = 4; },
      [](Recorder&, RawRecord& x) { x.extra().recv_bytes = 9; },
      [](Recorder&, RawRecord& x) { x.extra().recv_peer = 1; },
      [](Recorder&, RawRecord& x) { x.extra().recv_tag = 6; },
      [](Recorder&, RawRecord& x) { x.extra().root = 1; },
      [](Recorder& r, RawRecord& x) { r.add_request(x, 5); },
      [](Recorder& r, RawRecord& x) { r.add_completed(x, 5); },
      [](Recorder& r, RawRecord& x) { r.add_count(x, 5); },
      [](Recorder& r, RawRecord& x) { r.add_recv_count(x, 5); },
  };
  const auto is_changed = [](std::size_t i) { return i % 8 == 5 || i % 8 == 7; };  // both come again
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {&testing::name_site, nullptr}, {});
  constexpr std::size_t kEach = 64;
  std::uint64_t now = 0;
  const auto record = [&](const Change* change) {
    RawRecord* x = r.begin();
    x->op = Op::alltoallv, x->enter = now += 10, x->exit = now += 10;
    x->caller = 0x1000, x->bytes = 8, x->comm = kCommWorld, x->peer = 0, x->tag = 5;
    r.add_request(*x, 1), r.add_completed(*x, 2);
    x->extra().recv_bytes = 8, x->extra().recv_peer = 0, x->extra().recv_tag = 5, x->extra().root = 0;
    if (change != nullptr) (*change)(r, *x);
    r.end();
    r.pump(10, 0);
  };
  for (const Change& change : changes) {
    for (std::size_t i = 0; i < kEach; ++i) record(is_changed(i) ? &change : nullptr);
  }
  r.flush();
  TraceReader trace({folder / "a"});
  const auto told = [](const CallEvent& e) {
    std::string s;
    for (const std::int64_t v : {std::int64_t{e.site}, static_cast<std::int64_t>(e.bytes), std::int64_t{e.comm}, std::int64_t{e.peer}, std::int64_t{e.tag},
                                 std::int64_t{e.flags}, static_cast<std::int64_t>(e.recv_bytes), std::int64_t{e.recv_peer}, std::int64_t{e.recv_tag},
                                 std::int64_t{e.root}}) s += std::to_string(v) + ' ';
    s += std::string(op_name(e.op));
    for (const std::uint32_t v : e.requests) s += " r" + std::to_string(v);
    for (const std::uint32_t v : e.completed) s += " d" + std::to_string(v);
    for (const std::uint64_t v : e.counts) s += " c" + std::to_string(v);
    for (const std::uint64_t v : e.recv_counts) s += " g" + std::to_string(v);
    return s;
  };
  std::vector<std::string> seen;
  CallEvent e;
  for (std::size_t k = 0; k < std::size(changes); ++k) {
    std::string plain, changed;
    for (std::size_t i = 0; i < kEach; ++i) {
      ASSERT_TRUE(trace.next(0, e));
      std::string& expected = is_changed(i) ? changed : plain;
      if (expected.empty()) expected = told(e);
      EXPECT_EQ(told(e), expected) << "change " << k << ", call " << i;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), changed), 0) << k;
    EXPECT_NE(changed, plain) << k;
    seen.push_back(changed);
  }
}

/// As when an exception is thrown through a call.
TEST_F(RecorderOfOneRank, ACallThatDoesNotEndLeavesNothingBehind) {
  RecorderOptions options;
  options.side_words = 8;
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {}, options);
  for (std::uint32_t i = 0; i < 50; ++i) {
    RawRecord* x = r.begin();
    x->op = Op::alltoallv, x->enter = 100 * i, x->exit = 100 * i + 50;
    for (std::uint64_t k = 0; k < 3; ++k) r.add_count(*x, 1000 + k);
    for (std::uint32_t k = 0; k < 3; ++k) r.add_request(*x, 1000 + k);
    if (i % 2 == 0) continue;
    x = r.begin();
    x->op = Op::startall, x->enter = 100 * i, x->exit = 100 * i + 50;
    for (std::uint32_t k = 0; k < 4; ++k) r.add_request(*x, i + k);
    r.end();
    r.pump(10, 0);
  }
  r.flush();
  TraceReader trace({folder / "a"});
  CallEvent e;
  for (std::uint32_t i = 1; i < 50; i += 2) {
    ASSERT_TRUE(trace.next(0, e));
    EXPECT_EQ(e.op, Op::startall);
    EXPECT_EQ(e.flags, 0);
    EXPECT_TRUE(e.counts.empty());
    ASSERT_EQ(e.requests.size(), 4u);
    for (std::uint32_t k = 0; k < 4; ++k) EXPECT_EQ(e.requests[k], i + k);
  }
  EXPECT_FALSE(trace.next(0, e));
}

TEST_F(RecorderOfOneRank, IsCrowdedWithMoreThanItIsToHold) {
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {}, {});
  r.relieve_at(3);
  const auto put = [&r] {
    r.begin();
    r.end();
    return r.crowded();
  };
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(put());
  EXPECT_TRUE(put());
  EXPECT_EQ(r.pending(), 4u);
  EXPECT_EQ(r.pump(1, 0), 1u);
  EXPECT_FALSE(r.crowded());
  EXPECT_TRUE(put());
}

double cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

TEST_F(RecorderOfOneRank, CostsLittle) {
  const TraceClock clock({1000, 0, 0.4});
  Recorder r(w, 0, 0, clock, {&testing::name_site, nullptr}, {});
  std::uint64_t tick = 1000;
  double hot = 0, packing = 0;
  constexpr int kRounds = 500, kSteps = 200;
  for (int i = 0; i < kRounds; ++i) {
    const double start = cpu_ns();
    for (int k = 0; k < kSteps; ++k) testing::record_step(r, kCommWorld, 1, tick, k * i);
    const double between = cpu_ns();
    r.pump(~0u, tick);
    hot += between - start;
    packing += cpu_ns() - between;
  }
  r.flush();
  constexpr double kEvents = 4.0 * kRounds * kSteps;
  std::printf("  %.0f ns in the path of a call, %.0f ns to pack and write it\n", hot / kEvents, packing / kEvents);
  EXPECT_EQ(r.dropped(), 0u);
}

TEST_F(RecorderOfOneRank, AnotherThreadMayPump) {
  RecorderOptions options;
  options.ring_records = 64;
  options.side_words = 16;
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {}, options);
  std::atomic<bool> done{false};
  std::thread helper([&] {
    while (!done.load()) {
      if (r.pending() != 0) {
        r.pump(8, 0);
      } else {
        std::this_thread::yield();  // the two may share a core
      }
    }
  });
  constexpr std::uint64_t kEvents = 100'000;
  for (std::uint64_t i = 0; i < kEvents;) {
    if (RawRecord* x = r.begin()) {
      x->op = Op::allgatherv, x->bytes = i, x->enter = 10 * i, x->exit = 10 * i + 5;
      for (std::uint64_t k = 0; k < i % 4; ++k) r.add_recv_count(*x, i + k);
      r.end();
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
  done = true;
  helper.join();
  r.flush();
  TraceReader trace({folder / "a"});
  CallEvent e;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    ASSERT_TRUE(trace.next(0, e));
    ASSERT_EQ(e.bytes, i);
    if ((e.flags & kEventCountsLost) != 0) continue;
    ASSERT_EQ(e.recv_counts.size(), i % 4);
    for (std::uint64_t k = 0; k < i % 4; ++k) ASSERT_EQ(e.recv_counts[k], i + k);
  }
  EXPECT_FALSE(trace.next(0, e));
}

TEST(Recorder, OldBlocksAreWrittenOutSmallOnesLater) {
  for (const std::uint32_t events : {1u, 3000u}) {
    const TemporaryFolder folder;
    FileWriter w;
    std::string problem;
    ASSERT_EQ(w.open((folder / "a").c_str(), {.world_size = 1}, problem), Status::ok);
    w.define_rank(0, {});
    const TraceClock clock({0, 0, 1.0});
    Recorder r(w, 0, 0, clock, {}, {});
    for (std::uint32_t i = 0; i < events; ++i) {
      RawRecord* x = r.begin();
      x->enter = 5 + i, x->exit = 6 + i;
      r.end();
    }
    const std::uint64_t before = w.bytes(), second = events == 1 ? 6'000'000'000 : 1'000'000'000;
    r.pump(events, 9 * second);
    EXPECT_EQ(w.bytes(), before) << events;
    r.pump(events, 11 * second);
    EXPECT_GT(w.bytes(), before) << events;
  }
}

TEST_F(RecorderOfOneRank, WhatRepeatsItselfCanBePackedAlone) {
  const TraceClock clock({0, 0, 1.0});
  Recorder r(w, 0, 0, clock, {}, {});
  constexpr std::uint64_t kStep = 1'000'000, kSteps = 11'000, kSecond = 1'000'000'000;
  const auto bytes = [](std::uint64_t i) { return i / 1000; };
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    RawRecord* x = r.begin();
    x->op = Op::allreduce, x->bytes = bytes(i), x->enter = i * kStep, x->exit = x->enter + 100;
    r.end();
    if (r.pump_repeated(2) == 0) {
      ++refused;
      EXPECT_EQ(r.pump(2, i * kStep), 1u);
    }
    EXPECT_EQ(r.pending(), 0u);
  }
  EXPECT_LT(refused, 100u) << "most of them repeat themselves";
  EXPECT_GT(refused, kSteps / 1000 - 1) << "new sizes do not";
  EXPECT_GT(w.bytes(), 0u);
  TraceReader early({folder / "a"});
  CallEvent e;
  EXPECT_TRUE(early.next(0, e)) << "what was ten seconds old is in the file";
  EXPECT_GE(early.info().ranks[0].events * kStep, 10 * kSecond);
  r.flush();
  TraceReader trace({folder / "a"});
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    ASSERT_TRUE(trace.next(0, e)) << i;
    EXPECT_EQ(e.bytes, bytes(i));
    EXPECT_EQ(e.enter_ns, i * kStep);
  }
  EXPECT_FALSE(trace.next(0, e));
}

TEST_F(RecorderOfOneRank, ACorrectedClockDoesNotJump) {
  TraceClock clock({0, 0, 1.001});  // 0.1 % too fast
  Recorder r(w, 0, 0, clock, {}, {});
  for (std::uint64_t ms = 1; ms < 5000; ++ms) {
    RawRecord* x = r.begin();
    x->enter = ms * 1'000'000, x->exit = x->enter + 100;
    r.end();
    r.pump(10, 0);
    const std::uint64_t now = ms * 1'000'000;
    if (ms % 1000 == 0) clock.correct({now, now, 1.0}, now + 10'000'000, [now] { return now; });
  }
  r.flush();
  TraceReader trace({folder / "a"});
  CallEvent e;
  std::uint64_t last = 0;
  while (trace.next(0, e)) {
    EXPECT_NEAR(static_cast<double>(e.enter_ns - last), 1e6, 3000);
    last = e.enter_ns;
  }
  EXPECT_NEAR(static_cast<double>(last), 4999e6, 1000);
}

}  // namespace
}  // namespace fallow::trace
