// Contention on a fat tree, and what looking ahead changes.
#include "sim/network.hpp"

#include <gtest/gtest.h>

#include "sim/recorder.hpp"
#include "sim/synth.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

Machine tree(const char* text, Routing routing = Routing::d_mod_k) {
  Machine machine;
  machine.topology = parse_xgft(text);
  machine.topology.routing = routing;
  return machine;
}

TEST(Network, WaysOfDifferentLengthTakeTheirHops) {
  for (const auto& [to, hops] : {std::pair(1, 2), std::pair(5, 4), std::pair(60, 6)}) {
    Program p(64);
    p.p2p(0, Op::send, to, 1024).p2p(static_cast<std::uint32_t>(to), Op::recv, 0, 1024);
    EXPECT_EQ(p.run(tree("XGFT(3;4,4,4;1,4,4)")).makespan, 1 * kUs + hops * 100 * kNs + kPerKib);
  }
}

TEST(Network, OneUpperLinkIsShared) {
  // Four nodes of one switch send over its only link upwards.
  Program p(8);
  for (std::uint32_t r = 0; r < 4; ++r) {
    p.p2p(r, Op::send, static_cast<std::int32_t>(r) + 4, 32768);
    p.p2p(r + 4, Op::recv, static_cast<std::int32_t>(r), 32768);
  }
  EXPECT_EQ(p.run(tree("XGFT(2;4,2;1,1)")).makespan, 1 * kUs + 400 * kNs + 4 * 32 * kPerKib);
  EXPECT_EQ(p.run(tree("XGFT(2;4,2;1,4)")).makespan, 1 * kUs + 400 * kNs + 32 * kPerKib);
}

/// However much they have before them: ten long ones take a receiver's link for 20 ms, but a short one in 4 us.
TEST(Network, ShortMessagesPassLongQueuesOfLongOnes) {
  constexpr std::uint32_t kSenders = 10;
  Program p(kSenders + 2);
  for (std::uint32_t r = 1; r <= kSenders; ++r) {
    p.p2p(0, Op::irecv, static_cast<std::int32_t>(r), 10'000'000, 1, r);
    p.p2p(r, Op::send, 0, 10'000'000, 1);
  }
  const auto last = static_cast<std::int32_t>(kSenders + 1);
  p.p2p(0, Op::recv, last, 8, 2).p2p(0, Op::send, last, 8, 2);
  p.compute(3'000'000).p2p(kSenders + 1, Op::send, 0, 8, 2).p2p(kSenders + 1, Op::recv, 0, 8, 2);
  p.compute(100'000'000).p2p(kSenders + 1, Op::send, 0, 8, 3);
  EXPECT_LT(p.run(tree("XGFT(1;12;1)")).makespan, 103 * kMs + 4 * kUs);
}

/// Nor does one that is sent when the one before it is to come to their link, which it does by an event at that time: the sender has
/// computed up to there, ahead of the clock, as overheads take a time.
TEST(Network, NoMessageOvertakesAnotherOfItsPair) {
  for (const Time lookahead : {Time{0}, 1 * kUs}) {
    Machine machine = tree("XGFT(2;4,4;1,2)");
    machine.lookahead = lookahead;
    machine.message.overhead = 300 * kNs;
    const std::vector<std::uint64_t> sizes{9, 8, 7, 60'000, 6};
    Program p(16);
    for (const std::uint64_t bytes : sizes) p.p2p(0, Op::send, 5, bytes, 3).p2p(5, Op::recv, 0, bytes, 3);
    Engine engine(machine, {}, p.source());
    Recorder recorder(16, 1, nullptr, true);
    engine.record(recorder);
    const Time all = engine.run().makespan;
    EXPECT_EQ(engine.details().too_short.count, 0u);
    Program last_first(16);
    for (std::size_t i = 0; i < sizes.size(); ++i) last_first.p2p(0, Op::send, 5, sizes[i], static_cast<std::int32_t>(i));
    last_first.p2p(5, Op::recv, 0, sizes[4], 4).compute(1'000'000);
    for (std::size_t i = 0; i < 4; ++i) last_first.p2p(5, Op::recv, 0, sizes[i], static_cast<std::int32_t>(i));
    EXPECT_GE(last_first.run(machine).makespan, all + 1 * kMs);
  }
}

TEST(Network, TrainsInsteadOfSegmentsChangeLittle) {
  // Long messages over shared links: one segment at a time against trains of 32.
  SynthOptions options;
  options.ranks = 16;
  options.iterations = 2;
  options.bytes = 300000;
  options.compute = Nanoseconds(1000);
  Machine machine = tree("XGFT(2;4,4;1,2)");
  machine.message.eager_limit = 1000;
  const auto run = [&](std::uint32_t segments, Time lookahead) {
    machine.message.train_segments = segments;
    machine.lookahead = lookahead;
    const auto source = synthesize("random", options);
    return static_cast<double>(Engine(machine, {}, *source).run().makespan);
  };
  const double exact = run(1, 0);
  EXPECT_NEAR(run(32, 0) / exact, 1.0, 0.05);
  EXPECT_NEAR(run(32, 1 * kUs) / exact, 1.0, 0.05);
}

TEST(Network, TrainsInsteadOfSegmentsChangeLittleForPairwiseExchanges) {
  // What announces and clears long messages passes between their packets, not behind their trains.
  for (const std::uint64_t bytes : {8192, 65536, 300000}) {
    SynthOptions options;
    options.ranks = 16;
    options.iterations = 4;
    options.bytes = bytes;
    options.compute = Nanoseconds(200'000);
    options.jitter = 0.02;
    Machine machine = tree("XGFT(2;4,4;1,2)");
    machine.message.eager_limit = 1000;
    const auto run = [&](std::uint32_t segments, Time lookahead) {
      machine.message.train_segments = segments;
      machine.lookahead = lookahead;
      const auto source = synthesize("alltoall", options);
      return static_cast<double>(Engine(machine, {}, *source).run().makespan);
    };
    const double exact = run(1, 0);
    EXPECT_NEAR(run(32, 0) / exact, 1.0, 0.05) << bytes;
    EXPECT_NEAR(run(32, 1 * kUs) / exact, 1.0, 0.05) << bytes;
  }
}

TEST(Network, AShortMessageTakesTurnsWithTrains) {
  Machine machine = crossbar(3);
  Program p(3);  // a long message to 2 takes 210 us; in its midst comes a short one
  p.p2p(0, Op::send, 2, 1 << 20, 7);
  p.compute(100'000).p2p(1, Op::send, 2, 8);
  p.p2p(2, Op::irecv, 0, 1 << 20, 7, 0).p2p(2, Op::recv, 1, 8).compute(1'000'000).wait(2, Op::wait, {0});
  const Time packet = 2 * kPerKib;
  const Result r = p.run(machine);
  EXPECT_GE(r.makespan, 100 * kUs + kLatency + 1 * kMs);
  EXPECT_LE(r.makespan, 100 * kUs + kLatency + 1 * kMs + 2 * packet);
}

TEST(Network, LookaheadChangesLittle) {
  SynthOptions options;
  options.ranks = 64;
  options.iterations = 10;
  options.jitter = 0.05;
  for (const char* program : {"stencil3d", "cg", "fft", "random"}) {
    const auto run = [&](Time lookahead) {
      Machine machine = tree("XGFT(2;8,8;1,4)");
      machine.lookahead = lookahead;
      const auto source = synthesize(program, options);
      return Engine(machine, {}, *source).run();
    };
    const Result exact = run(0), ahead = run(1 * kUs);
    EXPECT_NEAR(static_cast<double>(ahead.makespan) / static_cast<double>(exact.makespan), 1.0, 0.01) << program;
    EXPECT_EQ(ahead.edge.busy, exact.edge.busy) << program;
    EXPECT_LT(ahead.events, exact.events) << program;
  }
}

TEST(Network, MessagesOfAPairKeepTheirOrder) {
  // Long ones delay the short ones behind them; with tags alike only the order tells them apart.
  for (const Routing routing : {Routing::d_mod_k, Routing::random}) {
    Program p(16);
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t bytes = i % 3 == 0 ? 60000 : 8;
      for (std::uint32_t r = 0; r < 15; ++r) p.p2p(r, Op::send, 15, bytes, i);
    }
    for (int i = 0; i < 30; ++i) {
      for (std::int32_t r = 0; r < 15; ++r) p.p2p(15, Op::recv, r, 0, trace::kAnyTag);
    }
    const Result result = p.run(tree("XGFT(2;4,4;1,2)", routing));
    EXPECT_EQ(result.messages, 450u);
  }
}

TEST(Network, EnergyOfTwoIdleNodes) {
  Program p(2);
  p.compute(1'000'000'000).collective(0, Op::wait, 0).compute(1'000'000'000).collective(1, Op::wait, 0);
  Machine machine = crossbar(2);
  const Result result = p.run(machine);
  EXPECT_EQ(result.makespan, 1000 * kMs);
  EXPECT_NEAR(result.energy.edge_links.value, 4 * 2.0, 1e-9);
  EXPECT_NEAR(result.energy.switches.value, 2 * 2.0 * 0.36 / 0.64, 1e-9);
  EXPECT_NEAR(result.energy.cores.value, 2 * machine.node.core.power.compute.value, 1e-9);
}

}  // namespace
}  // namespace fallow::sim
