// When a link, a switch or a card rests: rules that need no events. What it did since its last message is worked out
// when the next one comes, from the end of the one and the arrival of the other. A message that finds it at rest or
// waking waits until it is back; a descent is completed first (as predict::rest_outcome has it).
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/machine.hpp"

namespace fallow::sim {

enum class LinkRule : std::uint8_t {
  always_on,
  timer,    ///< rests after `timer` of idling (and deeper after `deep_timer`), wakes on demand
  planned,  ///< rests from a plan's begin to its end, made by those who know when messages will come
  oracle,   ///< rests in every gap that is long enough, in the best state, and is always awake in time
};

struct LinkPolicy {
  LinkRule rule = LinkRule::always_on;
  Time timer = 0;
  Time deep_timer = kNever;  ///< kNever: the deep state is not used

  /// Gaps up to this are too short for a rest whatever else is known of them.
  Time quiet() const noexcept { return rule == LinkRule::always_on ? kNever : rule == LinkRule::timer ? timer : 0; }
};

/// A rest planned ahead.
struct RestPlan {
  Time begin = kNever;
  Time wake = 0;      ///< when the wake-up starts
  bool deep = false;  ///< in the deep state
};

/// What came of one gap.
struct RestResult {
  Time ready = 0;  ///< when the link can carry the message: its arrival, or later
  Time low = 0;    ///< time at rest
  Time deep = 0;   ///< time in the deep state
  std::uint32_t rests = 0;
};

namespace detail {

inline RestResult after_timer(const LinkPolicy& policy, const RestStates& spec, Time idle_from, Time arrival) noexcept {
  RestResult r{arrival};
  const Time begin = idle_from + policy.timer;
  if (arrival <= begin) return r;
  r.rests = 1;
  const Time low_from = begin + spec.rest.down;
  const Time deep_from = policy.deep_timer == kNever ? kNever : std::max(low_from, idle_from + policy.deep_timer);
  if (arrival <= deep_from) {
    const Time wake = std::max(arrival, low_from);
    r.low = wake - low_from;
    r.ready = wake + spec.rest.up;
    return r;
  }
  const Time wake = std::max(arrival, deep_from + spec.deep.down);
  r.low = deep_from - low_from;
  r.deep = wake - deep_from - spec.deep.down;
  r.ready = wake + spec.deep.up;
  return r;
}

inline RestResult as_planned(const RestPlan& plan, const RestStates& spec, Time idle_from, Time arrival) noexcept {
  RestResult r{arrival};
  const Time begin = std::max(plan.begin, idle_from);
  if (plan.wake <= begin || arrival <= begin) return r;
  const RestState& state = plan.deep ? spec.deep : spec.rest;
  const Time low_from = begin + state.down;
  const Time wake = std::max(std::min(plan.wake, arrival), low_from);
  r.rests = 1;
  (plan.deep ? r.deep : r.low) = wake - low_from;
  r.ready = std::max(arrival, wake + state.up);
  return r;
}

inline RestResult with_foresight(const LinkPolicy& policy, const RestStates& spec, Time idle_from, Time arrival, bool last) noexcept {
  RestResult r{arrival};
  const Time gap = arrival - idle_from;
  const Time low = gap - spec.rest.down - (last ? 0 : spec.rest.up);
  const Time deep = policy.deep_timer == kNever ? 0 : gap - spec.deep.down - (last ? 0 : spec.deep.up);
  if (deep > 0 && (1 - spec.deep.fraction) * static_cast<double>(deep) > (1 - spec.rest.fraction) * static_cast<double>(low)) {
    r.deep = deep;
    r.rests = 1;
  } else if (low > 0) {
    r.low = low;
    r.rests = 1;
  }
  return r;
}

/// The tail, at its receiver, of a message that a rest there has held for `wait`, without keeping its link from others. It does
/// not come before those that were `held` before it, as messages are matched in the order in which they were sent.
inline Time behind_held(Time& held, Time tail, Time wait) noexcept {
  tail = std::max(tail + wait, held);
  if (wait > 0) held = tail;
  return tail;
}

}  // namespace detail

/// The gap of what idles from `idle_from` until a message arrives at `arrival` (> idle_from); `last`: until all ends there, for
/// which nobody wakes.
inline RestResult end_of_gap(const LinkPolicy& policy, const RestPlan& plan, const RestStates& spec, Time idle_from,
                             Time arrival, bool last = false) noexcept {
  switch (policy.rule) {
    case LinkRule::always_on: return {arrival};
    case LinkRule::timer: return detail::after_timer(policy, spec, idle_from, arrival);
    case LinkRule::planned: return detail::as_planned(plan, spec, idle_from, arrival);
    case LinkRule::oracle: return detail::with_foresight(policy, spec, idle_from, arrival, last);
  }
  return {arrival};
}

/// The plan of something whose states are `spec`, for a silence from `begin` until what comes wakes `react` before its
/// end: in the deeper state if it may be used and rests more; no plan if no state pays.
inline RestPlan plan_for(const LinkPolicy& policy, const RestStates& spec, RestPlan silence, Time react) noexcept {
  const Time end = silence.wake >= kNever ? kNever : silence.wake + react;
  const auto low = [&](const RestState& s) { return end - silence.begin - s.down - s.up; };
  const double rest = (1 - spec.rest.fraction) * static_cast<double>(low(spec.rest));
  const double deep = policy.deep_timer == kNever ? 0 : (1 - spec.deep.fraction) * static_cast<double>(low(spec.deep));
  if (rest <= 0 && deep <= 0) return {};
  const bool deeper = deep > rest;
  return {silence.begin, end >= kNever ? kNever : end - (deeper ? spec.deep.up : spec.rest.up), deeper};
}

}  // namespace fallow::sim
