// What to do next in a wait, and what a sleep may cost there: decided by what is known of it, which wait_plan.cpp gathers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "pmpi/wait_state.hpp"
#include "predict/wait_model.hpp"

namespace fallow::pmpi {

/// What to do next in a wait.
enum class Step : std::uint8_t {
  stay_awake,    ///< for kGraceNs
  give_way,      ///< the same, while others have the core
  hold,          ///< poll on for a while, though others want the core
  await_answer,  ///< of a rank that was woken
  grow,          ///< sleeps that grow with the wait
  weigh,         ///< sleep or spin, by what the waits before say
};

/// Whether a wait lasts long by what the program does, not because others have the core of who is waited for: nearly all at its place do,
/// or this one has lasted for more than such time slices.
inline bool is_long_by_itself(double waited_ns, const predict::WaitSummary& usual) noexcept {
  constexpr std::uint32_t kEnough = 8;
  constexpr double kLongNs = 500e3, kSlicesNs = 20e6;
  return waited_ns >= kSlicesNs || (usual.samples >= kEnough && static_cast<double>(usual.p10.value) >= kLongNs);
}

/// The first of these that applies. `wait` is asked in this order, and no more than is needed: some answers take time, some draw lots.
template <class Wait>
Step next_step(Wait&& wait) {
  if (wait.moves_data()) return Step::stay_awake;
  if (wait.does_not_weigh()) return Step::grow;
  if (wait.is_about_to_end() || wait.needs_target_unseen()) return Step::stay_awake;
  if (wait.is_limited()) return Step::grow;
  if (wait.is_contended()) {
    if (wait.is_needed_with_debts()) return Step::give_way;
    return wait.was_held() || !wait.holding_pays() ? Step::grow : Step::hold;
  }
  if (wait.has_rivals() && !wait.is_long_by_itself()) return Step::stay_awake;
  if (wait.has_just_woken()) return Step::await_answer;
  wait.earn();
  return wait.may_be_needed_unseen() || wait.is_compared() ? Step::stay_awake : Step::weigh;
}

/// For how long data may stay away until they no longer count as part of the same transfer, ns: the longer it has lasted.
inline double flow_patience_ns(const WaitState& w, const TickRate& rate) noexcept {
  return std::clamp(rate.to_ns(w.moved_last - w.flows_since), kGiveWayNs, kLongestLullNs);
}

struct GrowingPlan {
  bool yields = false;  ///< its polls give way to others
  predict::WaitPlan plan;
};

/// A plan that does not weigh spinning against sleeping: sleeps in slices that grow with the wait. Where the end of the wait
/// also ends the sleep, for as long as most waits at this place last, which `usual_ns()` tells. Ranks that share a core give way to
/// each other first: the message may come from one that has only to be let run. Where time is limited, giving way spends it.
template <class Usual>
GrowingPlan growing_plan(const WaitState& w, const WaitingCall& call, const Surroundings& where, const TickRate& rate, Usual usual_ns) {
  constexpr double kFirstSliceNs = 50e3;
  constexpr double kSliceOfSteps = 1.0 / 4;  // of the wait so far, a sleep in a call of many steps: each may add as much
  const double waited_ns = rate.to_ns(call.now - call.enter);
  const bool lingers = w.sleeps != 0 && (w.woken_by_peer || (call.many_steps && !where.whole_job_here));
  const bool flows = w.moved_last != 0 && rate.to_ns(call.now - w.moved_last) < flow_patience_ns(w, rate);
  const double awake_ns = rate.to_ns(call.now - std::max({call.enter, w.last_wake, flows ? w.moved_last : 0}));
  const bool patient = w.sleeps == 0 || (w.woken_by_peer && !where.oversubscribed);
  const double give_way_ns = flows ? flow_patience_ns(w, rate) : patient ? kGiveWayNs : lingers ? kGraceNs : 0.0;
  if (where.automatic && !where.limited && awake_ns < give_way_ns) return {true, {to_nanoseconds(0), to_nanoseconds(give_way_ns - awake_ns)}};
  // Who is woken in the middle of a collective call is often woken for a step that comes a little later.
  const double quiet_ns = w.stirred != 0 ? rate.to_ns(call.now - w.stirred) : waited_ns;
  double slice_ns = std::max(call.many_steps ? quiet_ns * kSliceOfSteps : quiet_ns, kFirstSliceNs);
  const bool end_wakes = !call.many_steps && w.stirred == 0 && where.whole_job_here && where.wakes;
  if (end_wakes) slice_ns = std::max(slice_ns, usual_ns() - waited_ns);
  return {false, {to_nanoseconds(std::min(slice_ns, kLongestSleepNs)), to_nanoseconds(0)}};
}

/// How long the data of a collective call among so many ranks are on their way at most, of each rank `bytes`, ns; 0 where they are few. Some
/// libraries move them in pieces that no poll takes long for; were a rank asleep, each piece would take as long as its sleep.
inline double moving_ns(std::uint64_t bytes, std::int32_t ranks) noexcept {
  constexpr double kNsPerByte = 1.0, kLongestNs = 100e6;
  constexpr std::uint64_t kFewBytes = 4096;
  const auto rounds = static_cast<double>(std::bit_width(static_cast<std::uint32_t>(std::max(ranks - 1, 1))));
  return bytes > kFewBytes ? std::min(rounds * kNsPerByte * static_cast<double>(bytes), kLongestNs) : 0.0;
}

/// Until when a rank that was woken at tick `woke_at` can have answered: it is not slept through.
inline std::uint64_t answered_by(std::uint64_t woke_at, const MeasuredCosts& costs, const TickRate& rate) noexcept {
  constexpr double kAnswerWakes = 2.0;  // wake-ups that may pass
  return woke_at + rate.to_ticks(kAnswerWakes * costs.peer_wake_ns + kGraceNs);
}

/// Others may need this rank's progress at any time, and can neither wake it nor be noticed to have waited. `noticed`: by the rank's
/// polls, or as what comes from other nodes wakes it.
constexpr bool may_be_needed_unseen(bool windows, const Surroundings& where, bool noticed) noexcept {
  return windows && (!where.wakes || (!where.whole_job_here && !noticed));
}

/// Whether such a wait may be spent awake now and then, as only that shows what sleeping costs. Not a long one: a sleep's cost is small
/// beside what those save.
constexpr bool may_be_compared(const Surroundings& where, double waited_ns) noexcept {
  constexpr double kComparedNs = 3e6;
  return !where.whole_job_here && waited_ns <= kComparedNs;
}

/// What a delay that lasts holds up, in cores: the other ranks, and the rest of the node.
constexpr double held_up_by(std::uint32_t ranks) noexcept {
  constexpr double kRestOfNode = 4.0;
  return kRestOfNode + std::max(1.0, static_cast<double>(ranks) - 1.0);
}

/// What delay costs against sleep: what the account asks for, and no less than what is lost, of which `lasting` is the part that nobody makes good.
constexpr double price_of_delay(double of_account, double lasting, double held_up) noexcept { return std::max(of_account, 1.0 + held_up * lasting); }

/// What there is to weigh, at this price of delay.
struct Weighed {
  double price = 1.0;
  double held_up = held_up_by(2);  ///< cores
  double after_sleep_ns = 0;  ///< delay of a sleep that ends in time
  double longest_ns = 0;      ///< that can be borne
  bool end_wakes = false;     ///< the end of the wait also ends the sleep
  bool slept = false;         ///< in this wait
  bool many_steps = false;
};

inline predict::WaitCosts costs_of_sleep(const MeasuredCosts& costs, const Weighed& w) noexcept {
  // A delay of ours may be made good; the time of whoever wakes us is lost.
  const double woken_ns = costs.peer_wake_ns + costs.waking_ns * std::max(1.0, (1.0 + w.held_up) / w.price);
  const bool is_paid = w.slept && !w.many_steps;  // what comes after a sleep comes once in a wait
  return {to_nanoseconds(costs.sleep_cpu_ns), to_nanoseconds(costs.overshoot_ns), w.end_wakes, to_nanoseconds(woken_ns),
          to_nanoseconds(is_paid ? 0.0 : w.after_sleep_ns), to_nanoseconds(w.longest_ns)};
}

}  // namespace fallow::pmpi
