// When links rest, what that costs and saves: each rule by hand, each policy on a program.
#include "sim/policy.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sim/node_rest.hpp"
#include "sim/recorder.hpp"
#include "sim/synth.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

const LinkSpec kSpec{};  // 10 us both ways
constexpr Time kReact = 10 * kUs;

TEST(Timer, RestsAfterItAndWakesOnDemand) {
  const LinkPolicy policy{LinkRule::timer, 50 * kUs};
  const auto gap = [&](Time length) { return end_of_gap(policy, {}, kSpec, 0, length); };
  EXPECT_EQ(gap(50 * kUs).ready, 50 * kUs);
  EXPECT_EQ(gap(50 * kUs).rests, 0u);
  EXPECT_EQ(gap(55 * kUs).ready, 50 * kUs + 2 * kReact);  // the descent is completed first
  EXPECT_EQ(gap(55 * kUs).low, 0);
  EXPECT_EQ(gap(1 * kMs).ready, 1 * kMs + kReact);
  EXPECT_EQ(gap(1 * kMs).low, 1 * kMs - 60 * kUs);
}

TEST(Timer, GoesDeeperAfterALongerOne) {
  const LinkPolicy policy{LinkRule::timer, 50 * kUs, 1 * kMs};
  const RestResult r = end_of_gap(policy, {}, kSpec, 0, 10 * kMs);
  EXPECT_EQ(r.low, 1 * kMs - 60 * kUs);
  EXPECT_EQ(r.deep, 9 * kMs - kSpec.deep.down);
  EXPECT_EQ(r.ready, 10 * kMs + kSpec.deep.up);
}

TEST(Plan, MatchesThePredictorsOwnAccount) {
  const LinkPolicy policy{LinkRule::planned};
  const predict::ReactTimes react;
  for (const std::int64_t rest_us : {5, 15, 40, 80, 200}) {
    for (const std::int64_t gap_us : {1, 5, 12, 30, 60, 85, 95, 150, 300}) {
      const RestResult ours = end_of_gap(policy, {0, rest_us * kUs}, kSpec, 0, gap_us * kUs);
      const predict::RestOutcome theirs = predict::rest_outcome(Nanoseconds(rest_us * 1000), Nanoseconds(gap_us * 1000), react);
      EXPECT_EQ(ours.ready - gap_us * kUs, theirs.delay.value * kNs) << rest_us << " " << gap_us;
      if (gap_us >= 10) {
        EXPECT_EQ(ours.low, theirs.low.value * kNs) << rest_us << " " << gap_us;
      }
    }
  }
}

TEST(Oracle, NeverDelaysAndTakesTheBestState) {
  LinkPolicy policy{LinkRule::oracle};
  for (const Time gap : {5 * kUs, 20 * kUs, 21 * kUs, 10 * kMs}) {
    const RestResult r = end_of_gap(policy, {}, kSpec, 0, gap);
    EXPECT_EQ(r.ready, gap);
    EXPECT_EQ(r.low, std::max<Time>(0, gap - 2 * kReact));
  }
  policy.deep_timer = 0;
  EXPECT_EQ(end_of_gap(policy, {}, kSpec, 0, 20 * kMs).low, 0);
  EXPECT_EQ(end_of_gap(policy, {}, kSpec, 0, 20 * kMs).deep, 20 * kMs - 1100 * kUs);
}

TEST(Oracle, WakesNothingForTheEnd) {
  LinkPolicy policy{LinkRule::oracle};
  EXPECT_EQ(end_of_gap(policy, {}, kSpec, 0, 15 * kUs, true).low, 5 * kUs);
  EXPECT_EQ(end_of_gap(policy, {}, kSpec, 0, 10 * kUs, true).rests, 0u);
  policy.deep_timer = 0;
  EXPECT_EQ(end_of_gap(policy, {}, kSpec, 0, 20 * kMs, true).deep, 20 * kMs - kSpec.deep.down);
}

TEST(Oracle, SavesAtLeastWhatAnyOtherSavesInAShortRun) {
  const auto low = [](const char* name) {
    Machine machine = crossbar(2);
    Program p(2);
    for (int i = 0; i < 3; ++i) p.compute(40'000).p2p(0, Op::send, 1, 8, 1).p2p(1, Op::recv, 0, 8, 1);
    p.compute(15'000).collective(0, Op::init, 0);
    const Result r = p.run(machine, make_policy(name, {}, machine));
    return static_cast<double>(r.edge.low);
  };
  for (const char* other : {"hardware", "pps", "adaptive"}) EXPECT_GE(low("oracle"), low(other)) << other;
}

TEST(Delay, ReachesTheProgram) {
  Program p(2);
  p.compute(1'000'000).p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  Machine machine = crossbar(2);
  const Time bare = p.run(machine).makespan;
  const Result result = p.run(machine, make_policy("hardware", {}, machine));
  EXPECT_EQ(result.makespan, bare + 2 * kReact);  // both links wake, one after the other
  EXPECT_EQ(result.edge.delay, 2 * kReact);
  EXPECT_EQ(result.edge.late, 2u);
}

TEST(Join, ANodeRestsWhileAllItsRanksAreSilent) {
  NodePool pool;
  EventQueue queue;
  Machine machine = crossbar(2, 2);
  NetworkPolicy policy;
  policy.edge.rule = LinkRule::planned;
  Network network(machine, policy, pool, queue);
  NodeRest join(4, 2, false);
  join.leave(0, 100 * kUs, 500 * kUs, network);
  EXPECT_EQ(network.totals(LinkClass::edge, 1, 1 * kMs).low, 0);
  join.leave(1, 200 * kUs, 300 * kUs, network);
  const Time low = 2 * (300 * kUs - kReact);  // both directions, until the first wakes
  EXPECT_EQ(network.totals(LinkClass::edge, 1, 1 * kMs).low, low);
}

/// Four leaf switches of two nodes, two above them, one root; all are silent until 1 ms.
TEST(Join, SwitchesOfAllLevelsWakeForTheFirstRankBelowAndRestWithTheLast) {
  NodePool pool;
  EventQueue queue;
  Machine machine;
  machine.topology = parse_xgft("XGFT(3;2,2,2;1,1,1)");
  NetworkPolicy policy;
  policy.edge.rule = policy.upper.rule = LinkRule::planned;
  Network network(machine, policy, pool, queue, 8);
  NodeRest join(8, 1, true);
  join.join_groups(network);
  for (std::uint32_t r = 0; r < 8; ++r) join.leave(r, 0, kNever, network);
  join.enter(0, 1 * kMs, false, network);
  join.enter(1, 1 * kMs + 500 * kUs, false, network);
  join.enter(2, 2 * kMs, false, network);
  for (const std::uint32_t r : {0u, 1u}) join.leave(r, 3 * kMs, kNever, network);
  join.leave(2, 4 * kMs, kNever, network);
  const Time down = machine.link.rest.down;  // of each rest; 12 links, each way one
  const Time first_leaf = 1 * kMs + 7 * kMs - 2 * down, second_leaf = 2 * kMs + 6 * kMs - 2 * down, above = 1 * kMs + 6 * kMs - 2 * down;
  EXPECT_EQ(network.totals(LinkClass::upper, 8, 10 * kMs).low, 2 * (first_leaf + second_leaf + above) + 6 * (10 * kMs - down));
  EXPECT_EQ(network.totals(LinkClass::upper, 8, 10 * kMs).rests, 18u);
}

/// Four leaf switches of two nodes, two above them, one root. Links are up from a leaf and from above it, of each way one.
TEST(Join, WhoTellsOfAnotherSilenceWithoutACallTellsTheGroupsAboveToo) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(3;2,2,2;1,1,1)");
  NetworkPolicy policy;
  policy.edge.rule = policy.upper.rule = LinkRule::planned;
  const auto low = [&](auto&& tell) {
    NodePool pool;
    EventQueue queue;
    Network network(machine, policy, pool, queue, 8);
    NodeRest join(8, 1, false);
    join.join_groups(network);
    for (std::uint32_t r = 2; r < 8; ++r) join.leave(r, 0, kNever, network);
    tell(join, network);
    return network.totals(LinkClass::upper, 8, 10 * kMs).low;
  };
  const Time down = machine.link.rest.down, others = 4 * (10 * kMs - down);
  // The first ends right after a silence that was over for its switch: the end of the second came first, as each tells ahead of the clock.
  EXPECT_EQ(low([](NodeRest& join, Network& network) {
    join.leave(1, 5 * kMs, kNever, network);
    join.leave(0, 1 * kMs, 2 * kMs, network);
    join.leave(0, 1 * kMs, kNever, network);
  }), 2 * (2 * (5 * kMs - down) + others));
  // The first tells again when the second was to be back. That one is late, and silent again after a call.
  EXPECT_EQ(low([](NodeRest& join, Network& network) {
    join.leave(1, 0, 3 * kMs, network);
    join.leave(0, 1 * kMs, kNever, network);
    join.leave(0, 4 * kMs, kNever, network);
    join.enter(1, 6 * kMs, false, network);
    join.leave(1, 7 * kMs, kNever, network);
  }), 2 * (2 * (2 * kMs - down + 3 * kMs - down) + others));
}

TEST(Parts, WakeForACallAndRestAgainWithItsEnd) {
  RestStates states;
  states.rest = {0.3, 100 * kUs, 1 * kMs};
  const auto parts = [&] { return Parts({LinkRule::planned}, states, 10 * kUs, 1); };
  const std::uint32_t port[] = {1};
  Parts woken = parts();
  woken.plan(0, {0, kNever});
  woken.activate(0, 500 * kUs);
  woken.plan(0, {600 * kUs, kNever});
  EXPECT_EQ(woken.pass(0, 700 * kUs), 1500 * kUs);  // it is on its way back
  woken.busy(0, 1600 * kUs);
  const PartTotals t = woken.totals(port, 5 * kMs);
  EXPECT_EQ(t.low, (500 - 100 + 5000 - 1600 - 100) * kUs);
  EXPECT_EQ(t.rests, 2u);
  EXPECT_EQ(t.late, 1u);
  EXPECT_EQ(t.delay, 800 * kUs);
  Parts descending = parts();  // which is completed first
  descending.plan(0, {0, kNever});
  descending.activate(0, 50 * kUs);
  descending.plan(0, {60 * kUs, kNever});
  EXPECT_EQ(descending.pass(0, 200 * kUs), 1100 * kUs);
  Parts longer = parts();  // another end of the silence that it rests in
  longer.plan(0, {0, 2 * kMs});
  longer.plan(0, {1 * kMs, 4 * kMs});
  EXPECT_EQ(longer.totals(port, 10 * kMs).low, 4 * kMs + 10 * kUs - states.rest.up - states.rest.down);
  EXPECT_EQ(longer.totals(port, 10 * kMs).rests, 1u);
  longer.plan(0, {2 * kMs, kNever});
  EXPECT_EQ(longer.totals(port, 10 * kMs).low, 10 * kMs - states.rest.down);
}

TEST(Policies, SaveInTheOrderThatTheyShould) {
  SynthOptions options;
  options.ranks = 18;
  options.iterations = 300;
  std::map<std::string, Result> results;
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;18,14;1,18)");
  for (const PolicyInfo& info : policies()) {
    const auto source = synthesize("stencil3d", options);
    results[info.name] = Engine(machine, make_policy(info.name, {}, machine), *source).run();
  }
  const double full = results["always-on"].energy.edge_links.value;
  const auto saved = [&](const char* name) { return 1 - results[name].energy.edge_links.value / full; };
  const auto slower = [&](const char* name) {
    return static_cast<double>(results[name].makespan) / static_cast<double>(results["always-on"].makespan) - 1;
  };
  EXPECT_EQ(results["oracle"].makespan, results["always-on"].makespan);
  EXPECT_GT(saved("oracle"), 0.4);
  for (const char* name : {"pps", "adaptive"}) {
    EXPECT_GT(saved(name), 0.25) << name;
    EXPECT_LT(slower(name), 0.02) << name;
  }
  EXPECT_GT(slower("hardware"), 0.01);
  EXPECT_GE(saved("oracle"), saved("adaptive"));
}

/// Without contention no message passes a switch or a link between two of them: to rest there all the time would save what nobody
/// could have saved.
TEST(Policies, LeaveOnWhatNothingPassesWithoutContention) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;4,4;1,2)");
  PolicyOptions options;
  options.switches = options.cards = true;
  SynthOptions program;
  program.ranks = 16;
  program.iterations = 20;
  program.compute = Nanoseconds(10'000'000);
  for (const char* name : {"hardware", "oracle"}) {
    for (const Contention contention : {Contention::full, Contention::none}) {
      machine.contention = contention;
      const Result r = Engine(machine, make_policy(name, options, machine), *synthesize("stencil3d", program)).run();
      EXPECT_GT(r.edge.low, 0) << name;
      EXPECT_GT(r.card_parts.low, 0) << name;
      EXPECT_EQ(r.upper.low > 0, contention == Contention::full) << name;
      EXPECT_EQ(r.switch_parts.low > 0, contention == Contention::full) << name;
    }
  }
}

/// When rank 3 is through, where `part` rests, and links that wake in 10 us, or in 1 ms after 8 ms of idleness.
Time third_ends(const Machine& machine, bool PolicyOptions::*part, Program& program) {
  PolicyOptions options;
  options.*part = true;
  options.deep_timer = 8 * kMs;
  Engine engine(machine, make_policy("hardware", options, machine), program.source());
  engine.run();
  return engine.details().ranks[3].end;
}

Machine with_deep_rests() {
  Machine machine = crossbar(4);
  machine.link.deep = {0.1, 100 * kUs, 1 * kMs};
  return machine;
}

/// The link of the first sender takes 1 ms to wake, that of the second 10 us: the second one is at the switch first.
TEST(Policies, WakeASwitchForWhoComesToItFirst) {
  const Machine machine = with_deep_rests();
  Program p(4);
  p.compute(10'000'000).p2p(0, Op::send, 2, 8).p2p(2, Op::recv, 0, 8);
  p.compute(5'000'000).p2p(1, Op::send, 3, 8).p2p(3, Op::recv, 1, 8);
  p.compute(5'005'000).p2p(1, Op::send, 3, 8).p2p(3, Op::recv, 1, 8);
  const Time at_switch = 10'005 * kUs + kReact + 100 * kNs, awake = at_switch + machine.switches.states.rest.up;
  EXPECT_EQ(third_ends(machine, &PolicyOptions::switches, p), awake + kReact + 8 * kPerKib / 1024 + 100 * kNs + 1 * kUs);
}

/// Likewise its card: the message that is still under way to the node comes half a millisecond after the node's own.
TEST(Policies, WakeACardForWhoComesToItFirst) {
  const Machine machine = with_deep_rests();
  Program alone(4), met(4);
  for (Program* p : {&alone, &met}) p->compute(12'500'000).p2p(2, Op::send, 3, 8).p2p(3, Op::recv, 2, 8);
  met.compute(10'000'000).p2p(0, Op::send, 2, 8).p2p(2, Op::recv, 0, 8);
  EXPECT_EQ(third_ends(machine, &PolicyOptions::cards, met), third_ends(machine, &PolicyOptions::cards, alone));
}

/// Messages are matched in the order in which they were sent.
TEST(Policies, LetNoMessageOvertakeOneThatWasHeld) {
  for (int i = 0; i < 16; ++i) {
    Machine machine = crossbar(2);
    machine.contention = i % 2 == 0 ? Contention::full : Contention::none;
    machine.link.rest.up = i / 2 % 2 == 0 ? 10 * kUs : 1 * kUs;
    machine.message.overhead = i / 4 % 2 == 0 ? 0 : 350 * kNs;
    PolicyOptions options;
    options.cards = i / 8 == 1;
    const Policy policy = make_policy("hardware", options, machine);
    const std::vector<std::uint64_t> sizes{60'000, 40'000, 2000, 400, 8};
    Program same(2), other(2);
    same.compute(10'000'000);
    for (const std::uint64_t bytes : sizes) same.p2p(0, Op::send, 1, bytes).p2p(1, Op::recv, 0, bytes);
    Engine engine(machine, policy, same.source());
    Recorder recorder(2, 1, nullptr, true);
    engine.record(recorder);
    const Time all = engine.run().makespan;
    EXPECT_EQ(engine.details().too_short.count, 0u) << i;
    // Whoever waits for the last one has it no sooner than the others.
    other.compute(10'000'000);
    for (const std::uint64_t bytes : sizes) other.p2p(0, Op::send, 1, bytes, static_cast<std::int32_t>(bytes));
    other.p2p(1, Op::recv, 0, 8, 8).compute(1'000'000);
    for (std::size_t k = 0; k < 4; ++k) other.p2p(1, Op::recv, 0, sizes[k], static_cast<std::int32_t>(sizes[k]));
    EXPECT_GE(other.run(machine, policy).makespan, all + 1 * kMs) << i;
  }
}

/// Links that a call has woken begin another rest with its end, when they are back.
TEST(Policies, TellOfMessagesThatMeetLinksOnTheirWayBack) {
  Machine machine = crossbar(2);
  const Time up = machine.link.rest.up;
  for (const Contention contention : {Contention::full, Contention::none}) {
    machine.contention = contention;
    Program sends(2);  // a call that moves nothing wakes the sender's links, 3 us before the message comes
    sends.compute(1'000'000).p2p(0, Op::send, trace::kNullPeer, 0).compute(3'000).p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
    const Result sender = sends.run(machine, make_policy("calls", {}, machine));
    EXPECT_EQ(sender.makespan, sends.run(machine).makespan + up - 3 * kUs);
    EXPECT_EQ(sender.edge.late, 1u);
    EXPECT_EQ(sender.edge.delay, up - 3 * kUs);
    Program takes(2);  // likewise the receiver's, 5 us before; the sender's stay awake, as its calls are close to each other
    takes.compute(1'000'000).p2p(0, Op::send, trace::kNullPeer, 0).compute(15'000).p2p(0, Op::send, 1, 1024);
    takes.compute(1'010'000).p2p(1, Op::send, trace::kNullPeer, 0).compute(1'000'000).p2p(1, Op::recv, 0, 1024);
    const Result receiver = takes.run(machine, make_policy("loops", {}, machine));
    EXPECT_EQ(receiver.edge.late, 1u);
    EXPECT_EQ(receiver.edge.delay, up - 5 * kUs - machine.link.latency);
  }
}

/// The receiver's call comes 10 ms before the message: its card, and the switch, which serves both, are back by then.
TEST(Policies, WakeCardsAndSwitchesForCalls) {
  const Machine machine = crossbar(2);
  Program p(2);
  p.compute(20'000'000).p2p(0, Op::send, 1, 1024);
  p.compute(10'000'000).p2p(1, Op::recv, 0, 1024);
  const Time bare = p.run(machine).makespan;
  for (const char* name : {"calls", "loops"}) {
    PolicyOptions options;
    options.cards = true;
    EXPECT_EQ(p.run(machine, make_policy(name, options, machine)).makespan, bare + machine.node.card.states.rest.up) << name;
    options.switches = true;
    const Result r = p.run(machine, make_policy(name, options, machine));
    EXPECT_EQ(r.makespan, bare + machine.node.card.states.rest.up) << name;
    EXPECT_EQ(r.card_parts.late, 1u) << name;
    EXPECT_EQ(r.switch_parts.late, 0u) << name;
    EXPECT_GT(r.switch_parts.low, 2 * 9 * kMs) << name;
  }
}

/// What its sender's card holds for long comes to the receiver's link after what others have sent since.
TEST(Policies, WakeALinkForWhoComesToItFirst) {
  for (const Contention contention : {Contention::full, Contention::none}) {
    Machine machine = crossbar(3);
    machine.contention = contention;
    Program p(3);  // 20 messages of 12 us each keep the card of rank 0
    for (int k = 0; k < 20; ++k) p.p2p(0, Op::send, 2, 60'000);
    p.p2p(0, Op::send, 1, 8, 1);
    p.compute(100'000).p2p(2, Op::send, 1, 8, 2);
    for (int k = 0; k < 20; ++k) p.p2p(2, Op::recv, 0, 60'000);
    p.p2p(1, Op::recv, 2, 8, 2).p2p(1, Op::recv, 0, 8, 1);
    Engine engine(machine, make_policy("hardware", {}, machine), p.source());
    const Time makespan = engine.run().makespan;
    const LinkTotals to_1 = engine.details().links[4];
    EXPECT_EQ(to_1.rests, 2u);
    EXPECT_EQ(to_1.late, 2u);
    EXPECT_LT(to_1.low, makespan - 2 * (50 * kUs + 2 * kReact));  // twice idle before a rest, going to it and back
  }
}

TEST(Policies, CountNothingThatIsSentBeyondTheEnd) {
  Machine machine = crossbar(2);
  Program p(2);  // 64 KB take 13 us, and nobody takes them
  p.compute(1'000'000);
  for (std::uint32_t k = 0; k < 1000; ++k) p.p2p(0, Op::isend, 1, 65536, 0, k);
  p.compute(1'500'000).p2p(1, Op::send, trace::kNullPeer, 0);
  for (const char* name : {"always-on", "hardware"}) {
    const Result r = p.run(machine, make_policy(name, {}, machine));
    EXPECT_EQ(r.makespan, 1500 * kUs) << name;
    EXPECT_LE(r.edge.busy, 2 * 500 * kUs) << name;
    EXPECT_GT(r.edge.busy, 2 * 480 * kUs) << name;
    EXPECT_LE(r.energy.cards.value, 2 * machine.node.card.active.value * 1.5e-3) << name;
  }
}

/// Switches, cards and links in their deeper state take a millisecond to wake, a hundred times as long as links.
TEST(Policies, KeepToABudgetWhateverRests) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(3;2,2,6;1,2,2)");
  SynthOptions program;
  program.ranks = 24;
  program.jitter = 0.05;
  const auto run = [&](const Policy& policy) { return Engine(machine, policy, *synthesize("random", program)).run(); };
  for (int i = 0; i < 9; ++i) {
    PolicyOptions options;
    options.switches = i % 3 == 0;
    options.cards = i % 3 == 1;
    options.deep_timer = i % 3 == 2 ? 0 : kNever;
    program.compute = Nanoseconds(2'000'000 + i / 3 * 1'000'000);
    for (const std::uint32_t iterations : {10u, 300u}) {
      program.iterations = iterations;
      const Result r = run(make_policy("adaptive", options, machine));
      EXPECT_LE(static_cast<double>(r.makespan), 1.01 * static_cast<double>(run({}).makespan)) << i << ", " << iterations;
      if (iterations == 10u) continue;  // too soon for a rest that may cost a millisecond
      EXPECT_GT(r.switch_parts.low + r.card_parts.low + r.edge.deep, 0) << i;
    }
  }
}

TEST(Policies, ThatDoNotPredictPayForNoPredictor) {
  const Machine machine = crossbar(2);
  PolicyOptions options;
  options.cost = PredictorCost::published();
  for (const PolicyInfo& info : policies()) {
    const Policy policy = make_policy(info.name, options, machine);
    EXPECT_EQ(policy.cost.call, policy.predictor ? 1 * kUs : 0) << info.name;
  }
}

TEST(Policies, AreRefusedByOtherNames) { EXPECT_THROW(make_policy("none", {}, Machine{}), std::invalid_argument); }

}  // namespace
}  // namespace fallow::sim
