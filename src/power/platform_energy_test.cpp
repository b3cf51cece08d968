#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "power/platform.hpp"

namespace fallow::power {
namespace {

const std::vector<std::filesystem::path> kPlatforms{FALLOW_PLATFORMS};

Platform simple() {
  Platform p;
  p.name = "simple";
  p.sockets = 1;
  p.cores_per_socket = 4;
  p.core = {Hertz(2e9), Watts(10), Watts(8), Watts(7), Watts(1), {{Hertz(1e9), Watts(4), Watts(3)}, {Hertz(2e9), Watts(10), Watts(8)}}};
  p.memory = {Watts(4), Watts(8)};
  p.nic = {Watts(5), Watts(6)};
  p.base = Watts(50);
  p.switch_share = Watts(2);
  return p;
}

// One rank that does one thing all the time.
enum class Doing { computing, transfer, wait_awake, wait_asleep, io };
Residency only(Doing what, double seconds) {
  Residency r;
  Seconds* const slots[] = {&r.computing, &r.transfer, &r.wait_awake, &r.wait_asleep, &r.io};
  *slots[static_cast<int>(what)] = Seconds(seconds);
  return r;
}

// Mean power of `nodes` full of ranks that all do one thing.
Watts all_cores(const Platform& p, Doing what, unsigned nodes = 1) {
  const std::vector<Residency> ranks(nodes * p.cores(), only(what, 100));
  const PlatformEnergy e = platform_energy(p, {ranks, nodes, Seconds(100)});
  return Watts(e.actual.total().value / 100);
}

Watts idle(const Platform& p, unsigned nodes = 1) {
  return Watts(platform_energy(p, {{}, nodes, Seconds(100)}).actual.total().value / 100);
}

TEST(PlatformEnergy, AddsUpByHand) {
  const Residency ranks[] = {{Seconds(4), Seconds(1), Seconds(2), Seconds(2), Seconds(1)},
                             {Seconds(6), Seconds(0), Seconds(0), Seconds(3), Seconds(0)}};
  const PlatformEnergy e = platform_energy(simple(), {ranks, 1, Seconds(10)});
  EXPECT_DOUBLE_EQ(e.actual.computing.value, 100);
  EXPECT_DOUBLE_EQ(e.actual.transfer.value, 8);
  EXPECT_DOUBLE_EQ(e.actual.wait_awake.value, 16);
  EXPECT_DOUBLE_EQ(e.actual.wait_asleep.value, 5);
  EXPECT_DOUBLE_EQ(e.actual.io.value, 1);
  EXPECT_DOUBLE_EQ(e.actual.unaccounted.value, 10);   // one second of the second rank
  EXPECT_DOUBLE_EQ(e.actual.unused_cores.value, 20);  // two cores
  EXPECT_DOUBLE_EQ(e.actual.memory.value, 40 + 4 * 12.0 / 4);  // the second that is in no state too, which is computation
  EXPECT_DOUBLE_EQ(e.actual.nic.value, 51);
  EXPECT_DOUBLE_EQ(e.actual.base.value, 500);
  EXPECT_DOUBLE_EQ(e.actual.switch_share.value, 20);
  EXPECT_DOUBLE_EQ(e.actual.total().value, 100 + 8 + 16 + 5 + 1 + 10 + 20 + 52 + 51 + 500 + 20);
  EXPECT_DOUBLE_EQ(e.all_awake.wait_asleep.value, 40);
  EXPECT_DOUBLE_EQ(e.saved().value, 35);
}

TEST(PlatformEnergy, NothingSleptNothingSaved) {
  const Residency r = only(Doing::wait_awake, 10);
  EXPECT_EQ(platform_energy(simple(), {{&r, 1}, 1, Seconds(10)}).saved().value, 0);
}

TEST(PlatformEnergy, LowerFrequencyCountsAtItsPower) {
  Residency r = only(Doing::computing, 10);
  r.wait_awake = Seconds(10);
  r.frequency = r.wait_frequency = Hertz(1e9);
  const EnergyParts e = platform_energy(simple(), {{&r, 1}, 1, Seconds(20)}).actual;
  EXPECT_DOUBLE_EQ(e.computing.value, 40);
  EXPECT_DOUBLE_EQ(e.wait_awake.value, 30);
}

TEST(PlatformEnergy, YieldingWaitsCountAsYielding) {
  Residency r = only(Doing::wait_awake, 5);
  r.wait_asleep = Seconds(5);
  const PlatformEnergy e = platform_energy(simple(), {{&r, 1}, 1, Seconds(10), 0, true});
  EXPECT_DOUBLE_EQ(e.actual.wait_awake.value, 35);
  EXPECT_DOUBLE_EQ(e.saved().value, 30);
}

TEST(PlatformEnergy, SharedCoresAreCountedOnce) {
  const std::vector<Residency> ranks(8, only(Doing::computing, 10));  // 8 ranks on 4 cores
  const EnergyParts e = platform_energy(simple(), {ranks, 1, Seconds(10)}).actual;
  EXPECT_DOUBLE_EQ(e.computing.value, 4 * 10 * 10);
  EXPECT_DOUBLE_EQ(e.unused_cores.value, 0);
  EXPECT_DOUBLE_EQ(e.unaccounted.value, 0);
  const EnergyParts two = platform_energy(simple(), {ranks, 1, Seconds(10), 2}).actual;
  EXPECT_DOUBLE_EQ(two.computing.value, 2 * 10 * 10);
  EXPECT_DOUBLE_EQ(two.unused_cores.value, 20);
}

TEST(PlatformEnergy, RanksThatSleepLeaveSharedCoresToTheOthers) {
  std::vector<Residency> ranks(8, only(Doing::wait_asleep, 10));  // 8 ranks on 4 cores, one of which computes
  ranks.front() = only(Doing::computing, 10);
  const PlatformEnergy one = platform_energy(simple(), {ranks, 1, Seconds(10)});
  EXPECT_DOUBLE_EQ(one.actual.computing.value, 10 * 10);
  EXPECT_DOUBLE_EQ(one.actual.wait_asleep.value, 30);
  EXPECT_DOUBLE_EQ(one.saved().value, 30 * (8 - 1));
  Residency half = only(Doing::computing, 5);  // by turns: no core sleeps
  half.wait_asleep = Seconds(5);
  ranks.assign(8, half);
  const PlatformEnergy turns = platform_energy(simple(), {ranks, 1, Seconds(10)});
  EXPECT_DOUBLE_EQ(turns.actual.computing.value, 4 * 10 * 10);
  EXPECT_DOUBLE_EQ(turns.actual.wait_asleep.value, 0);
  EXPECT_DOUBLE_EQ(turns.saved().value, 0);
}

TEST(PlatformEnergy, RanksOfProgramsThatFollowEachOtherHaveTheSameCores) {
  const std::vector<Residency> ranks(8, only(Doing::wait_asleep, 10));  // four programs of two ranks
  Usage usage{ranks, 1, Seconds(40)};
  const Together together[] = {{8, 2}};
  usage.together = together;
  const EnergyParts e = platform_energy(simple(), usage).actual;
  EXPECT_DOUBLE_EQ(e.wait_asleep.value, 8 * 10);
  EXPECT_DOUBLE_EQ(e.unaccounted.value, 0);
  EXPECT_DOUBLE_EQ(e.unused_cores.value, 2 * 40);
}

TEST(PlatformEnergy, CoresThatOnlyALaterProgramUsesAreFreeUntilThen) {
  std::vector<Residency> ranks(4, only(Doing::computing, 10));  // of a program of four ranks, ...
  ranks.push_back(only(Doing::computing, 30));                  // ... and of one of one rank before
  Usage usage{ranks, 1, Seconds(40)};
  const Together together[] = {{4, 4}, {1, 1}};
  usage.together = together;
  usage.in_use = Seconds(30 + 4 * 10);
  const EnergyParts e = platform_energy(simple(), usage).actual;
  EXPECT_DOUBLE_EQ(e.computing.value, 70 * 10);
  EXPECT_DOUBLE_EQ(e.unaccounted.value, 0);
  EXPECT_DOUBLE_EQ(e.unused_cores.value, 3 * 30);
}

TEST(PlatformEnergy, ProgramsThatFollowEachOtherShareCoresOnlyWithinThemselves) {
  std::vector<Residency> ranks(4, only(Doing::computing, 10));   // one for each core, ...
  ranks.resize(4 + 16, only(Doing::wait_asleep, 20));            // ... then four for each, all asleep but one
  ranks.back() = only(Doing::computing, 20);
  const Together together[] = {{4}, {16}};
  Usage usage{ranks, 1, Seconds(30)};
  usage.together = together;
  const EnergyParts e = platform_energy(simple(), usage).actual;
  EXPECT_DOUBLE_EQ(e.computing.value, (4 * 10 + 20) * 10);
  EXPECT_DOUBLE_EQ(e.wait_asleep.value, 3 * 20);
  EXPECT_DOUBLE_EQ(e.unaccounted.value, 0);
  const Together more[] = {{4}, {17}};
  usage.together = more;
  EXPECT_THROW(platform_energy(simple(), usage), std::invalid_argument);
}

TEST(PlatformEnergy, ThreadsOfARankHaveACoreEach) {
  const Residency rank = only(Doing::computing, 30);  // of three threads, 10 s each
  Usage usage{{&rank, 1}, 1, Seconds(10)};
  const Together together[] = {{1, 3}};
  usage.together = together;
  const EnergyParts e = platform_energy(simple(), usage).actual;
  EXPECT_DOUBLE_EQ(e.computing.value, 3 * 10 * 10);
  EXPECT_DOUBLE_EQ(e.unused_cores.value, 10);
}

TEST(PlatformEnergy, ThreadsThatCallNoMpiComputeOnCoresOfTheirOwn) {
  const Residency rank = only(Doing::computing, 10);
  Usage usage{{&rank, 1}, 1, Seconds(10)};
  usage.besides = Seconds(20);
  const EnergyParts e = platform_energy(simple(), usage).actual;
  EXPECT_DOUBLE_EQ(e.computing.value, 3 * 10 * 10);
  EXPECT_DOUBLE_EQ(e.unused_cores.value, 10);
  EXPECT_DOUBLE_EQ(e.memory.value, 40 + 4 * 30.0 / 4);
  usage.besides = Seconds(1000);  // no more than there are
  EXPECT_DOUBLE_EQ(platform_energy(simple(), usage).actual.computing.value, 4 * 10 * 10);
}

TEST(PlatformEnergy, WhatSumsDifferByIsNoRest) {
  const Residency rank = only(Doing::computing, 0.1 * 3);
  Usage usage{{&rank, 1}, 1, Seconds(0.3)};
  Together together[] = {{1, 4}};
  usage.together = together;
  usage.in_use = Seconds(0.3 * 4 * (1 - 1e-15));
  EXPECT_EQ(platform_energy(simple(), usage).actual.unused_cores.value, 0);
  together[0].at_once = 1;
  usage.in_use = Seconds(0.3 * (1 + 1e-15));
  EXPECT_EQ(platform_energy(simple(), usage).actual.unaccounted.value, 0);
}

TEST(PlatformEnergy, RefusesWhatCannotBe) {
  const Platform p = simple();
  EXPECT_THROW(platform_energy(p, {{}, 0, Seconds(1)}), std::invalid_argument);
  EXPECT_THROW(platform_energy(p, {{}, 1, Seconds(-1)}), std::invalid_argument);
  EXPECT_THROW(platform_energy(p, {{}, 1, Seconds(1), 5}), std::invalid_argument);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Residency r = only(Doing::io, bad);
    EXPECT_THROW(platform_energy(p, {{&r, 1}, 1, Seconds(1)}), std::invalid_argument);
  }
}

TEST(PortEnergy, RestsAtTheLowPowerFraction) {
  const Link link{GigabitsPerSecond(40), 4, 0.43, Nanoseconds(10000), Watts(2)};
  EXPECT_DOUBLE_EQ(port_energy(link, Seconds(100), Seconds(0)).value, 200);
  EXPECT_DOUBLE_EQ(port_energy(link, Seconds(100), Seconds(100)).value, 86);
  EXPECT_DOUBLE_EQ(port_energy(link, Seconds(100), Seconds(500)).value, 86);
}

// The presets against the absolute and relative figures in the papers that they are calibrated to.

TEST(Presets, PascolRackIdleAndAllToAll) {  // section 4.4: 7.8 and 9.4 kW; 28 nodes to a rack assumed
  const Platform p = load_platform("pascol2011", kPlatforms);
  EXPECT_NEAR(idle(p, 28).value, 7800, 0.01 * 7800);
  EXPECT_NEAR(all_cores(p, Doing::transfer, 28).value, 9400, 0.01 * 9400);
}

TEST(Presets, ZamaniNodeUnderMyrinetTraffic) {  // section V: 174 to 178 W, the switch apart
  const Platform p = load_platform("zamani2007", kPlatforms);
  const Residency r = only(Doing::transfer, 100);
  const EnergyParts e = platform_energy(p, {{&r, 1}, 1, Seconds(100)}).actual;
  const double node = (e.total() - e.switch_share).value / 100;
  EXPECT_GE(node, 174);
  EXPECT_LE(node, 178);
  EXPECT_DOUBLE_EQ((p.switch_share * 8.0).value, 69);
}

TEST(Presets, HoeflerIdleClusterAndStream) {  // 17.7 A at 120 V; a stream adds 1.1 A to 4 nodes
  const Platform p = load_platform("hoefler2009", kPlatforms);
  EXPECT_NEAR(idle(p, 14).value, 17.7 * 120, 0.01 * 17.7 * 120);
  EXPECT_NEAR(all_cores(p, Doing::transfer, 4).value - idle(p, 4).value, 1.1 * 120, 0.05 * 1.1 * 120);
}

TEST(Presets, KandallaInstantaneousSaving) {  // 33 % with half of the cores throttled to 12 % (T7), all at 1.6 GHz
  const Platform p = load_platform("kandalla2010", kPlatforms);
  std::vector<Residency> ranks(8, only(Doing::transfer, 100));
  for (Residency& r : ranks) r.frequency = Hertz(1.6e9);
  for (std::size_t i = 0; i < 4; ++i) {
    ranks[i].transfer = Seconds(12);
    ranks[i].wait_asleep = Seconds(88);
  }
  const double proposed = platform_energy(p, {ranks, 1, Seconds(100)}).actual.total().value / 100;
  EXPECT_NEAR(1 - proposed / all_cores(p, Doing::transfer).value, 0.33, 0.02);
}

TEST(Presets, MinotauroSwitchShareFollowsFromTheTopology) {  // ports per node x port power / share of links
  const Platform p = load_platform("minotauro", kPlatforms);
  const double ports = 14 * (18 + 18) + 18 * 14;
  EXPECT_DOUBLE_EQ(p.switch_share.value, ports / (14 * 18) * p.link.port.value / 0.64);
}

TEST(Presets, MoreWorkTakesMorePower) {
  for (const char* name : {"generic", "zamani2007", "pascol2011", "kandalla2010", "minotauro", "hoefler2009"}) {
    const Platform p = load_platform(name, kPlatforms);
    EXPECT_LT(idle(p), all_cores(p, Doing::wait_awake)) << name;
    EXPECT_LT(all_cores(p, Doing::wait_awake), all_cores(p, Doing::computing)) << name;
    EXPECT_LE(p.core.yield, p.core.spin) << name;
  }
}

}  // namespace
}  // namespace fallow::power
