// Rests beyond edge links: links between switches, switches, cards, fewer lanes; and that times and
// energies add up whatever rests.
#include <gtest/gtest.h>

#include <random>

#include "sim/node_rest.hpp"
#include "sim/synth.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

constexpr Time kReact = 10 * kUs;

// --- the closed forms against a machine of states that is stepped through, microsecond by microsecond

struct Stepped {
  Time low = 0, deep = 0, ready = 0;
};

enum class Phase { full, down, low, deeper, deep, up };

/// A link that idles from 0 until a message comes at `arrival`, by its timers or by a plan.
Stepped step_through(const LinkPolicy& policy, const RestPlan& plan, const RestStates& spec, Time arrival) {
  Stepped s;
  Phase phase = Phase::full;
  Time until = 0;
  bool rested = false, deep = false;
  for (Time t = 0;; t += kUs) {
    const bool timed = policy.rule == LinkRule::timer;
    const bool begins = timed ? t >= policy.timer : t >= plan.begin && plan.wake > plan.begin;
    const bool ends = t >= arrival || (!timed && t >= plan.wake);
    if (phase == Phase::full && !rested && begins && t < arrival) {
      phase = Phase::down;
      deep = !timed && plan.deep;
      until = t + (deep ? spec.deep.down : spec.rest.down);
      rested = true;
    }
    if (phase == Phase::down && t >= until) phase = deep ? Phase::deep : Phase::low;
    if (phase == Phase::low && !ends && timed && t >= policy.deep_timer) {
      phase = Phase::deeper;
      until = t + spec.deep.down;
      deep = true;
    }
    if (phase == Phase::deeper && t >= until) phase = Phase::deep;
    if ((phase == Phase::low || phase == Phase::deep) && ends) {
      phase = Phase::up;
      until = t + (deep ? spec.deep.up : spec.rest.up);
    }
    if (phase == Phase::up && t >= until) phase = Phase::full;
    if (phase == Phase::full && t >= arrival) {
      s.ready = t;
      return s;
    }
    s.low += phase == Phase::low ? kUs : 0;
    s.deep += phase == Phase::deep ? kUs : 0;
  }
}

TEST(ClosedForms, AreWhatStatesSteppedThroughGive) {
  std::mt19937_64 random(1);
  const auto us = [&](int most) { return static_cast<Time>(random() % static_cast<std::uint64_t>(most)) * kUs; };
  for (int i = 0; i < 3000; ++i) {
    RestStates spec;
    spec.rest = {0.4, us(30), us(30)};
    spec.deep = {0.1, us(100), us(300)};
    LinkPolicy policy{i % 2 == 0 ? LinkRule::timer : LinkRule::planned, us(100), i % 3 == 0 ? us(400) : kNever};
    RestPlan plan{us(50), us(600), i % 5 == 0};
    const Time arrival = kUs + us(900);
    const RestResult ours = end_of_gap(policy, plan, spec, 0, arrival);
    const Stepped theirs = step_through(policy, plan, spec, arrival);
    EXPECT_EQ(ours.low, theirs.low) << i;
    EXPECT_EQ(ours.deep, theirs.deep) << i;
    EXPECT_EQ(ours.ready, theirs.ready) << i;
  }
}

// --- sums

TEST(Sums, TimesAndEnergiesAddUpWhateverRests) {
  std::mt19937_64 random(2);
  const char* topologies[] = {"XGFT(2;4,4;1,2)", "XGFT(3;2,3,4;1,2,2)", "dragonfly", "torus", "crossbar"};
  for (int i = 0; i < 120; ++i) {
    Machine machine;
    const std::string kind = topologies[random() % std::size(topologies)];
    if (kind.starts_with("XGFT")) {
      machine.topology = parse_xgft(kind);
    } else {
      machine.topology.kind = kind;
      machine.topology.nodes = 24;
      machine.topology.extent = {3, 4};
      machine.topology.nodes_per_switch = 2;
      machine.topology.switches_per_group = 4;
      machine.topology.global_links = 1;
    }
    machine.node.ranks = 1 + static_cast<std::uint32_t>(random() % 3);
    machine.switches.idle_fraction = 0.8;
    machine.contention = random() % 4 == 0 ? Contention::none : Contention::full;
    PolicyOptions options;
    options.compress.ratio = random() % 2 == 0 ? 1.0 : 0.5;
    options.compress.what = static_cast<CompressPolicy::What>(random() % 3);
    options.deep_timer = random() % 3 == 0 ? 500 * kUs : kNever;
    options.switches = random() % 2 == 0;
    options.cards = random() % 2 == 0;
    options.upper_links = random() % 4 != 0;
    SynthOptions program;
    program.ranks = 16;
    program.iterations = 6;
    program.bytes = 1 + random() % 200'000;
    program.compute = Nanoseconds(static_cast<std::int64_t>(random() % 6'000'000));
    program.jitter = 0.2;
    program.seed = random();
    const char* name = policies()[random() % policies().size()].name;
    const auto source = synthesize(synth_programs()[random() % synth_programs().size()].name, program);
    const Result r = Engine(machine, make_policy(name, options, machine), *source).run();
    const auto where = std::string(name) + " on " + kind + ", " + std::to_string(i);
    const LinkSpec& link = machine.link;
    double ports = 0;
    for (const LinkTotals* t : {&r.edge, &r.upper}) {
      const auto all = static_cast<Time>(t->links) * r.makespan;
      const TimeSum full = all - t->low - t->deep - t->narrow;
      EXPECT_GE(full, 0) << where;
      EXPECT_GE(t->low, 0) << where;
      EXPECT_GE(t->narrow, 0) << where;
      EXPECT_LE(t->busy, all - t->low - t->deep) << where;
      ports += link.port.value * (seconds(full).value + link.rest.fraction * seconds(t->low).value + link.deep.fraction * seconds(t->deep).value +
                                  link.fraction_at(r.lanes_on) * seconds(t->narrow).value);
    }
    EXPECT_NEAR(r.energy.edge_links.value + r.energy.upper_links.value, ports, 1e-9 * ports) << where;
    const double beside = link.port.value * (1 - link.share_of_switch) / link.share_of_switch;
    const Time of_switches = static_cast<Time>(r.edge.links / 2 + r.upper.links) * r.makespan;
    const TimeSum passing = r.edge.busy / (machine.contention == Contention::none ? 1 : 2) + r.upper.busy;
    EXPECT_LE(r.switch_parts.low, of_switches) << where;
    const double switches = beside * (0.8 * seconds(of_switches - r.switch_parts.low).value +
                                      0.8 * machine.switches.states.rest.fraction * seconds(r.switch_parts.low).value + 0.2 * seconds(passing).value);
    EXPECT_NEAR(r.energy.switches.value, switches, 1e-9 * switches) << where;
    EXPECT_LE(r.card_parts.low, static_cast<Time>(r.nodes) * r.makespan) << where;
    EXPECT_GT(r.energy.cards.value, 0) << where;
    const CoreTotals& c = r.cores;
    EXPECT_EQ(c.computing + c.in_calls + c.waiting + c.resting + c.changing, static_cast<Time>(r.ranks) * r.makespan) << where;
  }
}

/// 600 ranks for five hours: 63 bits do not hold their picoseconds.
TEST(Sums, OfLongRunsOfManyRanksAreWhole) {
  SynthOptions program;
  program.ranks = 600;
  program.iterations = 18;
  program.compute = Nanoseconds(1'000'000'000'000);
  Machine machine;
  machine.topology = full_fat_tree(program.ranks, 3);
  const auto source = synthesize("stencil3d", program);
  const Result r = Engine(machine, make_policy("oracle", {}, machine), *source).run();
  const double all = static_cast<double>(program.ranks) * seconds(r.makespan).value;
  EXPECT_GT(all, 9.3e6);
  EXPECT_GT(seconds(r.cores.computing).value, 0.9 * all);
  EXPECT_GT(seconds(r.edge.low).value, 0.9 * 2 * all);
  EXPECT_LT(seconds(r.edge.low).value, 2 * all);
  EXPECT_GT(r.energy.cores.value, 0);
  EXPECT_NE(to_json(r).find("\"low_ps\":" + std::to_string(static_cast<std::int64_t>(r.edge.low / 1'000'000'000)).substr(0, 10)), std::string::npos);
}

/// Where no message waits for another, leaving contention out changes no time, and no energy either.
TEST(Sums, OfCardsAndSwitchesHangOnWhatIsCarried) {
  Machine machine = crossbar(4);
  Program p(4);
  for (int i = 0; i < 5; ++i) p.p2p(0, Op::send, 1, 60'000).p2p(1, Op::recv, 0, 60'000).p2p(1, Op::send, 0, 4096).p2p(0, Op::recv, 1, 4096);
  p.p2p(2, Op::send, 3, 30'000).p2p(3, Op::recv, 2, 30'000);
  machine.switches.idle_fraction = 0.5;
  const Result full = p.run(machine);
  machine.contention = Contention::none;
  const Result alone = p.run(machine);
  EXPECT_EQ(alone.makespan, full.makespan);
  EXPECT_DOUBLE_EQ(alone.energy.cards.value, full.energy.cards.value);
  EXPECT_DOUBLE_EQ(alone.energy.switches.value, full.energy.switches.value);
  EXPECT_GT(full.energy.cards.value, machine.node.card.idle.value * 4 * seconds(full.makespan).value);
}

// --- links between switches

TEST(Groups, ALinkRestsWhileAllNodesBelowAreSilent) {
  NodePool pool;
  EventQueue queue;
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;2,2;1,1)");  // four nodes, two leaf switches, one link up from each
  NetworkPolicy policy;
  policy.edge.rule = policy.upper.rule = LinkRule::planned;
  Network network(machine, policy, pool, queue);
  NodeRest join(4, 1, false);
  join.join_groups(network);
  const auto low = [&] { return network.totals(LinkClass::upper, 4, 10 * kMs).low; };
  join.leave(0, 100 * kUs, 500 * kUs, network);
  EXPECT_EQ(low(), 0);
  join.leave(1, 200 * kUs, 300 * kUs, network);  // both of the first switch: its link rests, both ways, till the first
  EXPECT_EQ(low(), 2 * (300 * kUs - kReact));
  join.enter(1, 500 * kUs, false, network);
  join.leave(1, 600 * kUs, 900 * kUs, network);  // the other was to be back at 600
  EXPECT_EQ(low(), 2 * (300 * kUs - kReact));
  join.enter(0, 610 * kUs, false, network);
  join.leave(0, 700 * kUs, 100 * kUs, network);
  EXPECT_EQ(low(), 2 * (300 * kUs - kReact + 100 * kUs - kReact));
}

TEST(Groups, ADeepRestThatGoesOnEndsInTimeForItsOwnState) {
  NodePool pool;
  EventQueue queue;
  Machine machine = crossbar(2);
  machine.link.deep = {0.1, 100 * kUs, 1 * kMs};
  NetworkPolicy policy;
  policy.edge = {LinkRule::planned, 0, 0};
  Network network(machine, policy, pool, queue);
  NodeRest join(2, 2, false);
  const auto deep = [&](Time end) { return network.totals(LinkClass::edge, 1, end).deep; };
  join.leave(0, 1 * kMs, 10 * kMs, network);
  join.leave(1, 1 * kMs, 8 * kMs, network);
  EXPECT_EQ(deep(20 * kMs), 2 * (7 * kMs - 90 * kUs));  // from 1.1 ms on; it is back 10 us after 9 ms
  join.enter(1, 5 * kMs, false, network);
  join.leave(1, 5 * kMs + 100 * kUs, 12 * kMs, network);  // it has sent nothing, and the other is back at 11 ms
  EXPECT_EQ(deep(20 * kMs), 2 * (9 * kMs - 90 * kUs));
}

TEST(Groups, WithoutRanksRestForGood) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;2,4;1,2)");
  Program p(2);  // on one leaf switch of four
  p.compute(1'000'000).collective(0, Op::wait, 0).compute(1'000'000).collective(1, Op::wait, 0);
  const Result r = p.run(machine, make_policy("adaptive", {}, machine));
  EXPECT_EQ(r.upper.links, 16u);
  EXPECT_EQ(r.upper.low, 12 * (1 * kMs - kReact));  // all but the used switch's two, each of both directions
}

TEST(Groups, SaveWhereAllBelowAreRegular) {
  SynthOptions options;
  options.ranks = 16;
  options.iterations = 200;
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;4,4;1,4)");
  const auto run = [&](const char* name) {
    const auto source = synthesize("stencil3d", options);
    return Engine(machine, make_policy(name, {}, machine), *source).run();
  };
  const Result on = run("always-on"), adaptive = run("adaptive"), oracle = run("oracle");
  EXPECT_LT(adaptive.energy.upper_links.value, 0.75 * on.energy.upper_links.value);
  EXPECT_GE(adaptive.energy.upper_links.value, oracle.energy.upper_links.value);
  EXPECT_LT(static_cast<double>(adaptive.makespan), 1.02 * static_cast<double>(on.makespan));
}

// --- switches and cards

TEST(Parts, ASwitchAndCardsThatRestHoldTheFirstMessage) {
  Machine machine = crossbar(2);
  Program p(2);
  p.compute(20'000'000).p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  const Time bare = p.run(machine).makespan;
  PolicyOptions options;
  options.idle_timer = kNever;  // links stay awake
  options.cards = true;
  const Result cards = p.run(machine, make_policy("hardware", options, machine));
  EXPECT_EQ(cards.makespan, bare + 2 * machine.node.card.states.rest.up);  // one after the other
  EXPECT_EQ(cards.card_parts.late, 2u);
  options.switches = true;
  const Result all = p.run(machine, make_policy("hardware", options, machine));
  EXPECT_EQ(all.makespan, bare + 2 * machine.node.card.states.rest.up + machine.switches.states.rest.up);
  EXPECT_GT(all.switch_parts.low, 2 * (20 * kMs - options.part_timer - 200 * kUs));  // by its two ports
  EXPECT_LT(all.energy.switches.value, p.run(machine).energy.switches.value);
}

TEST(Parts, ASwitchThatIsWakingHoldsTheNextMessagesToo) {
  Machine machine = crossbar(4);
  Program p(4);
  p.compute(20'000'000).p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  p.compute(20'300'000).p2p(2, Op::send, 3, 1024).p2p(3, Op::recv, 2, 1024);
  const Time bare = p.run(machine).makespan;
  PolicyOptions options;
  options.idle_timer = kNever;  // links stay awake
  options.switches = true;
  const Result r = p.run(machine, make_policy("hardware", options, machine));
  const Time up = machine.switches.states.rest.up, before = 300 * kUs;
  EXPECT_EQ(r.makespan, bare - before + up);  // both go through as the switch is back
  EXPECT_EQ(r.switch_parts.late, 2u);
  EXPECT_EQ(r.switch_parts.delay, up + (up - before));
}

TEST(Parts, PlansWakeThemBeforeTheLinks) {
  SynthOptions options;
  options.ranks = 8;
  options.iterations = 60;
  options.compute = Nanoseconds(20'000'000);
  Machine machine = crossbar(8);
  PolicyOptions with;
  with.switches = with.cards = true;
  const auto run = [&](const char* name) {
    const auto source = synthesize("stencil3d", options);
    return Engine(machine, make_policy(name, with, machine), *source).run();
  };
  const Result on = run("always-on"), predicted = run("adaptive"), hardware = run("hardware");
  EXPECT_LT(predicted.energy.switches.value, 0.6 * on.energy.switches.value);
  EXPECT_LT(predicted.energy.cards.value, 0.6 * on.energy.cards.value);
  EXPECT_LT(static_cast<double>(predicted.makespan), 1.01 * static_cast<double>(on.makespan));
  EXPECT_GT(static_cast<double>(hardware.makespan), 1.03 * static_cast<double>(on.makespan));
}

TEST(Parts, TheDeeperStateIsForLongSilences) {
  RestStates states;  // 10 us both ways; deep 100 us down, 1 ms up
  LinkPolicy policy{LinkRule::planned, 0, 0};
  const RestPlan brief = plan_for(policy, states, {0, 1 * kMs}, kReact);
  EXPECT_FALSE(brief.deep);
  EXPECT_EQ(brief.wake, 1 * kMs);
  const RestPlan lengthy = plan_for(policy, states, {0, 50 * kMs}, kReact);
  EXPECT_TRUE(lengthy.deep);
  EXPECT_EQ(lengthy.wake, 50 * kMs + kReact - states.deep.up);
  EXPECT_EQ(plan_for(policy, states, {0, 5 * kUs}, kReact).begin, kNever);
  policy.deep_timer = kNever;
  EXPECT_FALSE(plan_for(policy, states, {0, 50 * kMs}, kReact).deep);
}

// --- compression, with marks around calls

TEST(Compression, TakesFewerLanesAndNoTime) {
  Machine machine = crossbar(2);
  Program p(2);
  for (int i = 0; i < 10; ++i) p.compute(50'000).p2p(0, Op::send, 1, 32768).p2p(1, Op::recv, 0, 32768);
  PolicyOptions options;
  options.compress.ratio = 0.5;
  const Result whole = p.run(machine), half = p.run(machine, make_policy("always-on", options, machine));
  EXPECT_EQ(half.makespan, whole.makespan);
  EXPECT_EQ(half.lanes_on, 2u);
  EXPECT_EQ(half.edge.narrow, 4 * half.makespan);
  const double two_lanes = 0.43 + 0.57 / 3;
  EXPECT_NEAR(half.energy.edge_links.value, two_lanes * whole.energy.edge_links.value, 1e-12);
}

TEST(Compression, WidensForWhatItCannotCompress) {
  Machine machine = crossbar(2);
  PolicyOptions options;
  options.compress.ratio = 0.25;
  options.compress.what = CompressPolicy::What::collectives;
  Program p(2);
  p.p2p(0, Op::send, 1, 65536).p2p(1, Op::recv, 0, 65536);  // 13 us with all lanes, 52 with one
  const Result wide = p.run(machine, make_policy("always-on", options, machine));
  EXPECT_EQ(wide.makespan, p.run(machine).makespan + 2 * kReact);
  EXPECT_EQ(wide.lanes_on, 1u);
  EXPECT_GT(wide.edge.narrow, 2 * wide.makespan);  // the way back stays reduced
  EXPECT_LT(wide.edge.narrow, 4 * wide.makespan);
  Program q(2);
  q.p2p(0, Op::send, 1, 4096).p2p(1, Op::recv, 0, 4096);  // 0.8 us and 3.3: not worth it
  const Result narrow = q.run(machine, make_policy("always-on", options, machine));
  EXPECT_EQ(narrow.makespan, kLatency + 16 * kPerKib);
  EXPECT_EQ(narrow.edge.narrow, 4 * narrow.makespan);
}

TEST(Compression, ALinkThatRestsIsNotWideMeanwhile) {
  Machine machine = crossbar(2);
  PolicyOptions options;
  options.compress.ratio = 0.25;
  options.compress.what = CompressPolicy::What::collectives;
  Program p(2);  // what widens links, a millisecond of rest, and what needs a lane of them only
  p.p2p(0, Op::send, 1, 65536).p2p(1, Op::recv, 0, 65536);
  p.compute(1'000'000).collective(0, Op::bcast, 65536).collective(1, Op::bcast, 65536);
  const Result r = p.run(machine, make_policy("hardware", options, machine));
  EXPECT_GT(r.edge.low, 2 * 900 * kUs);
  const TimeSum wide = 4 * TimeSum{r.makespan} - r.edge.low - r.edge.deep - r.edge.narrow;
  EXPECT_GT(wide, 2 * options.idle_timer);
  EXPECT_LT(wide, 4 * (options.idle_timer + 4 * kReact));
}

TEST(Marks, AndCompressionTogetherSaveMost) {
  SynthOptions program;
  program.ranks = 8;
  program.iterations = 40;
  program.compute = Nanoseconds(300'000);
  program.bytes = 60'000;
  Machine machine = crossbar(8);
  const auto run = [&](const char* name, double ratio) {
    PolicyOptions options;
    options.compress.ratio = ratio;
    const auto source = synthesize("stencil3d", program);
    return Engine(machine, make_policy(name, options, machine), *source).run().energy.edge_links.value;
  };
  EXPECT_LT(run("loops", 0.5), run("loops", 1));
  EXPECT_LT(run("loops", 0.5), run("always-on", 0.5));
  EXPECT_LT(run("adaptive", 0.5), run("adaptive", 1));
  EXPECT_LT(run("adaptive", 0.5), run("always-on", 0.5));
}

TEST(PredictorCost, IsAddedToTheRanksTime) {
  SynthOptions program;
  program.ranks = 4;
  program.iterations = 100;
  Machine machine = crossbar(4);
  const auto run = [&](const char* name, PredictorCost cost) {
    PolicyOptions options;
    options.cost = cost;
    const auto source = synthesize("stencil3d", program);
    return Engine(machine, make_policy(name, options, machine), *source).run();
  };
  const Result free = run("pps", {});
  const Result per_call = run("pps", {1 * kUs, 0, 0});
  EXPECT_GE(per_call.makespan, free.makespan + 100 * 8 * kUs);  // eight calls each iteration
  const Result searches = run("pps", PredictorCost::published());
  EXPECT_GT(searches.makespan, per_call.makespan);
}

TEST(Policies, AllAreTheSameTwice) {
  for (const PolicyInfo& info : policies()) {
    const auto run = [&] {
      SynthOptions program;
      program.ranks = 18;
      program.iterations = 10;
      program.jitter = 0.1;
      Machine machine;
      machine.topology = parse_xgft("XGFT(3;3,3,2;1,3,3)");
      PolicyOptions options;
      options.switches = options.cards = true;
      options.compress.ratio = 0.5;
      options.core.name = "adaptive";
      const auto source = synthesize("random", program);
      return to_json(Engine(machine, make_policy(info.name, options, machine), *source).run());
    };
    EXPECT_EQ(run(), run()) << info.name;
  }
}

}  // namespace
}  // namespace fallow::sim
