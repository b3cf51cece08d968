#include "sim/cores.hpp"

#include <algorithm>

#include "sim/result.hpp"

namespace fallow::sim {
namespace {

constexpr double kHorizonSeconds = 2;   // the account of the runtime: it holds what this time earns, at most
constexpr double kLeastSeconds = 1e-3;
constexpr int kMostSleeps = 64;         // in one wait; what is left is polled

double cap_of(double budget) noexcept { return std::max(budget * kHorizonSeconds, kLeastSeconds) * 1e12; }

}  // namespace

WaitOutcome outcome_of_wait(const CorePolicy& p, Time waited) noexcept {
  WaitOutcome o;
  if (p.rule == CoreRule::oracle && waited > p.rest.down + p.rest.up) {
    o.changing = p.rest.down + p.rest.up;
    o.resting = waited - o.changing;
    return o;
  }
  if (p.rule != CoreRule::timer || waited <= p.timer) {
    o.late = p.notice;
    o.polling = waited + o.late;
    return o;
  }
  o.polling = p.timer;
  const Time rested_from = p.timer + p.rest.down;
  if (p.rest.speed > 0) {  // it goes on at once, slowly
    o.changing = std::min(waited - p.timer, p.rest.down);
    o.resting = std::max<Time>(0, waited - rested_from);
    o.slow_until = std::max(waited, rested_from) - waited + p.rest.up;
    return o;
  }
  const Time wake = std::max(waited, rested_from);
  o.resting = wake - rested_from;
  o.changing = p.rest.down + p.rest.up;
  o.late = wake + p.rest.up - waited;
  return o;
}

WaitOutcome outcome_of_end(const CorePolicy& p, Time waited) noexcept {
  WaitOutcome o;
  o.polling = waited;
  if (p.rule == CoreRule::poll) return o;
  // What plans by the waits before has seen none like this one: it polls for as long as a sleep costs.
  const Time timer = p.rule == CoreRule::oracle ? 0 : p.rule == CoreRule::timer ? p.timer : p.rest.down + p.rest.up;
  if (waited <= timer + p.rest.down) return o;
  o.polling = timer;
  o.changing = p.rest.down;
  o.resting = waited - timer - p.rest.down;
  return o;
}

Cores::Cores(const CorePolicy& policy, std::uint32_t ranks)
    : policy_(policy), budget_(policy.budget / std::max(ranks, 1u)), active_(policy.rule != CoreRule::poll || policy.notice > 0) {
  if (!active_) return;
  sums_.resize(ranks);
  if (policy.rule != CoreRule::planned) return;
  constexpr std::size_t kBytes = kKeys * predict::WaitModel::kBytesPerKey;
  arena_.resize(kBytes * ranks + alignof(std::max_align_t));
  models_.reserve(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    models_.push_back({predict::WaitModel({arena_.data() + r * kBytes, kBytes}), cap_of(budget_) / 4});
  }
}

/// The wait as the runtime would go through it: sleeps by timer, polls between them.
WaitOutcome Cores::plan(Planner& planner, Time from, Time waited, std::uint64_t kind) const noexcept {
  const CoreRestState& s = policy_.rest;
  const double cap = cap_of(budget_);
  if (from > planner.earned_until) {
    planner.balance = std::min(cap, planner.balance + budget_ * static_cast<double>(from - planner.earned_until));
    planner.earned_until = from;
  }
  const double price = planner.balance <= cap * 1e-3 ? 1e3 : std::max(1.0, cap / planner.balance);
  const Time bearable = static_cast<Time>(std::max(planner.balance, cap / 16) / 8);
  predict::WaitCosts costs{nanoseconds(s.down + s.up), nanoseconds(s.up)};
  costs.longest = nanoseconds(bearable);
  WaitOutcome o;
  Time at = 0, last_sleep = 0;
  for (int sleeps = 0; at < waited; ++sleeps) {
    const predict::WaitPlan plan = planner.model.plan(kind, nanoseconds(at), costs, price);
    const Time sleep = plan.sleep_for.value * kNs;
    const Time spin = std::max<Time>(plan.spin.value * kNs, kNs);
    last_sleep = 0;
    if (sleep > 0 && sleeps < kMostSleeps) {
      const Time down = std::min(sleep, s.down);
      o.resting += sleep - down;
      o.changing += down + s.up;
      at += sleep + s.up;
      last_sleep = sleep + s.up;
      if (at >= waited) break;
    }
    const Time polled = sleeps < kMostSleeps ? std::min(spin, waited - at) : waited - at;
    o.polling += polled;
    at += polled;
    last_sleep = 0;
  }
  o.late = std::max<Time>(0, at - waited);
  planner.balance -= static_cast<double>(o.late);
  planner.model.observe(kind, nanoseconds(std::max(at, waited)), nanoseconds(last_sleep));
  return o;
}

WaitOutcome Cores::end_wait(std::uint32_t r, Time from, Time waited, std::uint64_t kind) noexcept {
  const WaitOutcome o = policy_.rule == CoreRule::planned ? plan(models_[r], from, waited, kind) : outcome_of_wait(policy_, waited);
  Sums& sums = sums_[r];
  sums.polling += o.polling;
  sums.resting += o.resting;
  sums.changing += o.changing;
  sums.late += o.late;
  sums.rests += o.changing > 0 ? 1 : 0;
  if (o.slow_until > 0) sums.slow_until = from + waited + o.slow_until;
  return o;
}

void Cores::add_to(CoreTotals& totals, std::uint32_t r) const noexcept {
  if (!active_) return;
  const Sums& s = sums_[r];
  totals.waiting += s.polling;
  totals.resting += s.resting;
  totals.changing += s.changing;
  totals.late += s.late;
  totals.rests += s.rests;
}

void Cores::add_end_to(CoreTotals& totals, Time left) const noexcept {
  const WaitOutcome o = outcome_of_end(policy_, left);
  totals.waiting += o.polling;
  totals.resting += o.resting;
  totals.changing += o.changing;
  totals.rests += o.changing > 0 ? 1 : 0;
}

Time Cores::stretch(std::uint32_t r, Time now, Time compute) const noexcept {
  const Time window = sums_[r].slow_until - now;
  if (window <= 0) return compute;
  const auto done = static_cast<Time>(static_cast<double>(window) * policy_.rest.speed);
  if (compute > done) return window + compute - done;
  return static_cast<Time>(static_cast<double>(compute) / policy_.rest.speed);
}

}  // namespace fallow::sim
