// How long to sleep in a wait.

#include <algorithm>

#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

using predict::WaitCosts;
using predict::WaitPlan;

constexpr double kFirstSliceNs = 50e3;              // first sleep of a wait in mode sleep
constexpr double kSliceOfSteps = 1.0 / 4;           // of the wait so far, a sleep in a call of many steps: each may add as much
constexpr double kComparedNs = 3e6;                 // in longer waits a sleep's cost is small beside what they save
constexpr double kAnswerWakes = 2.0;                // wake-ups that may pass until one that was woken answers: it is not slept through
constexpr double kHeldUp = 5.0;                     // a delay that lasts holds up others, and the rest of the node: in cores

/// A plan that does not weigh spinning against sleeping: sleeps in slices that grow with the wait. Where the end of the wait
/// also ends the sleep, for as long as most waits at this place last. Ranks that share a core give way to each other first:
/// the message may come from one that has only to be let run.
WaitPlan plan_growing(Thread& t, double waited_ns) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const bool steps = has_many_steps(t);
  const bool lingers = w.sleeps != 0 && (w.woken_by_peer || (steps && !rt.whole_job_here));
  const std::uint64_t now = rt.clock.now();
  const bool flows = w.moved_last != 0 && rt.clock.to_ns(now - w.moved_last) < flow_patience_ns(w);
  const double awake_ns = rt.clock.to_ns(now - std::max({t.enter, w.last_wake, flows ? w.moved_last : 0}));
  const bool patient = w.sleeps == 0 || (w.woken_by_peer && !rt.oversubscribed);
  const double give_way_ns = flows ? flow_patience_ns(w) : patient ? kGiveWayNs : lingers ? kGraceNs : 0.0;
  w.yields = rt.options.mode == WaitMode::automatic && awake_ns < give_way_ns;
  if (w.yields) return {to_nanoseconds(0), to_nanoseconds(give_way_ns - awake_ns)};
  // Who is woken in the middle of a collective call is often woken for a step that comes a little later.
  const double quiet_ns = w.stirred != 0 ? rt.clock.to_ns(now - w.stirred) : waited_ns;
  double slice_ns = std::max(steps ? quiet_ns * kSliceOfSteps : quiet_ns, kFirstSliceNs);
  if (!steps && w.stirred == 0 && rt.whole_job_here && rt.options.wake) {
    slice_ns = std::max(slice_ns, static_cast<double>(rt.waits.summary(known_key(t)).p90.value) - waited_ns);
  }
  return {to_nanoseconds(std::min(slice_ns, kLongestSleepNs)), to_nanoseconds(0)};
}

/// Others may need this rank's progress at any time, and can neither wake it nor be noticed to have waited.
bool may_be_needed_unseen() noexcept {
  const Runtime& rt = runtime();
  if (!rt.windows.load(std::memory_order_relaxed)) return false;
  return !rt.options.wake || (!rt.whole_job_here && !rt.polls_tell && !rt.sockets.trusted());
}

/// All have come to the call lately: it is about to end, and who came last has woken those who slept.
bool is_about_to_end(Thread& t, std::uint64_t now) noexcept {
  WaitState& w = t.wait;
  if (w.all_came == 0 && all_have_come(t)) w.all_came = now;
  return w.all_came != 0 && runtime().clock.to_ns(now - w.all_came) < kGiveWayNs;
}

/// One wait in many of those that are not long is spent awake where only that shows what sleeping costs.
bool stays_awake(Thread& t, double waited_ns) noexcept {
  WaitState& w = t.wait;
  if (runtime().whole_job_here || waited_ns > kComparedNs) return false;
  if (w.phase == WaitPhase::none) w.compared = runtime().toll.compares(key_of(t));
  return w.compared;
}

}  // namespace

WaitPlan make_plan(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const double waited_ns = rt.clock.to_ns(now - t.enter);
  t.wait.yields = false;
  if (rt.options.mode == WaitMode::sleep || rt.oversubscribed) return plan_growing(t, waited_ns);
  if (is_about_to_end(t, now)) return {to_nanoseconds(0), to_nanoseconds(kGraceNs)};
  if (needs_target_unseen(t)) return {to_nanoseconds(0), to_nanoseconds(kGraceNs)};
  if (rt.whole_job_here && rt.contention.contended(rt.clock.to_ns(now))) {
    if (t.wait.held_up != 0 && rt.node.page().budget.in_debt()) {  // others wait for it in the middle of the call
      t.wait.yields = true;
      return {to_nanoseconds(0), to_nanoseconds(kGraceNs)};
    }
    if (t.wait.held || !rt.holding.pays()) return plan_growing(t, waited_ns);
    t.wait.held = true;
    return {to_nanoseconds(0), to_nanoseconds(Holding::kHoldNs)};
  }
  const std::uint64_t answered_by = t.woke_at + rt.clock.to_ticks(kAnswerWakes * rt.costs.peer_wake_ns + kGraceNs);
  if (t.woke_at != 0 && now < answered_by) return {to_nanoseconds(0), to_nanoseconds(rt.clock.to_ns(answered_by - now))};
  rt.node.page().budget.earn(now);
  if (rt.options.mode == WaitMode::automatic && may_be_needed_unseen()) return {to_nanoseconds(0), to_nanoseconds(kGraceNs)};
  if (stays_awake(t, waited_ns)) return {to_nanoseconds(0), to_nanoseconds(kGraceNs)};
  const double lasting = rt.whole_job_here ? rt.late.lasting_share() : rt.toll.lasting_share(key_of(t));
  const double price = std::max(rt.node.page().budget.price(somebody_sleeps()), 1.0 + kHeldUp * lasting);
  // A delay of ours may be made good; the time of whoever wakes us is lost.
  const double woken_ns = rt.costs.peer_wake_ns + rt.costs.waking_ns * std::max(1.0, (1.0 + kHeldUp) / price);
  const bool wakes = rt.whole_job_here || t.wait.from_here || rt.sockets.trusted();
  const bool is_paid = t.wait.sleeps != 0 && !has_many_steps(t);  // what comes after a sleep comes once in a wait
  const double longest_ns = rt.clock.to_ns(static_cast<std::uint64_t>(rt.node.page().budget.bearable()));
  const WaitCosts costs{to_nanoseconds(rt.costs.sleep_cpu_ns), to_nanoseconds(rt.costs.overshoot_ns), wakes, to_nanoseconds(woken_ns),
                        to_nanoseconds(is_paid ? 0.0 : after_sleep_ns(t)), to_nanoseconds(longest_ns)};
  return rt.waits.plan(known_key(t), to_nanoseconds(waited_ns), costs, price);
}

}  // namespace fallow::pmpi
