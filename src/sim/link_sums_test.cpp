// What links, cards and lanes come to where rests, calls and the end of the run meet.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

constexpr Time kReact = 10 * kUs;

/// `calls` on lanes that messages of collectives alone would leave to be on.
Policy calls_on_few_lanes(const Machine& machine, double ratio) {
  PolicyOptions options;
  options.compress = {ratio, 1024, CompressPolicy::What::collectives};
  return make_policy("calls", options, machine);
}

TEST(Busy, IsWhatWasSentAlsoWhereALinkIsOnItsWayBackAtTheEnd) {
  constexpr std::uint64_t kBytes = 1024;
  Machine machine = crossbar(2);
  Program p(2);
  p.compute(100'000).p2p(0, Op::send, 1, kBytes).p2p(1, Op::recv, 0, kBytes);
  for (std::uint32_t r : {0u, 1u}) p.compute(500'000).collective(r, Op::init, 0);  // wakes the links, and is the last
  for (const Time deep_timer : {kNever, 50 * kUs}) {
    PolicyOptions options;
    options.deep_timer = deep_timer;
    EXPECT_EQ(p.run(machine, make_policy("calls", options, machine)).edge.busy, 2 * kPerKib);
  }
}

TEST(Busy, LeavesOutWhatIsSentAfterTheEndAloneWhereALinkWakesForIt) {
  Machine machine = crossbar(2);
  Program p(2);
  p.p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  p.compute(500'000).p2p(0, Op::send, 1, 32768).compute(1'000).collective(1, Op::init, 0);  // nobody receives it
  PolicyOptions options;
  options.deep_timer = 50 * kUs;
  EXPECT_EQ(p.run(machine, make_policy("hardware", options, machine)).edge.busy, 2 * kPerKib);
}

TEST(Rests, ThatAreOverHoldNothingUntilTheNextBegins) {
  Machine machine = crossbar(2);
  machine.message.overhead = 50 * kUs;  // so what a call does ends long after the clock
  Program p(2);
  p.compute(1'000'000).p2p(0, Op::send, 1, 1024);
  p.compute(980'000).p2p(1, Op::send, 0, 1024).p2p(1, Op::recv, 0, 1024);
  p.compute(100'000).p2p(0, Op::recv, 1, 1024);
  Engine engine(machine, make_policy("calls", {}, machine), p.source());
  engine.run();
  const Details d = engine.details();
  ASSERT_EQ(d.numbers[2], 2u);
  EXPECT_EQ(d.links[2].late, 0u);  // comes to rank 0 at 1.03 ms: the call at 1 ms has woken the link, which is to rest from 1.05 ms on
}

TEST(Rests, EndNoSoonerThanTheirNewEndIsTold) {
  NodePool pool;
  EventQueue queue;
  NetworkPolicy policy;
  policy.edge = {LinkRule::planned, 0, 0};  // in the deeper state, which takes 100 us to get to and a millisecond to come back from
  const Machine machine = crossbar(2);
  Network network(machine, policy, pool, queue);
  network.plan(0, {0, 10 * kMs});
  network.plan(0, {5 * kMs, 5 * kMs + 500 * kUs});
  EXPECT_EQ(network.total(0, 20 * kMs).deep, 5 * kMs - machine.link.deep.down);
  RestStates states;
  states.rest = {0.3, 100 * kUs, 1 * kMs};
  Parts parts({LinkRule::planned}, states, kReact, 1);
  parts.plan(0, {1 * kMs, 10 * kMs});
  parts.plan(0, {1 * kMs + 200 * kUs, 1 * kMs + 300 * kUs});
  EXPECT_EQ(parts.pass(0, 2 * kMs), 2 * kMs + 200 * kUs);
  const std::uint32_t port[] = {1};
  EXPECT_EQ(parts.totals(port, 2 * kMs).low, 100 * kUs);
}

TEST(Rests, OfTheOracleHaveNoWayBackAtTheEnd) {
  Machine machine = crossbar(2);
  Program p(2);
  p.compute(1'000'000).p2p(0, Op::send, 1, 1024).compute(1'000'000).collective(0, Op::init, 0);
  p.p2p(1, Op::recv, 0, 1024).compute(500'000).collective(1, Op::init, 0);
  const Result r = p.run(machine, make_policy("oracle", {}, machine));
  const Time sent = kPerKib, down = machine.link.rest.down, up = machine.link.rest.up;
  // Of both links that carry it: two gaps, which come to the run time but for what is sent. Of the others: one, and nobody wakes them.
  EXPECT_EQ(r.edge.low, 2 * (r.makespan - sent - 2 * down - up) + 2 * (r.makespan - down));
  EXPECT_EQ(r.edge.rests, 6u);
}

TEST(Rests, EndWithTheRunThoughMessagesComeLater) {
  for (const Contention contention : {Contention::full, Contention::none}) {
    for (const auto& [name, rest] : {std::pair{"hardware", 40 * kUs}, std::pair{"calls", 90 * kUs}, std::pair{"oracle", 90 * kUs}}) {
      Machine machine = crossbar(3);
      machine.contention = contention;
      Program p(3);
      for (int i = 0; i < 50; ++i) p.p2p(0, Op::send, 1, 65536);  // for 655 us
      p.p2p(0, Op::send, 2, 65536);
      for (const std::uint32_t r : {1u, 2u}) p.compute(100'000).collective(r, Op::init, 0);
      PolicyOptions options;
      options.cards = true;
      const Result r = p.run(machine, make_policy(name, options, machine));
      EXPECT_EQ(r.makespan, 100 * kUs);
      EXPECT_EQ(r.edge.low, 4 * rest) << name;  // what comes to rank 2's link at 656 us ends no rest of it
      EXPECT_LE(r.edge.late, 1u) << name;  // the first, perhaps
      EXPECT_LE(r.card_parts.low, 3 * r.makespan) << name;
      EXPECT_EQ(r.unreceived.count, 51u);
    }
  }
}

TEST(Rests, EndWithTheRunOnSeveralThreadsAlike) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;2,2;1,2)");
  for (const char* const name : {"always-on", "hardware", "oracle"}) {
    Program p(4);
    for (int i = 0; i < 20; ++i) {  // ranks 2 and 3 are not on the switch of the others
      p.p2p(0, Op::isend, 3, 65536, 0, 2 * i).p2p(0, Op::isend, 2, 65536, 0, 2 * i + 1).p2p(2, Op::isend, 1, 4096, 0, i);
    }
    p.compute(50'000).collective(1, Op::init, 0).compute(100'300).collective(3, Op::init, 0);
    const Policy policy = make_policy(name, {}, machine);
    const Result one = p.run(machine, policy);
    EXPECT_EQ(to_json(p.run(machine, policy, 2)), to_json(one)) << name;
    EXPECT_LE(one.edge.low, 8 * one.makespan);
    EXPECT_EQ(one.unreceived.count, 60u);
  }
}

TEST(Rests, OfSwitchesCountByThePortsOfLinksToNodesInUseAndOfAllBetweenSwitches) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;2,2;1,2)");
  Program p(3);
  for (std::uint32_t r = 0; r < 3; ++r) p.compute(5'000'000).collective(r, Op::barrier, 0);
  PolicyOptions options;
  options.switches = true;
  const Result r = p.run(machine, make_policy("hardware", options, machine));
  EXPECT_EQ(r.switch_parts.parts, 3 + r.upper.links);
  EXPECT_EQ(r.upper.links, 8u);
}

TEST(Rests, ThatHaveNotBegunArePlannedAnew) {
  RestStates states;
  states.rest = {0.3, 100 * kUs, 1 * kMs};
  Parts parts({LinkRule::planned}, states, kReact, 1);
  parts.busy(0, 3 * kMs);
  parts.plan(0, {1 * kMs, 10 * kMs});
  parts.plan(0, {2990 * kUs, 4070 * kUs});  // too short a silence
  EXPECT_EQ(parts.pass(0, 3500 * kUs), 3500 * kUs);
  Machine machine = crossbar(2);
  machine.link.deep = {0.1, 100 * kUs, 1 * kMs};
  NetworkPolicy policy;
  policy.edge = {LinkRule::planned, 0, 0};
  NodePool pool;
  EventQueue queue;
  Network network(machine, policy, pool, queue);
  network.plan(0, {1 * kMs, 2 * kMs});
  network.plan(0, {2003 * kUs, 100 * kMs});  // long enough for the deeper state, but the links are not back yet
  network.plan(0, {2006 * kUs, 2900 * kUs});
  const LinkTotals links = network.totals(LinkClass::edge, 1, 20 * kMs);
  EXPECT_EQ(links.low, 2 * (1 * kMs - kReact + 900 * kUs - 2 * kReact));
  EXPECT_EQ(links.deep, 0);
}

TEST(FewerLanes, AreOnUntilACallAsksForAllWhateverRestedBefore) {
  Machine machine = crossbar(2);
  Program p(2);
  for (int i = 0; i < 3; ++i) p.compute(1'000'000).p2p(0, Op::send, 1, 8192).compute(1'000'000).p2p(1, Op::recv, 0, 8192);
  const Result r = p.run(machine, calls_on_few_lanes(machine, 0.5));
  EXPECT_EQ(r.edge.narrow, 4 * kReact);  // on the way to their first rest
  EXPECT_GT(r.edge.low, 4 * 2 * kMs);
  machine.link.deep = {0.1, 2 * kReact, kReact};
  Policy deeper = calls_on_few_lanes(machine, 0.5);
  deeper.edge.deep_timer = 0;
  const Result deep = p.run(machine, deeper);
  EXPECT_EQ(deep.edge.narrow, 4 * 2 * kReact);
  EXPECT_GT(deep.edge.deep, 4 * 2 * kMs);
}

TEST(FewerLanes, GrowToAllWhileALinkWakesAlsoIfItIsToRestAgain) {
  Machine machine = crossbar(2);
  Program p(2);
  p.compute(1'000'000).collective(0, Op::init, 0).compute(2'000).p2p(0, Op::send, 1, 8192);
  p.compute(500'000).p2p(1, Op::recv, 0, 8192);
  const Time sent = 1 * kMs + 2 * kUs + kReact;  // all lanes are on: the link is back sooner
  EXPECT_EQ(p.run(machine, calls_on_few_lanes(machine, 0.5)).makespan, sent + 8 * kPerKib + kLatency);
}

TEST(FewerLanes, GrowForAMessageWhileALinkWakesAlsoIfItIsToRestAgain) {
  Machine machine = crossbar(2);
  Program p(2);
  p.compute(1'000'000).collective(0, Op::init, 0).compute(2'000).p2p(0, Op::send, 1, 65536);
  p.compute(500'000).p2p(1, Op::recv, 0, 0);
  PolicyOptions options;
  options.compress = {0.25, 65537, CompressPolicy::What::all};  // no call asks, but three fourths of its lanes off cost the message more
  const Result r = p.run(machine, make_policy("calls", options, machine));
  EXPECT_EQ(r.makespan, 1 * kMs + kReact + 100 * kNs + kReact + 64 * kPerKib + 100 * kNs + 1 * kUs);  // the other direction is awake, and grows
}

/// Links are wide from a message that needs it to the next that does not, but for their rests between, and from the start, too.
TEST(FewerLanes, AreOnAgainWithTheNextCompressedMessageWhateverRestedBefore) {
  const Machine machine = crossbar(2);
  PolicyOptions options;
  options.compress.ratio = 0.25;
  options.compress.what = CompressPolicy::What::collectives;
  const auto wide = [&](std::int64_t before_ns, const char* name) {
    Program p(2);
    p.compute(before_ns).p2p(0, Op::send, 1, 65536).p2p(1, Op::recv, 0, 65536);
    p.compute(1'000'000).collective(0, Op::bcast, 65536).collective(1, Op::bcast, 65536);
    p.compute(5'000'000).p2p(0, Op::send, trace::kNullPeer, 0);
    const Result r = p.run(machine, make_policy(name, options, machine));
    EXPECT_EQ(r.makespan, before_ns * kNs + 6 * kMs) << name;
    return 4 * TimeSum{r.makespan} - r.edge.low - r.edge.deep - r.edge.narrow;
  };
  const Time react = machine.link.rest.up;
  EXPECT_EQ(wide(0, "always-on"), 1 * kMs + (1 * kMs - react));  // the message comes to the second link when the first is wide
  EXPECT_EQ(wide(1'000'000, "hardware"), 2 * (react + 64 * kPerKib + options.idle_timer + machine.link.rest.down));
}

TEST(FewerLanes, AreNotSavedOnWhereNothingPasses) {
  Machine machine;
  machine.topology = parse_xgft("XGFT(2;2,2;1,2)");
  machine.contention = Contention::none;
  Program p(4);
  p.compute(100'000).p2p(0, Op::send, 3, 8192).p2p(3, Op::recv, 0, 8192);
  PolicyOptions options;
  options.compress.ratio = 0.5;
  const Result whole = p.run(machine), half = p.run(machine, make_policy("always-on", options, machine));
  EXPECT_EQ(half.upper.narrow, 0);
  EXPECT_EQ(half.energy.upper_links.value, whole.energy.upper_links.value);
  EXPECT_EQ(half.edge.narrow, 8 * half.makespan);
}

TEST(Cards, DoNotRestWhileAMessageWaitsForTheirLinkWithoutContentionEither) {
  Machine machine = crossbar(2);
  machine.link.rest.up = 500 * kUs;
  machine.node.card.states.rest = {0.3, 100 * kUs, 1 * kUs};
  Program p(2);
  p.compute(5'000'000).p2p(0, Op::send, 1, 1024).compute(200'000).p2p(0, Op::send, 1, 1024);
  p.p2p(1, Op::recv, 0, 1024).p2p(1, Op::recv, 0, 1024);
  PolicyOptions options;
  options.cards = true;
  const Result full = p.run(machine, make_policy("calls", options, machine));
  machine.contention = Contention::none;
  const Result loggp = p.run(machine, make_policy("calls", options, machine));
  EXPECT_EQ(loggp.makespan, full.makespan);
  EXPECT_EQ(loggp.card_parts.rests, full.card_parts.rests);
  EXPECT_EQ(loggp.card_parts.late, full.card_parts.late);
}

}  // namespace
}  // namespace fallow::sim
