// Energy = power of each state x time in it, summed over cores, plus what nodes and switches draw whatever happens.
#include <algorithm>
#include <cmath>

#include "power/platform.hpp"

namespace fallow::power {
namespace {

void check(const Platform& p, const Usage& u) {
  const auto good = [](Seconds t) { return std::isfinite(t.value) && t.value >= 0; };
  if (u.nodes == 0) throw std::invalid_argument("a run needs at least one node");
  if (!good(u.run_time)) throw std::invalid_argument("the run time must be finite and not negative");
  if (!good(u.besides) || !good(u.in_use)) throw std::invalid_argument("core time must be finite and not negative");
  for (const Residency& r : u.ranks) {
    if (!good(r.computing) || !good(r.transfer) || !good(r.wait_awake) || !good(r.wait_asleep) || !good(r.io)) {
      throw std::invalid_argument("times in states must be finite and not negative");
    }
  }
  std::size_t ranks = 0;
  for (const Together& t : u.together) ranks += t.ranks;
  if (!u.together.empty() && ranks != u.ranks.size()) {
    throw std::invalid_argument("the ranks that ran together are not as many as there are ranks");
  }
  const double cores = static_cast<double>(u.nodes) * p.cores();
  if (u.cores_used > cores) {
    throw std::invalid_argument("the run used " + std::to_string(u.cores_used) + " cores, but " +
                                std::to_string(u.nodes) + " nodes of " + p.name + " have " +
                                std::to_string(static_cast<long long>(cores)));
  }
}

// What is left of the whole. Sums of many times that make up all of it differ from it by rounding, which is no rest.
Seconds beyond(Seconds part, Seconds whole) noexcept {
  constexpr double kRounding = 1e-12;
  return whole - part > whole * kRounding ? whole - part : Seconds{};
}

// Of its time, what a rank has a core for: less than all where ranks share cores. Who sleeps leaves them to the others, so
// cores sleep only for what those that are awake leave of them.
struct Shares {
  double awake = 1;
  double blocked = 1;
};

Shares shares(std::span<const Residency> ranks, double share) noexcept {
  if (share >= 1) return {};
  Seconds awake{}, all{};
  for (const Residency& r : ranks) {
    awake += r.computing + r.transfer + r.wait_awake;
    all += r.total();
  }
  const Seconds cores = all * share, taken = std::min(awake, cores), blocked = all - awake;
  return {awake > Seconds{} ? taken / awake : 1.0, blocked > Seconds{} ? (cores - taken) / blocked : 1.0};
}

// Sums over ranks.
struct CoreSums {
  EnergyParts energy;
  Seconds accounted{};  // core time within residencies
  Seconds busy{};       // computing or transferring
  Seconds transfer{};
};

// Adds ranks that share cores. `share` of a core is what one rank has: less than 1 where they are more than the cores.
void add_ranks(CoreSums& s, const Platform& p, const Usage& u, std::span<const Residency> ranks, double share,
               bool asleep_is_awake) {
  const Shares of = shares(ranks, share);
  for (const Residency& r : ranks) {
    const Watts awake = u.waits_yield ? p.core.yield_at(r.wait_frequency) : p.core.spin_at(r.wait_frequency);
    const Watts nominal = u.waits_yield ? p.core.yield : p.core.spin;
    const Watts asleep = asleep_is_awake ? nominal : p.core.sleep;
    s.energy.computing += p.core.compute_at(r.frequency) * (r.computing * of.awake);
    s.energy.transfer += p.core.spin_at(r.frequency) * (r.transfer * of.awake);
    s.energy.wait_awake += awake * (r.wait_awake * of.awake);
    s.energy.wait_asleep += asleep * (r.wait_asleep * of.blocked);
    s.energy.io += p.core.sleep * (r.io * of.blocked);
    s.accounted += r.total() * share;
    s.busy += (r.computing + r.transfer) * of.awake;
    s.transfer += r.transfer * of.awake;
  }
}

double at_once(const Together& t) noexcept { return t.at_once != 0 ? t.at_once : static_cast<double>(t.ranks); }

CoreSums sum_ranks(const Platform& p, const Usage& u, std::span<const Together> together, double used,
                   bool asleep_is_awake) {
  CoreSums s;
  std::span<const Residency> rest = u.ranks;
  for (const Together& t : together) {
    add_ranks(s, p, u, rest.first(t.ranks), std::min(1.0, used / std::max(1.0, at_once(t))), asleep_is_awake);
    rest = rest.subspan(t.ranks);
  }
  return s;
}

EnergyParts energy_of(const Platform& p, const Usage& u, std::span<const Together> together, double used,
                      bool asleep_is_awake) {
  const CoreSums s = sum_ranks(p, u, together, used, asleep_is_awake);
  EnergyParts e = s.energy;
  const double nodes = u.nodes;
  const double cores = nodes * p.cores();
  const Seconds node_time = u.run_time * nodes;
  const Seconds in_use = u.in_use > Seconds{} ? std::min(u.in_use, u.run_time * cores) : u.run_time * used;
  const Seconds unaccounted = beyond(s.accounted, in_use);
  e.unaccounted = p.core.compute * unaccounted;
  const Seconds free = beyond(in_use, u.run_time * cores), besides = std::min(u.besides, free);
  e.computing += p.core.compute * besides;
  e.unused_cores = p.core.sleep * (free - besides);
  // Memory: active in proportion to the cores that work. Network card: active while any rank of its node transfers,
  // at most all the time.
  const Seconds memory_busy = std::min(node_time, (s.busy + unaccounted + besides) * (1.0 / p.cores()));
  const Seconds nic_busy = std::min(node_time, s.transfer);
  e.memory = p.memory.idle * node_time + (p.memory.active - p.memory.idle) * memory_busy;
  e.nic = p.nic.idle * node_time + (p.nic.active - p.nic.idle) * nic_busy;
  e.base = p.base * node_time;
  e.switch_share = p.switch_share * node_time;
  return e;
}

}  // namespace

PlatformEnergy platform_energy(const Platform& platform, const Usage& usage) {
  check(platform, usage);
  const Together all{usage.ranks.size()};
  const std::span<const Together> together = usage.together.empty() ? std::span(&all, 1) : usage.together;
  double most = 0;
  for (const Together& t : together) most = std::max(most, at_once(t));
  const double cores = static_cast<double>(usage.nodes) * platform.cores();
  const double used = usage.cores_used != 0 ? usage.cores_used : std::min(most, cores);
  return {energy_of(platform, usage, together, used, false), energy_of(platform, usage, together, used, true)};
}

Joules port_energy(const Link& link, Seconds run_time, Seconds rested) noexcept {
  const Seconds resting = std::clamp(rested, Seconds{}, run_time);
  return link.port * (run_time - resting * (1.0 - link.low_power_fraction));
}

}  // namespace fallow::power
