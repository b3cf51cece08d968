// What the parts of a wait share: wait.cpp lives through it, wait_plan.cpp says how long to sleep, wait_end.cpp learns from it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"
#include "pmpi/runtime.hpp"
#include "pmpi/wait_state.hpp"
#include "predict/wait_model.hpp"

namespace fallow::pmpi {

inline Surroundings surroundings() noexcept {
  const Runtime& rt = runtime();
  return {rt.options.mode == WaitMode::automatic, rt.whole_job_here, rt.oversubscribed, rt.options.wake};
}

/// By what the waits of the call under way are told apart where nothing is predicted: where it was called from.
inline std::uint64_t key_of(const Thread& t) noexcept {
  return (reinterpret_cast<std::uint64_t>(t.caller) ^ (std::uint64_t{t.op} << 48)) * 0x9e3779b97f4a7c15u;
}

/// The predicted kind of wait where that says more, else the call site.
inline std::uint64_t known_key(const Thread& t) noexcept { return runtime().waits.more_telling(t.wait.kind, key_of(t)); }

/// Follows a measured cost.
inline void smooth(double& value, double sample) noexcept { value += (sample - value) / 8; }

inline trace::OpKind kind_of(const Thread& t) noexcept { return static_cast<trace::OpKind>(runtime().writer.header().ops[t.op].kind); }

/// The call takes one message after the other among its ranks, and those inside it wake nobody. So each of them may
/// find the rest asleep, and what such calls last is no measure: all would sleep for as long as all have slept before. The same
/// of a wait for a collective call that was started before.
inline bool has_many_steps(const Thread& t) noexcept { return t.peer == kSeveralPeers || (t.peer == -1 && t.has_started_collective()); }

/// Waits for the end of one-sided calls, for which a target may have to do one thing after the other, and the library's polls do not
/// tell when it has: of Open MPI they take longer then, and what goes through UCX is told by it. MPICH 5 has shared memory of its own.
inline bool needs_target_unseen(const Thread& t) noexcept {
  if (t.peer == kSeveralPeers || kind_of(t) != trace::OpKind::rma_sync) return false;
  return t.found == 0 && !runtime().mpi.is_open_mpi;
}

/// What the wait is for comes from a rank of this node, which wakes us.
inline bool comes_from_here(const Thread& t) noexcept { return runtime().whole_job_here || t.wait.from_here; }

/// Some rank of this node may have to be woken.
inline bool somebody_sleeps() noexcept { return runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0; }

/// A blocking call that took this long waited, even if it polled too few times to look at the time: where ranks share cores, others
/// had its core between them. Returns its wait; 0: none.
inline std::uint64_t unmarked_wait(unsigned traits, std::uint64_t duration) noexcept {
  constexpr std::uint64_t kDescheduledNs = 20'000;
  const Runtime& rt = runtime();
  return (traits & kOpBlocks) != 0 && rt.oversubscribed && to_ns(duration, rt.ns_per_tick_q32) > kDescheduledNs ? duration : 0;
}

/// Among several polls, one that takes a step of a call of many is lost; the peer that waits for the next step may be asleep. Where ranks
/// share cores the length of a poll tells nothing.
inline std::uint32_t polls_until_look(const Thread& t) noexcept {
  return !runtime().oversubscribed && has_many_steps(t) && (t.wait.sleeps != 0 || somebody_sleeps()) ? 1 : kPollsBetweenLooks;
}

/// Data have moved: more is to come, in a call of many steps maybe only when the others have done what this rank has just done.
inline void linger(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t since = t.wait.sleeps != 0 ? t.wait.last_wake : t.enter;
  const double step = has_many_steps(t) ? std::min(rt.clock.to_ns(now - since), kLongestLullNs) : 0.0;
  const double least = !rt.whole_job_here && has_many_steps(t) ? kGiveWayNs : kGraceNs;
  t.wait.spin_until = std::max(t.wait.spin_until, now + rt.clock.to_ticks(std::max(step, least)));
}

/// Delay that a sleep in this call causes even if it ends in time, ns: measured where that can be told.
inline double after_sleep_ns(const Thread& t) noexcept {
  const Runtime& rt = runtime();
  const double assumed = rt.aftermath.slower_by(key_of(t), kAfterSleepNs);
  return rt.whole_job_here ? assumed : rt.toll.per_sleep(key_of(t), assumed);
}

/// Notes with a call's event how it waited. In integers: no floating-point flag of the program's is touched.
inline void note_wait(Thread& t, const PendingWait& wait, trace::Event& event) noexcept {
  const auto microseconds = [](std::uint64_t ticks) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(to_ns(ticks, runtime().ns_per_tick_q32) / 1000, ~std::uint32_t{0}));
  };
  t.waits[t.recorded % kPendingEvents] = wait;
  event.awake_us = std::max(microseconds(wait.wait - wait.asleep), 1u);
  event.asleep_us = microseconds(wait.asleep);
}

/// CommInfo::members of the meeting that the call under way is, if by what each rank does those that have come can be told from those
/// that have not; else 0. Where ranks share cores, others wait for the core, too.
std::uint32_t meeting_of(const Thread& t) noexcept;
/// Whether all have come to the meeting that the call under way is.
bool all_have_come(const Thread& t) noexcept;
/// For how long the data of the collective call under way may be on their way, ns, if all have come to it, or have left it again; else 0.
double data_move_for_ns(const Thread& t) noexcept;
/// Of a blocking collective call, in which nothing long has moved that others could go on with: who sleeps in a meeting is woken by
/// wake_meeting() alone.
bool spares_meetings(const Thread& t) noexcept;
/// Of a meeting: tick at which the last rank came to the latest one of these ranks; 0: not known, or the call is none.
std::uint64_t last_arrival(const Thread& t) noexcept;
/// This rank came last: wakes those who sleep.
void wake_meeting(Thread& t) noexcept;
/// Woken in a meeting, it wakes its part of the others.
void pass_wake_on(Thread& t) noexcept;
/// Wakes the owner of a slot, unless it has been said not to want that. True if it slept.
bool wake_slot(Thread& thread, NodeSlot& slot) noexcept;

/// Takes down the sign that says that we sleep. True if a peer woke us, which it may have done before we slept.
bool disarm(Thread& t) noexcept;

/// Pays for what others took to wake us: some of it may be told only after the next wait.
void pay_wakers() noexcept;

/// The call goes on after a sleep: what that held up meanwhile is paid at once, as the call may go on for long.
void settle_sleep(Thread& t) noexcept;

/// Tells whoever reads the file of a rank that is killed in this wait that it goes on, until abandon_wait().
void note_open(Thread& t, std::uint64_t now) noexcept;

/// What to do next in the call under way, at this tick.
predict::WaitPlan make_plan(Thread& t, std::uint64_t now) noexcept;

/// Does it, but for sleeping, which may begin after some more polls.
void follow_plan(Thread& t, std::uint64_t now) noexcept;
void do_sleep(Thread& t) noexcept;
/// Whether something that took `ticks` until `now` was interrupted, and by whom. Of the sleeper.
Interruption interrupted(const Thread& t, std::uint64_t ticks, std::uint64_t now) noexcept;

/// A wait begins, in which tests in vain may wake the sleeper; not soon where they have brought nothing in several waits in a row.
void allow_tests(Thread& t, std::uint64_t now) noexcept;
/// What woke it was a test in vain, and had brought something.
void tests_helped(Thread& t) noexcept;
/// A test in vain woke it. If again there was nothing, the next one may when the wait is longer by a part, which doubles from wait to
/// wait: programs that do nothing but test would keep all others of the node awake.
void defer_tests(Thread& t, std::uint64_t now) noexcept;

/// One thread of a process sleeps at a time: it has the rank's slot in the node page, and what is learnt of waits.
bool become_sleeper(Thread& t) noexcept;

/// Whether a rank of this node will wake us; else whether it comes over sockets is to be seen. The sleeper alone may ask.
void look_where_from(Thread& t) noexcept;

/// At the start of a wait: what became of the delay before the last wait. Returns how much of it cost nobody anything; if
/// that is clear, what was paid for it is paid back.
std::uint64_t judge_lateness() noexcept;

/// How late the rank noticed the end of its wait, and what the model learns from it.
void learn_wait(Thread& t, std::uint64_t exit) noexcept;

}  // namespace fallow::pmpi
