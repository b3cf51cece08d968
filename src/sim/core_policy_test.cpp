// What cores do in waits: each policy by hand on one wait, then all of them on a program.
#include "sim/core_policy.hpp"

#include <gtest/gtest.h>

#include "sim/cores.hpp"
#include "sim/synth.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

/// Down 10, up 40 us; half of the frequency at half of the power.
CoreSpec spec() {
  CoreSpec core;
  core.power = {Hertz(2e9), Watts(10), Watts(8), Watts(6), Watts(1), {{Hertz(1e9), Watts(5), Watts(4)}, {Hertz(2e9), Watts(10), Watts(8)}}};
  core.sleep_down = 10 * kUs;
  core.wake = 40 * kUs;
  core.frequency_change = 20 * kUs;
  core.throttle_change = 4 * kUs;
  core.yield_round = 2 * kUs;
  core.sleeps = {{"C6", Watts(0.2), 50 * kUs, 150 * kUs}};
  return core;
}

CorePolicy make(const char* name, CoreOptions options = {}) {
  options.name = name;
  return make_core_policy(options, spec());
}

void adds_up(const WaitOutcome& o, Time waited) { EXPECT_EQ(o.polling + o.resting + o.changing, waited + o.late); }

TEST(CoreSpin, PollsAndIsNeverLate) {
  const WaitOutcome o = outcome_of_wait(make("spin"), 5 * kMs);
  EXPECT_EQ(o.polling, 5 * kMs);
  EXPECT_EQ(o.late, 0);
  EXPECT_EQ(make("spin").poll, Watts(8));
}

TEST(CoreYield, DrawsLessAndNoticesLate) {
  const CorePolicy yield = make("yield");
  const WaitOutcome o = outcome_of_wait(yield, 1 * kMs);
  EXPECT_EQ(o.late, 2 * kUs);
  EXPECT_EQ(yield.poll, Watts(6));
  adds_up(o, 1 * kMs);
}

TEST(CoreSleep, PollsForWhatASleepCostsThenBlocks) {
  const CorePolicy sleep = make("sleep");
  EXPECT_EQ(outcome_of_wait(sleep, 50 * kUs).polling, 50 * kUs);
  const WaitOutcome shallow = outcome_of_wait(sleep, 55 * kUs);  // it is on its way down: that is completed first
  EXPECT_EQ(shallow.late, 5 * kUs + 40 * kUs);
  EXPECT_EQ(shallow.resting, 0);
  adds_up(shallow, 55 * kUs);
  const WaitOutcome deep = outcome_of_wait(sleep, 1 * kMs);
  EXPECT_EQ(deep.polling, 50 * kUs);
  EXPECT_EQ(deep.resting, 1 * kMs - 60 * kUs);
  EXPECT_EQ(deep.changing, 50 * kUs);
  EXPECT_EQ(deep.late, 40 * kUs);
  adds_up(deep, 1 * kMs);
}

TEST(CoreSleep, TakesTheStateThatIsNamed) {
  CoreOptions options;
  options.state = "C6";
  options.timer = 0;
  const WaitOutcome o = outcome_of_wait(make("sleep", options), 1 * kMs);
  EXPECT_EQ(o.late, 150 * kUs);
  EXPECT_EQ(o.resting, 950 * kUs);
  EXPECT_EQ(make("sleep", options).rest.power, Watts(0.2));
  options.state = "C3";
  EXPECT_THROW(make("sleep", options), std::invalid_argument);
}

TEST(CoreCountdown, WaitsSlowlyAndGoesOnSlowlyForAWhile) {
  const CorePolicy countdown = make("countdown");
  EXPECT_EQ(countdown.rest.power, Watts(4));
  EXPECT_DOUBLE_EQ(countdown.rest.speed, 0.5);
  const WaitOutcome o = outcome_of_wait(countdown, 2 * kMs);
  EXPECT_EQ(o.polling, 500 * kUs);
  EXPECT_EQ(o.resting, 1500 * kUs - 20 * kUs);
  EXPECT_EQ(o.late, 0);
  EXPECT_EQ(o.slow_until, 20 * kUs);
  adds_up(o, 2 * kMs);
  EXPECT_EQ(outcome_of_wait(countdown, 505 * kUs).slow_until, 35 * kUs);  // first down, then up again

  Cores cores(countdown, 1);
  EXPECT_EQ(cores.end_wait(0, 0, 2 * kMs, 1).late, 0);
  EXPECT_EQ(cores.stretch(0, 2 * kMs, 100 * kUs), 110 * kUs);  // 20 us do the work of 10
  EXPECT_EQ(cores.stretch(0, 2 * kMs, 4 * kUs), 8 * kUs);
  EXPECT_EQ(cores.stretch(0, 2 * kMs + 20 * kUs, 4 * kUs), 4 * kUs);
}

TEST(CoreThrottle, DrawsByTheDutyCycle) {
  CoreOptions options;
  options.throttle = 6;
  const CorePolicy throttle = make("throttle", options);
  EXPECT_DOUBLE_EQ(throttle.rest.power.value, 1 + 7 * 0.25);
  EXPECT_DOUBLE_EQ(throttle.rest.speed, 0.25);
  options.throttle = 8;
  EXPECT_THROW(make("throttle", options), std::invalid_argument);
}

TEST(CorePolicies, PollFirstForTimesOfTheirOwn) {
  EXPECT_EQ(make("sleep").timer, 50 * kUs);       // what going to sleep and coming back cost
  EXPECT_EQ(make("throttle").timer, 40 * kUs);    // ten changes
  EXPECT_EQ(make("countdown").timer, 500 * kUs);  // as published
  CoreOptions options;
  options.timer = 7 * kUs;
  for (const char* name : {"sleep", "throttle", "countdown"}) EXPECT_EQ(make(name, options).timer, 7 * kUs) << name;
}

TEST(CorePolicies, RestAndDrawAsTheirOptionsSay) {
  CoreOptions options;
  options.budget = 0.03;
  EXPECT_EQ(make("adaptive", options).budget, 0.03);
  options.frequency = Hertz(1e9);
  EXPECT_EQ(make("fixed", options).poll, Watts(4));
  options.throttle = 6;
  const WaitOutcome o = outcome_of_wait(make("throttle", options), 1 * kMs);
  EXPECT_EQ(o.polling, 40 * kUs);
  EXPECT_EQ(o.changing, 4 * kUs);
  EXPECT_EQ(o.resting, 1 * kMs - 44 * kUs);
  EXPECT_EQ(o.late, 0);
  EXPECT_EQ(o.slow_until, 4 * kUs);
  adds_up(o, 1 * kMs);
  options.memory_share = 0.4;
  EXPECT_DOUBLE_EQ(make("countdown", options).rest.speed, 1 / 1.6);
}

TEST(CoreAdaptive, LearnsToSleepThroughSteadyWaits) {
  CoreOptions options;
  options.budget = 0.01;
  Cores cores(make("adaptive", options), 1);
  Time at = 0, late = 0;
  constexpr int kWaits = 400;
  constexpr Time kWait = 3 * kMs;
  for (int i = 0; i < kWaits; ++i) {
    late += cores.end_wait(0, at, kWait, 7).late;
    at += kWait + 2 * kMs;
  }
  CoreTotals totals;
  cores.add_to(totals, 0);
  EXPECT_GT(totals.resting, kWaits * kWait * 8 / 10);
  EXPECT_LT(late, at / 100 + 10 * kMs);  // the budget, and what the account starts with
  EXPECT_EQ(totals.late, late);
  EXPECT_EQ(totals.waiting + totals.resting + totals.changing, kWaits * kWait + late);
}

/// Delays of ranks that wait for each other follow one another.
TEST(CoreAdaptive, HoldsTheBudgetOfAllRanksTogether) {
  for (const char* program : {"stencil3d", "cg"}) {
    SynthOptions synth;
    synth.ranks = 32;
    synth.iterations = 1000;
    synth.jitter = 0.2;
    Machine machine;
    machine.topology = full_fat_tree(synth.ranks, 2);
    const auto makespan = [&](const char* cores) {
      PolicyOptions options;
      options.core.name = cores;
      const auto source = synthesize(program, synth);
      return static_cast<double>(Engine(machine, make_policy("always-on", options, machine), *source).run().makespan);
    };
    EXPECT_LT(makespan("adaptive"), 1.01 * makespan("spin")) << program;
  }
}

TEST(CoreFixed, ComputesAndCallsSlower) {
  CoreOptions options;
  options.frequency = Hertz(1e9);
  options.memory_share = 0.4;
  const CorePolicy fixed = make("fixed", options);
  EXPECT_DOUBLE_EQ(fixed.slower, 0.4 + 0.6 * 2);
  EXPECT_DOUBLE_EQ(fixed.calls_slower, 2);
  EXPECT_EQ(fixed.compute, Watts(5));
  options.frequency = Hertz(3e9);
  EXPECT_THROW(make("fixed", options), std::invalid_argument);

  Program p(1);
  p.compute(1'000'000).collective(0, Op::wait, 0);
  Machine machine = crossbar(1);
  machine.node.core = spec();
  PolicyOptions with;
  with.core = options;
  with.core.name = "fixed";
  with.core.frequency = Hertz(1e9);
  const Result slow = p.run(machine, make_policy("always-on", with, machine));
  EXPECT_EQ(slow.makespan, 1600 * kUs);
  EXPECT_NEAR(slow.energy.cores.value, 5 * 1.6e-3, 1e-12);
}

TEST(CoreOracle, RestsAndIsNeverLate) {
  const CorePolicy oracle = make("oracle");
  for (const Time waited : {10 * kUs, 50 * kUs, 51 * kUs, 2 * kMs}) {
    const WaitOutcome o = outcome_of_wait(oracle, waited);
    EXPECT_EQ(o.late, 0);
    EXPECT_EQ(o.resting, waited > 50 * kUs ? waited - 50 * kUs : 0);
    adds_up(o, waited);
  }
}

TEST(CorePolicies, DelayReachesOtherRanks) {
  Program p(3);  // 2 -> 1 -> 0: each sleeps until it hears
  p.compute(1'000'000).p2p(2, Op::send, 1, 0);
  p.p2p(1, Op::recv, 2, 0).p2p(1, Op::send, 0, 0).p2p(0, Op::recv, 1, 0);
  const Machine machine = crossbar(3);
  PolicyOptions options;
  options.core.name = "sleep";
  const Result spin = p.run(machine), sleep = p.run(machine, make_policy("always-on", options, machine));
  EXPECT_EQ(sleep.makespan, spin.makespan + 2 * machine.node.core.wake);
  EXPECT_EQ(sleep.cores.late, 2 * machine.node.core.wake);
  EXPECT_LT(sleep.energy.cores.value, spin.energy.cores.value);
}

TEST(CorePolicies, TimesAddUpToRanksTimesMakespan) {
  for (const CorePolicyInfo& info : core_policies()) {
    SynthOptions options;
    options.ranks = 12;
    options.iterations = 30;
    options.jitter = 0.3;
    Machine machine = crossbar(12);
    machine.node.core = spec();
    PolicyOptions with;
    with.core.name = info.name;
    const auto source = synthesize("cg", options);
    const Result r = Engine(machine, make_policy("always-on", with, machine), *source).run();
    const CoreTotals& c = r.cores;
    EXPECT_EQ(c.computing + c.in_calls + c.waiting + c.resting + c.changing, 12 * r.makespan) << info.name;
    EXPECT_GE(c.in_calls, 0) << info.name;
    const CorePolicy& policy = r.core_policy;
    const double expected = (policy.compute * seconds(c.computing + c.in_calls) + policy.poll * seconds(c.waiting + c.changing) +
                             policy.rest.power * seconds(c.resting)).value;
    EXPECT_NEAR(r.energy.cores.value, expected, 1e-9 * expected) << info.name;
  }
}

TEST(CorePolicies, WhoIsThroughWaitsForTheLastRank) {
  Program p(2);
  p.compute(10'000'000).p2p(0, Op::send, trace::kNullPeer, 0);
  p.compute(1'000'000).p2p(1, Op::send, trace::kNullPeer, 0);
  const Machine machine = crossbar(2);
  const Time left = 9 * kMs, down = machine.node.core.sleep_down, up = machine.node.core.wake;
  const auto run = [&](const char* name) {
    PolicyOptions options;
    options.core.name = name;
    return p.run(machine, make_policy("always-on", options, machine));
  };
  const Result spin = run("spin"), sleep = run("sleep"), adaptive = run("adaptive"), oracle = run("oracle");
  EXPECT_EQ(spin.cores.computing, 11 * kMs);
  EXPECT_EQ(spin.cores.in_calls, 0);
  EXPECT_EQ(spin.cores.waiting, left);
  EXPECT_EQ(sleep.makespan, spin.makespan);  // nobody wakes
  EXPECT_EQ(sleep.cores.waiting, down + up);
  EXPECT_EQ(sleep.cores.changing, down);
  EXPECT_EQ(sleep.cores.resting, left - 2 * down - up);
  EXPECT_EQ(adaptive.cores.resting, sleep.cores.resting);
  EXPECT_EQ(oracle.cores.resting, left - down);
}

TEST(CorePolicies, AreRefusedByOtherNames) { EXPECT_THROW(make("nap"), std::invalid_argument); }

TEST(CorePolicies, AreRefusedWithSharesOfMemoryThatAreNone) {
  for (const double share : {-0.01, 1.01}) {
    CoreOptions options;
    options.memory_share = share;
    EXPECT_THROW(make("countdown", options), std::invalid_argument) << share;
  }
}

TEST(CorePolicies, WithNoOtherFrequencyToGoToAreRefused) {
  CoreSpec one = spec();
  one.power.at.clear();
  for (const char* name : {"countdown", "fixed"}) {
    CoreOptions options;
    options.name = name;
    EXPECT_THROW(make_core_policy(options, one), std::invalid_argument) << name;
    options.frequency = one.power.nominal;
    EXPECT_NO_THROW(make_core_policy(options, one)) << name;
  }
}

}  // namespace
}  // namespace fallow::sim
