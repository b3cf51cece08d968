// Energies in closed form: power of each state times the time in it, of sums that are all different.
#include "sim/result.hpp"

#include <gtest/gtest.h>

namespace fallow::sim {
namespace {

constexpr Time kSecond = 1000 * kMs;

Machine machine() {
  Machine m;
  m.link.port = Watts(3);
  m.link.share_of_switch = 0.6;
  m.link.rest.fraction = 0.4;
  m.link.deep.fraction = 0.1;
  m.link.lane_fractions = {0.4, 0.5, 0.8, 1};
  m.switches.idle_fraction = 0.5;
  m.switches.states.rest.fraction = 0.25;
  m.switches.states.deep.fraction = 0.2;
  m.node.card.idle = Watts(5);
  m.node.card.active = Watts(9);
  m.node.card.states.rest.fraction = 0.3;
  m.node.card.states.deep.fraction = 0.2;
  m.node.ranks = 2;
  m.node.cores = 3;
  m.node.core.power.sleep = Watts(1.5);
  m.node.memory_idle = Watts(7);
  m.node.memory_active = Watts(16);
  m.node.base = Watts(40);
  return m;
}

LinkTotals links(std::uint64_t count, TimeSum busy, TimeSum low, TimeSum deep, TimeSum narrow) {
  LinkTotals t;
  t.links = count;
  t.busy = busy * kSecond, t.low = low * kSecond, t.deep = deep * kSecond, t.narrow = narrow * kSecond;
  return t;
}

/// Ten seconds of three ranks on two nodes.
Result result() {
  Result r;
  r.ranks = 3;
  r.nodes = 2;
  r.makespan = 10 * kSecond;
  r.edge = links(4, 6, 8, 2, 4);
  r.upper = links(2, 3, 5, 1, 2);
  r.lanes_on = 2;
  r.switch_parts.low = 3 * kSecond, r.switch_parts.deep = kSecond;
  r.card_parts.low = 4 * kSecond, r.card_parts.deep = kSecond;
  r.cores.computing = 12 * kSecond, r.cores.in_calls = 2 * kSecond;
  r.cores.waiting = 5 * kSecond, r.cores.changing = kSecond, r.cores.resting = 10 * kSecond;
  r.core_policy.compute = Watts(11);
  r.core_policy.poll = Watts(9);
  r.core_policy.rest.power = Watts(2);
  return r;
}

TEST(Energy, LinksDrawLessWhereTheyRestAndOnFewerLanes) {
  const Energy e = energy_of(result(), machine());
  EXPECT_NEAR(e.edge_links.value, 3 * (40 - 0.6 * 8 - 0.9 * 2 - 0.5 * 4), 1e-9);
  EXPECT_NEAR(e.upper_links.value, 3 * (20 - 0.6 * 5 - 0.9 * 1 - 0.5 * 2), 1e-9);
}

TEST(Energy, SwitchesAndCardsDrawMoreWhereSomethingPasses) {
  // Behind each of four ports of 3 W a switch draws 2 W, half of that where nothing passes.
  const Energy e = energy_of(result(), machine());
  EXPECT_NEAR(e.switches.value, 1 * 40 + 1 * (3 + 3) - 1 * (0.75 * 3 + 0.8 * 1), 1e-9);
  EXPECT_NEAR(e.cards.value, 5 * 20 + 4 * 3 - 5 * (0.7 * 4 + 0.8 * 1), 1e-9);
}

TEST(Energy, WithoutContentionAMessageIsCountedAtItsSenderAlone) {
  Machine m = machine();
  m.contention = Contention::none;
  const Energy e = energy_of(result(), m);
  EXPECT_NEAR(e.switches.value, 1 * 40 + 1 * (6 + 3) - 1 * (0.75 * 3 + 0.8 * 1), 1e-9);
  EXPECT_NEAR(e.cards.value, 5 * 20 + 4 * 6 - 5 * (0.7 * 4 + 0.8 * 1), 1e-9);
}

TEST(Energy, CoresDrawWhatTheirStatesDraw) {
  EXPECT_NEAR(energy_of(result(), machine()).cores.value, 11 * (12 + 2) + 9 * (5 + 1) + 2 * 10, 1e-9);
}

TEST(Energy, MemoryIsActiveInProportionToCoresAtWorkAndTheOthersSleep) {
  Machine m = machine();
  EXPECT_NEAR(energy_of(result(), m).nodes.value, 47 * 20 + 9 * (14.0 / 3) + 1.5 * 10 * 3, 1e-9);
  m.node.cores = 0;  // as many as ranks
  EXPECT_NEAR(energy_of(result(), m).nodes.value, 47 * 20 + 9 * (14.0 / 2), 1e-9);
}

}  // namespace
}  // namespace fallow::sim
