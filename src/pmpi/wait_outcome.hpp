// What became of a wait: when it ended, by how much a sleep was late for that, and what of this is paid. wait_end.cpp carries it out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "pmpi/wait_state.hpp"

namespace fallow::pmpi {

/// Data moved from tick `from` to `to`. Parts of one message follow each other closely: what was waited for is the first.
inline void end_lull(WaitState& w, std::uint64_t from, std::uint64_t to, const TickRate& rate) noexcept {
  if (w.quiet_until == 0 || rate.to_ns(from - w.quiet_since) > kLullNs) w.quiet_until = from;
  w.quiet_since = to;
  if (w.moved_at == 0) w.moved_at = from;
}

/// What first moved after the last sleep, at tick `moved`, had come while we slept: it was there once a poll was over, which is
/// slow after a sleep whether or not it finds anything.
inline bool came_during_sleep(const WaitState& w, std::uint64_t moved, const MeasuredCosts& costs, const TickRate& rate) noexcept {
  return w.sleeps != 0 && rate.to_ns(moved - w.awake_since) < kSeenNs + costs.idle_poll_ns * kPollsBetweenLooks;
}

/// Ticks by which we were late for what had come during the last sleep, if nobody of this node woke us for it.
inline std::uint64_t unseen_delay(const WaitState& w, const MeasuredCosts& costs, const TickRate& rate) noexcept {
  return w.woken_by_data ? std::min(w.last_sleep, rate.to_ticks(costs.overshoot_ns)) : w.last_sleep / 2;
}

/// Tick at which a peer ended the sleep from `before` to `after`, as its stamp says; where that is of another time, nothing is known of
/// how late the end was.
constexpr std::uint64_t tick_of_wake(std::uint64_t stamp, std::uint64_t before, std::uint64_t after) noexcept {
  return stamp >= before && stamp < after ? stamp : after;
}

/// Tick at which the last sleep should have ended.
constexpr std::uint64_t due_end(const WaitState& w) noexcept {
  if (w.woken_by_peer) return w.woken_tick;
  return w.woken_by_data ? w.last_wake : std::min(w.planned_end, w.last_wake);  // when data came is not known
}

/// Data were there before a sleep began, as if they had ended the last one. A peer may have woken us meanwhile, too, but how late the
/// last sleep ended its stamp does not say.
constexpr void found_data_ready(WaitState& w) noexcept {
  w.woken_by_peer = false;
  w.woken_by_data = true;
}

/// Ticks by which the last sleep held up others in the middle of the call, which goes on: they had to be answered, or waited for a step.
inline std::uint64_t held_up_by_sleep(const WaitState& w, const WaitingCall& call, bool whole_job_here, const MeasuredCosts& costs,
                                      const TickRate& rate) noexcept {
  const bool moved = call.many_steps && (w.moved_at != 0 || w.found_at_once);
  if (w.woken_by_peer && (w.served || moved)) {
    const std::uint64_t late = w.last_wake - w.woken_tick;
    return w.others_had_core ? std::min(late, rate.to_ticks(costs.peer_wake_ns)) : late;
  }
  const bool unseen = !whole_job_here && moved && (w.found_at_once || came_during_sleep(w, w.moved_at, costs, rate));
  return unseen ? unseen_delay(w, costs, rate) : 0;
}

/// What is known of the end of a wait, in ticks.
struct WaitEnd {
  std::uint64_t tick;   ///< at which what was waited for was there: a long message is moved by the poll that finds it
  bool unseen;          ///< it came during the last sleep
  bool moved;           ///< data moved after the last look
};

/// Of a call that ended at `call.now`.
inline WaitEnd find_end(WaitState w, const WaitingCall& call, bool whole_job_here, const MeasuredCosts& costs, const TickRate& rate) noexcept {
  constexpr double kEndNs = 1e3;  // from the last poll to the end of the call
  const double idle_ns = costs.idle_poll_ns * w.polls_since;
  const bool moved = rate.to_ns(call.now - w.last_poll) > kBusyPolls * idle_ns + kEndNs;  // in the polls that nobody looked at
  end_lull(w, moved ? w.last_poll : call.now, call.now, rate);
  const std::uint64_t tick = call.many_steps ? call.now : w.quiet_until;
  // Of many steps the first may have come during the sleep: a rank of this node would have woken us for it.
  const std::uint64_t first = call.many_steps && !whole_job_here ? w.moved_at : tick;
  if (came_during_sleep(w, first, costs, rate)) return {w.last_wake, true, moved};
  return {std::max(tick, w.last_wake), false, moved};
}

/// How long a wait lasted, or would have without sleep, in ticks.
struct WaitLength {
  std::uint64_t lasted = 0;     ///< where `uncertain`, at most
  std::uint64_t uncertain = 0;  ///< of it, a sleep in which it ended at a time that nobody saw
  std::uint64_t delay = 0;      ///< by which the sleep outlasted it; where `uncertain`, half of the sleep as long as nothing is known
};

/// `end_wakes`: who ended the wait would have woken us. Where nobody did, and its end was not seen, it came when we were awake again: the
/// first poll after a sleep may take a tenth of a millisecond.
inline WaitLength length_of(const WaitState& w, const WaitEnd& end, const WaitingCall& call, bool end_wakes, const MeasuredCosts& costs,
                            const TickRate& rate) noexcept {
  const auto since_enter = [&call](std::uint64_t tick) { return tick > call.enter ? tick - call.enter : 0; };
  const bool long_transfer = rate.to_ns(call.now - end.tick) > kLullNs;
  WaitLength length{.lasted = (end.unseen || long_transfer ? end.tick : call.now) - call.enter};
  if (w.sleeps != 0 && w.woken_by_peer) {
    length.delay = w.last_wake - w.woken_tick;
    if (end.unseen) length.lasted = since_enter(w.woken_tick);
  } else if (end.unseen && w.woken_by_data) {
    length.delay = unseen_delay(w, costs, rate);
    length.lasted = since_enter(w.last_wake - length.delay);
  } else if (end.unseen && !end_wakes) {
    length.delay = unseen_delay(w, costs, rate);
    length.uncertain = w.last_sleep;
  }
  return length;
}

/// The same of a meeting, to which the last rank came at tick `came`: what follows is for those who woke late, also for who did not sleep.
/// Were it part of what such waits last, all would sleep until the last of them has woken, and wake later from time to time. And who is
/// woken by one that was woken itself is late by more than its waker's stamp says.
inline WaitLength until_last_came(const WaitLength& length, const WaitState& w, const WaitingCall& call, std::uint64_t came) noexcept {
  if (came <= call.enter || came >= call.now) return length;
  return {came - call.enter, 0, w.sleeps != 0 && w.last_wake > came ? w.last_wake - came : 0};
}

/// What a sleep at the end of a wait has cost, in ticks.
struct Bill {
  std::uint64_t delay = 0;
  std::uint64_t lasts = 0;  ///< of it, what holds up the program; the rest is made good
};

/// Of a wake-up that was late by `late`, after which things take `after` longer; of such delays the part `lasting` lasts.
inline Bill bill_of(std::uint64_t late, std::uint64_t after, bool others_had_core, double lasting, const MeasuredCosts& costs,
                    const TickRate& rate) noexcept {
  Bill bill{.delay = late + after};
  if (others_had_core) {  // without sleep they would have had it as well
    bill.delay = std::min(bill.delay, rate.to_ticks(std::max(costs.peer_wake_ns, costs.overshoot_ns)));
  }
  bill.lasts = static_cast<std::uint64_t>(lasting * static_cast<double>(bill.delay));
  return bill;
}

/// Whether a wait of this length is one to sleep in.
inline bool pays_to_sleep(double ns, const MeasuredCosts& costs) noexcept { return ns > costs.sleep_cpu_ns + costs.overshoot_ns; }

/// Whether the time from the end of the wait to that of the call tells what a sleep, or none, leaves behind: as in waits to sleep in.
inline bool tells_aftermath(const WaitState& w, const WaitEnd& end, const WaitingCall& call, const MeasuredCosts& costs, const TickRate& rate) noexcept {
  return !call.many_steps && (w.sleeps != 0 || pays_to_sleep(rate.to_ns(end.tick - call.enter), costs));
}

/// Whether the model of waits is to learn from such a one. What calls of many steps last where ranks share cores is no measure: all would
/// sleep for as long as all have slept before.
constexpr bool tells_model(const Surroundings& where, bool many_steps) noexcept {
  return where.automatic && !(where.oversubscribed && many_steps);
}

/// Whether the wait, of `ns`, was too short to be slept in, so that the next ones need not be looked at.
inline bool was_short(const WaitState& w, double ns, const MeasuredCosts& costs) noexcept {
  return w.sleeps == 0 && !w.held && costs.idle_poll_ns > 0 && !pays_to_sleep(ns, costs);
}

/// Idle polls after which waits are looked at where each rank has a core: after some microseconds, however long a poll takes. A rank must
/// not wait much longer unnoticed, as others take their delays for made good if nobody seems to have waited for them.
inline std::uint32_t polls_until_first_look(double idle_poll_ns) noexcept {
  return static_cast<std::uint32_t>(std::clamp(kFirstLookNs / idle_poll_ns, double{kFirstPollsShared}, double{kFirstPolls}));
}

/// The wait of a call of `duration` that was over after `polls` polls that nobody looked at, of `idle_poll` where they find nothing; in ticks.
/// In integers: see Patience.
constexpr std::uint64_t unlooked_wait(std::uint64_t duration, std::uint64_t polls, std::uint64_t idle_poll) noexcept {
  constexpr std::uint64_t kBusyPollsAre = 2;  // a poll this much longer than the shortest moved data
  return std::min(duration, kBusyPollsAre * idle_poll * polls);
}

}  // namespace fallow::pmpi
