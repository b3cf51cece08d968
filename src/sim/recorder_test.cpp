// What a recorder shows agrees with the sums, and a critical path with what can be worked out by hand.
#include "sim/recorder.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sim/synth.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

Time sum(const CriticalPathResult& path) {
  Time all = 0;
  for (const PathShare& share : path.ranks) all += share.total();
  return all;
}

struct Recorded {
  Result result;
  CriticalPathResult path;
};

Recorded replay(const Machine& machine, const Policy& policy, trace::EventSource& source, Recorder& recorder) {
  const auto ranks = static_cast<std::uint32_t>(source.info().ranks.size());
  for (std::uint32_t r = 0; r < ranks; ++r) source.rewind(r);
  Engine engine(machine, policy, source);
  engine.record(recorder);
  Recorded out{engine.run(), {}};
  const Details details = engine.details();
  std::uint32_t last = 0;
  for (std::uint32_t r = 1; r < ranks; ++r) {
    if (details.ranks[r].end > details.ranks[last].end) last = r;
  }
  out.path = recorder.path()->result(last, details.ranks[last].end);
  return out;
}

TEST(CriticalPath, OfOneMessageByHand) {
  Program program(2);
  program.compute(5000).p2p(0, Op::send, 1, 1024);
  program.p2p(1, Op::recv, 0, 1024).compute(3000).collective(1, Op::barrier, 0, 0, trace::kCommSelf);
  Recorder recorder(2, 1, nullptr, true);
  const Recorded r = replay(crossbar(2), {}, program.source(), recorder);
  EXPECT_EQ(r.path.ranks[0].computing, 5 * kUs);
  EXPECT_EQ(r.path.ranks[1].computing, 3 * kUs);
  EXPECT_EQ(r.path.ranks[1].transfer, kLatency + kPerKib);
  EXPECT_EQ(r.path.messages, 1u);
  EXPECT_EQ(sum(r.path), r.result.makespan);
}

TEST(CriticalPath, OfALateReceiveGoesThroughTheReceiver) {
  constexpr std::uint64_t kLong = 1 << 20;
  Program program(2);
  program.p2p(0, Op::send, 1, kLong).compute(1000).collective(0, Op::barrier, 0, 0, trace::kCommSelf);
  program.compute(50'000).p2p(1, Op::recv, 0, kLong);
  Recorder recorder(2, 1, nullptr, true);
  const Recorded r = replay(crossbar(2), {}, program.source(), recorder);
  EXPECT_EQ(r.path.ranks[1].computing, 50 * kUs);
  EXPECT_EQ(r.path.ranks[0].computing, 1 * kUs);
  EXPECT_EQ(sum(r.path), r.result.makespan);
}

TEST(CriticalPath, ShowsWhatRestingLinksCost) {
  Program program(2);
  program.compute(500'000).p2p(0, Op::send, 1, 1024);
  program.p2p(1, Op::recv, 0, 1024);
  Policy policy;
  policy.edge = {LinkRule::timer, 50 * kUs};
  Recorder recorder(2, 1, nullptr, true);
  const Recorded r = replay(crossbar(2), policy, program.source(), recorder);
  EXPECT_EQ(r.path.ranks[1].link_wake, 20 * kUs);  // of the card's link and of the switch's
  EXPECT_EQ(sum(r.path), r.result.makespan);
}

/// What comes while a link wakes for another message waits for the same.
TEST(CriticalPath, ShowsWhatWakingLinksCostThoseBehind) {
  Program program(2);
  program.compute(500'000);
  for (std::int32_t tag = 0; tag < 4; ++tag) program.p2p(0, Op::send, 1, 1024, tag).p2p(1, Op::recv, 0, 1024, tag);
  Policy policy;
  policy.edge = {LinkRule::timer, 50 * kUs};
  Recorder recorder(2, 1, nullptr, true);
  const Recorded r = replay(crossbar(2), policy, program.source(), recorder);
  EXPECT_EQ(r.result.makespan, 500 * kUs + 20 * kUs + kLatency + 4 * kPerKib);
  EXPECT_EQ(r.path.ranks[1].link_wake, 20 * kUs - 3 * kPerKib);  // the last of them comes to the second link so much later
  EXPECT_EQ(sum(r.path), r.result.makespan);
}

TEST(CriticalPath, OfAMessageThatItsSenderPassesOnWhileItComputes) {
  Program program(4);
  for (std::uint32_t r = 0; r < 4; ++r) {
    CallEvent call;
    call.op = Op::ibcast;
    call.bytes = 1024;
    call.root = 0;
    const std::uint32_t request = 0;
    call.requests = {&request, 1};
    program.add(r, call);
    if (r == 1 || r == 2) program.compute(1'000'000);  // whichever passes it on
    program.wait(r, Op::wait, {0});
  }
  program.compute(2'000'000).collective(3, Op::barrier, 0, 0, trace::kCommSelf);  // ends last
  Recorder recorder(4, 1, nullptr, true);
  const Recorded r = replay(crossbar(4), {}, program.source(), recorder);
  EXPECT_EQ(sum(r.path), r.result.makespan);
  for (const PathShare& share : r.path.ranks) EXPECT_GE(share.in_calls, 0);
  EXPECT_EQ(r.path.ranks[1].computing + r.path.ranks[2].computing, kLatency + kPerKib) << "until it had the message";
}

TEST(CriticalPath, AddsUpToTheRunTimeAndRecordingChangesNothing) {
  for (const SynthInfo& info : synth_programs()) {
    for (const char* name : {"always-on", "hardware", "adaptive", "oracle"}) {
      SynthOptions options;
      options.ranks = 24;
      options.iterations = 60;
      options.jitter = 0.2;
      options.bytes = 100'000;
      const auto source = synthesize(info.name, options);
      Machine machine = crossbar(12, 2);
      PolicyOptions with;
      with.core.name = "sleep";
      const Policy policy = make_policy(name, with, machine);
      const Result bare = Engine(machine, policy, *source).run();
      TimelineOptions timeline;
      Recorder recorder(24, 2, &timeline, true);
      const Recorded r = replay(machine, policy, *source, recorder);
      EXPECT_EQ(to_json(bare), to_json(r.result)) << info.name << " " << name;
      EXPECT_EQ(sum(r.path), r.result.makespan) << info.name << " " << name;
    }
  }
}

/// Where nothing is drawn, links are followed in a shorter way.
TEST(Recorder, ShowsTheSameWhetherItDrawsOrNot) {
  for (const SynthInfo& info : synth_programs()) {
    for (const char* name : {"always-on", "hardware", "oracle"}) {
      SynthOptions options;
      options.ranks = 60;
      options.iterations = 20;
      options.jitter = 0.2;
      options.bytes = 20'000;
      options.compute = Nanoseconds(200'000);
      const auto source = synthesize(info.name, options);
      Machine machine = crossbar(64);
      machine.topology = full_fat_tree(64, 3);
      const Policy policy = make_policy(name, {}, machine);
      TimelineOptions timeline;
      Recorder draws(60, 1, &timeline, true), does_not(60, 1, nullptr, true);
      const Recorded a = replay(machine, policy, *source, draws), b = replay(machine, policy, *source, does_not);
      EXPECT_EQ(to_json(a.result), to_json(b.result)) << info.name << " " << name;
      EXPECT_TRUE(a.path.ranks == b.path.ranks) << info.name << " " << name;
      EXPECT_EQ(a.path.messages, b.path.messages);
      EXPECT_GT(draws.edge_idle().class_count[0] + draws.edge_idle().class_count[1], 0u);
      for (const auto idle : {&Recorder::edge_idle, &Recorder::upper_idle}) {
        EXPECT_EQ((draws.*idle)().count, (does_not.*idle)().count) << info.name << " " << name;
        EXPECT_TRUE((draws.*idle)().time == (does_not.*idle)().time) << info.name << " " << name;
      }
    }
  }
}

TEST(Recorder, SpansOfLinksAddUpToTheirSums) {
  SynthOptions options;
  options.ranks = 16;
  options.iterations = 50;
  options.jitter = 0.1;
  const auto source = synthesize("stencil3d", options);
  for (const char* name : {"hardware", "pps", "adaptive", "oracle"}) {
    const Machine machine = crossbar(16);
    TimelineOptions timeline;
    Recorder recorder(16, 1, &timeline, true);
    const Recorded r = replay(machine, make_policy(name, {}, machine), *source, recorder);
    std::map<LinkState, Time> sums;
    std::map<std::uint32_t, Time> last;
    for (const LinkSpan& s : recorder.links()) {
      EXPECT_LE(s.end, r.result.makespan) << name;
      sums[s.state] += s.end - s.begin;
      if (s.state == LinkState::sending) continue;
      EXPECT_GE(s.begin, last[s.link]) << name;
      last[s.link] = s.end;
    }
    EXPECT_EQ(sums[LinkState::low], r.result.edge.low) << name;
    EXPECT_GE(sums[LinkState::sending], r.result.edge.busy) << name;
    std::size_t calls = 0;
    for (const CallSpan& s : recorder.calls()) {
      EXPECT_LE(s.waited + s.slept, s.end - s.begin);
      ++calls;
    }
    EXPECT_EQ(calls, r.result.calls);
    EXPECT_EQ(recorder.complete_until(), kNever);
  }
}

/// Also where rests keep links from their next message, and where they begin anew before it has come.
TEST(Recorder, IdleTimeIsWhatIsNeitherSentNorWaitedForALink) {
  SynthOptions options;
  options.ranks = 8;
  options.iterations = 30;
  options.jitter = 0.2;
  const Machine machine = crossbar(10);
  for (const char* const name : {"always-on", "hardware", "calls", "loops", "pps", "adaptive", "oracle"}) {
    for (const char* const program : {"cg", "stencil3d"}) {
      const auto source = synthesize(program, options);
      Recorder recorder(8, 1, nullptr, true);
      const Recorded r = replay(machine, make_policy(name, {}, machine), *source, recorder);
      TimeSum idle = 0, classes = 0;
      std::uint64_t count = 0;
      for (const TimeSum t : recorder.edge_idle().time) idle += t;
      for (const std::uint64_t n : recorder.edge_idle().count) count += n;
      for (const TimeSum t : recorder.edge_idle().class_time) classes += t;
      EXPECT_EQ(idle, classes);
      const auto whole = static_cast<double>(16 * r.result.makespan), told = static_cast<double>(idle + r.result.edge.busy + r.result.edge.delay);
      EXPECT_NEAR(told, whole, 2e-3 * whole) << name << ", " << program;
      EXPECT_LE(r.result.edge.low + r.result.edge.deep, idle) << name << ", " << program;
      EXPECT_GT(count, 16u * 30u) << name << ", " << program;
    }
  }
}

TEST(Recorder, EndsItsTimelineWhereItIsFull) {
  SynthOptions options;
  options.ranks = 8;
  const auto source = synthesize("stencil3d", options);
  TimelineOptions timeline;
  timeline.most = 100;
  Recorder recorder(8, 1, &timeline, false);
  const Machine machine = crossbar(8);
  for (std::uint32_t r = 0; r < 8; ++r) source->rewind(r);
  Engine engine(machine, {}, *source);
  engine.record(recorder);
  engine.run();
  EXPECT_EQ(recorder.calls().size(), 100u);
  EXPECT_LT(recorder.complete_until(), 2 * kMs);
}

/// What a rank finds done, but for its own part of it, it waits for without leaving the call.
TEST(Timeline, ShowsWaitsForWhatHasComeAlready) {
  Machine machine = crossbar(3);
  machine.message.match = 700 * kNs;
  Program program(3);
  for (std::int32_t from : {0, 1}) program.p2p(static_cast<std::uint32_t>(from), Op::send, 2, 1024);
  program.compute(50'000).p2p(2, Op::recv, 0, 1024);                   // has come
  program.compute(50'000).p2p(2, Op::irecv, 1, 1024, 0, 1);            // likewise
  program.p2p(2, Op::irecv, 0, 1024, 1, 2).wait(2, Op::waitall, {1, 2});  // the one likewise, the other not yet
  program.compute(200'000).p2p(0, Op::send, 2, 1024, 1);
  const TimelineOptions options;
  Recorder recorder(3, 1, &options, false);
  Engine engine(machine, {}, program.source());
  engine.record(recorder);
  engine.run();
  Time waited = 0;
  for (const CallSpan& s : recorder.calls()) {
    EXPECT_LE(s.waited, s.end - s.begin);
    waited += s.rank == 2 ? s.waited : 0;
  }
  EXPECT_EQ(waited, engine.details().ranks[2].waiting);
  EXPECT_GT(waited, 1400 * kNs);
}

}  // namespace
}  // namespace fallow::sim
