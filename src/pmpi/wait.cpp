// Waits that sleep. The MPI library polls; when a blocking call has polled long enough without finding anything,
// slow_poll() decides whether to poll on, to yield the core, or to sleep until the time at which this call site
// usually has what it waits for, or until a rank of this node sends something.

#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/cancel_guard.hpp"
#include "base/errno_guard.hpp"
#include "base/float_guard.hpp"
#include "pmpi/counting.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/idle_poll.hpp"
#include "pmpi/own_state.hpp"
#include "pmpi/pause.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/sleep_plan.hpp"
#include "pmpi/wait_outcome.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kPollsWhileArmed = 4;       // between telling that we sleep and sleeping, so that no wake is lost
constexpr std::uint32_t kForeseenAtALook = 32, kForeseenInPatience = 4;  // calls at most that are learnt then
constexpr std::uint32_t kFreshPolls = 2;            // what the first finds is seen when the second begins, or before
constexpr double kLongerGap = 1 + 1.0 / 32, kShorterGap = 1 - 1.0 / 8, kLeastGapNs = 10;  // a fifth of the gaps are shorter
constexpr std::uint32_t kAmplePatience = 512;         // polls in which some calls can be learnt without delay

/// World rank that the call waits for, where there is only one.
std::int32_t wanted_rank(const Thread& t) noexcept {
  if (runtime().threads.load(std::memory_order_relaxed) > 1) return -1;  // another thread may wait for another rank
  if (t.wanted_calls != 1 || t.peer < 0) return -1;
  const CommInfo* const info = runtime().comms.known(t.comm_handle);
  const auto peer = static_cast<std::size_t>(t.peer);
  return info != nullptr && peer < info->world.size() ? info->world[peer] : -1;
}

/// Tells the node, and whoever reads the file of a killed rank. Short states are told to the node only, see scope.hpp.
void show(trace::RankState state, std::uint64_t tick) noexcept {
  runtime().node.own().doing(state, tick);
  runtime().writer.tell(state);
}

/// Whether a rank of this node that wakes us can do so while we sleep on sockets.
bool can_sleep_on_sockets(Runtime& rt) noexcept {
  return rt.sockets.usable() && (rt.node.attached() == 1 || rt.node.bell() >= 0);
}

void arm(Thread& t, std::uint64_t planned_end) noexcept {
  Runtime& rt = runtime();
  NodeSlot& own = rt.node.own();
  own.wanted.store(wanted_rank(t), std::memory_order_relaxed);
  own.to_serve.store(0, std::memory_order_relaxed);
  own.meeting.store(t.wait.all_came == 0 ? meeting_of(t) : 0, std::memory_order_relaxed);
  own.pass_on.store(0, std::memory_order_relaxed);
  if (t.wait.woken_by_test) defer_tests(t, runtime().clock.now());
  own.by_bell.store(can_sleep_on_sockets(rt) ? 1 : 0, std::memory_order_relaxed);
  own.sleep_word.store(static_cast<std::uint32_t>(SleepWord::asleep));
  rt.node.page().sleepers.fetch_add(1);
  t.wait.phase = WaitPhase::armed;
  t.wait.planned_end = planned_end;
  t.wait.armed_polls = rt.oversubscribed ? kPollsWhileArmed : 1;
  this_thread().polls_left = kPollsWhileArmed / t.wait.armed_polls;
}

void put_back_timers(Thread& t) noexcept {
  if (t.timer_slack > 1) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(t.timer_slack), 0, 0, 0);
  t.timer_slack = -1;
}

/// While it lives, timers of this thread end in time: the default slack of 50 us would be added to every sleep. Only
/// then: sleeps of the program's own, and its children, which inherit it, keep theirs.
class ExactTimers {
 public:
  explicit ExactTimers(Thread& thread) noexcept : thread_(thread) {
    const int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    if (before <= 1) return;
    thread_.timer_slack = before;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
  }
  ~ExactTimers() { put_back_timers(thread_); }
  ExactTimers(const ExactTimers&) = delete;
  ExactTimers& operator=(const ExactTimers&) = delete;

 private:
  Thread& thread_;
};

/// Sleeps until the tick, a wake by a peer, data, or a signal.
Sockets::End sleep_until(Thread& t, std::uint64_t now, std::uint64_t end) noexcept {
  Runtime& rt = runtime();
  const double ns = std::min(rt.clock.to_ns(end - now), kLongestSleepNs);
  const ExactTimers exact(t);
  NodeSlot& own = rt.node.own();
  if (own.by_bell.load(std::memory_order_relaxed) != 0) {
    const Sockets::End ended = rt.sockets.sleep(ns, rt.node.bell());
    if (ended == Sockets::End::bell) rt.node.hush();
    return ended;
  }
  timespec timeout{};
  timeout.tv_nsec = static_cast<long>(std::max(ns, 1.0));
  syscall(SYS_futex, &own.sleep_word, FUTEX_WAIT, static_cast<std::uint32_t>(SleepWord::asleep), &timeout, nullptr, 0);
  return Sockets::End::time;
}

/// After a wake by a peer. True if it took a while.
bool came_back(Thread& t) noexcept {
  Runtime& rt = runtime();
  const WaitState& w = t.wait;
  if (rt.oversubscribed || w.last_wake <= w.woken_tick) return false;
  const double late_ns = rt.clock.to_ns(w.last_wake - w.woken_tick);
  return rt.processor.come_back(sched_getcpu(), rt.node.page(), rt.node.attached(), rt.node.own(), late_ns, w.last_wake, rt.clock.rate());
}

}  // namespace

Interruption interrupted(const Thread& t, std::uint64_t ticks, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const double late_ns = rt.clock.to_ns(ticks);
  if (late_ns <= Contention::kInterruptedNs) return Interruption::none;
  if (rt.contention_of != &t) rt.contention.begin(Contention::kUnknown);
  rt.contention_of = &t;
  const double now_ns = rt.clock.to_ns(now);
  const Interruption cause = rt.contention.judge(late_ns, now_ns, {queued_ns(), rt.quota.throttled_ns()}, crowd_now());
  const double rivals_ns = rt.contention.rivals_until_ns() - now_ns;
  if (rivals_ns > 0) rt.node.page().rivals_until.store(now + rt.clock.to_ticks(rivals_ns), std::memory_order_relaxed);
  return cause;
}

void do_sleep(Thread& t) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  NodeSlot& own = rt.node.own();
  const std::uint64_t before = rt.clock.now();
  // Who came last may have looked for sleepers just before this one told that it is one.
  if (w.stirred == 0 && own.meeting.load(std::memory_order_relaxed) != 0 && all_have_come(t)) w.all_came = before;
  if (before >= w.planned_end || w.all_came == before) {
    disarm(t);
    return;
  }
  settle_sleep(t);
  if (!rt.oversubscribed) rt.processor.leave(rt.node.page(), rt.node.attached(), own, sched_getcpu());
  show(trace::RankState::asleep, before);
  const Sockets::End ended = sleep_until(t, before, w.planned_end);
  rt.processor.widen();
  if (ended == Sockets::End::ready) {
    show(trace::RankState::waiting, before);
    disarm(t);
    found_data_ready(w);
    return;
  }
  const std::uint64_t after = rt.clock.now();
  show(trace::RankState::waiting, after);
  w.woken_by_peer = disarm(t);
  w.woken_by_data = !w.woken_by_peer && ended == Sockets::End::data;
  w.asleep += after - before;
  t.counters->open.asleep = w.asleep;
  w.last_sleep = after - before;
  w.last_wake = w.awake_since = after;
  w.moved_at = 0;
  w.fresh = rt.oversubscribed ? kFreshPolls : 1;
  w.found_before = t.found;
  w.found_at_once = w.woken_by_test = false;
  w.settled = false;
  w.served = own.to_serve.exchange(0, std::memory_order_relaxed) != 0;
  ++w.sleeps;
  if (w.woken_by_peer) {
    const std::uint64_t woken = own.wake_tick.load(std::memory_order_relaxed);
    w.woken_by_test = own.by_test.load(std::memory_order_relaxed) != 0;
    w.woken_tick = tick_of_wake(woken, before, after);
    if (has_many_steps(t)) w.stirred = after;
    ++t.counters->wakes_by_peer;
    if (came_back(t)) w.last_wake = w.awake_since = rt.clock.now();
  }
  const std::uint64_t due = due_end(w);
  const Interruption cause = interrupted(t, after - due, after);
  w.others_had_core = cause == Interruption::others;
  if (cause == Interruption::none && after > due) {
    smooth(w.woken_by_peer ? rt.costs.peer_wake_ns : rt.costs.overshoot_ns, rt.clock.to_ns(after - due));
  }
  touch_header(false);
}

void follow_plan(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const predict::WaitPlan plan = make_plan(t, now);
  t.wait.spin_after = rt.clock.to_ticks(static_cast<double>(plan.spin.value));
  if (plan.sleep_for.value > 0) {
    const std::uint64_t end = now + rt.clock.to_ticks(static_cast<double>(plan.sleep_for.value));
    if (rt.node.page().link_asked.load(std::memory_order_relaxed) != 0 && rt.forecast.belongs_to(&t)) rt.forecast.wait_until(end);
    arm(t, end);
  } else {
    t.wait.phase = WaitPhase::spinning;
    t.wait.spin_until = now + std::max<std::uint64_t>(t.wait.spin_after, 1);
    this_thread().polls_left = rt.oversubscribed ? 1 : polls_until_look(t);
  }
}

namespace {

/// True if the polls since the last look took so long that they must have moved data.
bool moved_data(WaitState& w, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const double per_poll = rt.clock.to_ns(now - w.last_poll) / w.polls_since;
  double& idle = rt.costs.idle_poll_ns;
  if (idle == 0 || per_poll < idle) idle = per_poll;
  idle += idle * 1e-4;  // forgets a lucky minimum slowly
  return per_poll > kBusyPolls * idle + kBusyNs;
}

/// Times that the kernel gave this thread's core to others while it could have run, also when it gave way itself.
std::int64_t times_core_lost() noexcept {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/// True if the library did more after the last poll than to poll again: it had found something, and took or sent data. Who shares
/// a core cannot tell by the length of polls, in which others have the core.
bool library_went_on(const Thread& t) noexcept {
  Runtime& rt = runtime();
  if (t.wait.polls_since != 1 || t.poll_began <= t.wait.last_poll) return false;
  const double gap = rt.clock.to_ns(t.poll_began - t.wait.last_poll);
  double& usual = rt.costs.usual_gap_ns;
  if (usual == 0) usual = gap;
  const bool long_one = gap > kBusyPolls * usual + kBusyNs;
  // Where each poll tries in vain to send something, all soon count as usual.
  usual = std::max(usual * (gap > usual ? kLongerGap : kShorterGap), kLeastGapNs);
  return long_one && times_core_lost() == t.core_lost;
}

/// The library went on, where ranks share cores.
void stir(WaitState& w, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  if (w.flows_since == 0 || rt.clock.to_ns(now - w.moved_last) > flow_patience_ns(w, rt.clock.rate())) w.flows_since = now;
  w.moved_last = w.stirred = now;
}

/// One of the first polls after a sleep is over.
void look_after_sleep(Thread& t, std::uint64_t now, bool went_on) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  if (w.awake_since == w.last_wake) w.awake_since = now;
  --w.fresh;
  const bool long_one = !rt.oversubscribed && rt.clock.to_ns(now - w.last_poll) > kColdPollNs;
  w.found_at_once = w.found_at_once || went_on || long_one || t.found != w.found_before;
  if (long_one) w.busy += now - w.last_poll;
  this_thread().polls_left = rt.oversubscribed ? 1 : polls_until_look(t);
  if (w.found_at_once && rt.oversubscribed) stir(w, now);
}

}  // namespace

std::uint64_t judge_lateness() noexcept {
  Runtime& rt = runtime();
  Node& node = rt.node;
  const Lateness::Delay d = rt.late.take();
  if (d.ticks == 0) return 0;
  const Lateness::Verdict verdict = Lateness::verdict(d, others_stopped_waiting(node.page(), node.attached(), node.own(), d.from, d.to));
  rt.late.learn(d.ticks, verdict.good);
  if (verdict.back != 0) node.page().budget.pay_back(verdict.back);
  return verdict.good;
}

void look_where_from(Thread& t) noexcept {
  Runtime& rt = runtime();
  if (rt.whole_job_here || !rt.options.wake) return;
  const bool all_wake = rt.node.page().mute.load(std::memory_order_relaxed) == 0;
  t.wait.from_here = all_wake && rt.node.slot_of(wanted_rank(t)) != nullptr;
  if (t.wait.from_here || !rt.sockets.wants_evidence()) return;
  t.wait.watched = true;
  t.wait.received = rt.sockets.received();
}

namespace {

void first_look(Thread& t, std::uint64_t now) noexcept {
  t.wait.worked = !runtime().oversubscribed && t.look == Look::none && has_many_steps(t) && runtime().clock.to_ns(now - t.enter) > kColdPollNs;
  t.look = Look::taken;
  show(trace::RankState::waiting, now);
  add_to_totals(t);
  consider_counting(t);
  t.wait.last_poll = now;
  allow_tests(t, now);
  note_open(t, now);
  if (runtime().threads.load(std::memory_order_relaxed) == 1) t.wait.absorbed = judge_lateness();
  if (Forecast& forecast = runtime().forecast; forecast.belongs_to(&t)) {
    foresee(t, kForeseenAtALook);
    t.wait.kind = forecast.enter({t.enter, t.caller, t.op});
  }
  if (somebody_sleeps()) wake_for_progress(t);
}

/// Unless the library has done so since the last time, and will do after each poll.
void yield_core(Thread& t) noexcept {
  const bool library_does = t.gave_way != t.gave_way_before;
  t.gave_way_before = t.gave_way;
  if (!library_does) syscall(SYS_sched_yield);  // not by its name, which may be hooked
  const bool one_by_one = !library_does || (runtime().options.mode != WaitMode::yield && somebody_sleeps());
  this_thread().polls_left = one_by_one ? 1 : kPollsBetweenLooks;
}

/// The last polls moved data: more is to come, and who waits for what we took or sent goes on.
void go_on(Thread& t, std::uint64_t now) noexcept {
  WaitState& w = t.wait;
  w.busy += now - w.last_poll;
  end_lull(w, w.last_poll, now, runtime().clock.rate());
  linger(t, now);
  this_thread().polls_left = polls_until_look(t);
  if (somebody_sleeps()) wake_for_progress(t);
}

void poll_automatic(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const double grace = static_cast<double>(rt.clock.to_ticks(kGraceNs));
  const bool went_on = rt.oversubscribed && library_went_on(t);
  if (went_on) stir(w, now);
  if (w.phase == WaitPhase::spinning) interrupted(t, now - w.last_poll, now);
  if (w.phase == WaitPhase::armed && went_on) {
    disarm(t);
    follow_plan(t, now);
  } else if (w.phase == WaitPhase::armed && !rt.oversubscribed && moved_data(w, now)) {
    disarm(t);
    go_on(t, now);
  } else if (w.phase == WaitPhase::armed && --w.armed_polls != 0) {
    this_thread().polls_left = 1;
  } else if (w.phase == WaitPhase::armed) {
    do_sleep(t);
    now = rt.clock.now();
    const bool more_comes = !rt.oversubscribed && ((w.woken_by_peer && !w.woken_by_test) || w.woken_by_data || (!rt.whole_job_here && has_many_steps(t)));
    const std::uint64_t spin = w.woken_by_test && !rt.oversubscribed ? 0 : w.spin_after;  // what a test brought is there already
    const auto pause = std::max<std::uint64_t>(spin, more_comes ? static_cast<std::uint64_t>(grace) : 1);
    w.spin_until = now + pause;
    this_thread().polls_left = w.fresh != 0 ? 1 : polls_until_look(t);
  } else if (w.fresh != 0) {
    look_after_sleep(t, now, went_on);
    if (!rt.oversubscribed && w.found_at_once) linger(t, now);
    if (!rt.oversubscribed && (w.found_at_once || w.served) && somebody_sleeps()) wake_for_progress(t);
  } else if (w.phase == WaitPhase::none) {
    look_where_from(t);
    if (w.worked) {
      w.phase = WaitPhase::spinning;
      linger(t, now);
      this_thread().polls_left = polls_until_look(t);
    } else {
      follow_plan(t, now);
    }
  } else if (!rt.oversubscribed && moved_data(w, now)) {
    go_on(t, now);
  } else if (now >= w.spin_until) {
    follow_plan(t, now);
  } else if (w.yields) {
    yield_core(t);
  } else {
    rest_briefly();
    this_thread().polls_left = polls_until_look(t);
  }
  if (!rt.oversubscribed && w.phase == WaitPhase::spinning && needs_target_unseen(t) && somebody_sleeps()) wake_for_progress(t);
  // Who shares a core does not look at how long polls take: whom the next step is for is woken here.
  if (w.stirred == now && somebody_sleeps()) wake_for_progress(t);
  if (rt.oversubscribed && this_thread().polls_left == 1 && (w.sleeps != 0 || somebody_sleeps())) t.core_lost = times_core_lost();
  w.last_poll = rt.clock.now();
  w.polls_since = this_thread().polls_left;
}

}  // namespace

bool become_sleeper(Thread& t) noexcept {
  std::atomic<Thread*>& sleeper = runtime().sleeper;
  Thread* current = sleeper.load(std::memory_order_relaxed);
  return current == &t || (current == nullptr && sleeper.compare_exchange_strong(current, &t, std::memory_order_acquire));
}

namespace {

/// Leaves the wait alone for a while if waits at this place are short. The totals can be brought up to date meanwhile. Not
/// where another rank may have to be woken, or another thread may want the core or a lock.
bool is_patient(Thread& t) noexcept {
  Runtime& rt = runtime();
  if (t.trace != nullptr || somebody_sleeps()) return false;
  if (rt.threads.load(std::memory_order_relaxed) > 1) return false;
  const std::uint32_t polls = t.patience.polls(key_of(t));
  if (polls == 0) return false;
  t.look = Look::patient;
  t.patient_polls = this_thread().polls_left = polls;
  add_to_totals(t);
  consider_counting(t);
  if (polls >= kAmplePatience && rt.forecast.belongs_to(&t)) foresee(t, kForeseenInPatience);
  return true;
}

/// Inside the library, where other threads want its lock; between the tests of a twin nothing is held.
bool holds_wanted_lock() noexcept {
  return runtime().threads_share_a_lock && runtime().threads.load(std::memory_order_relaxed) > 1 && this_thread().waiting != nullptr;
}

}  // namespace

void put_back_state(Thread& t) noexcept {
  if (t.cancel_state < 0) return;
  put_back_timers(t);
  if (runtime().sleeper.load(std::memory_order_relaxed) == &t) runtime().processor.widen();
  pthread_setcancelstate(t.cancel_state, nullptr);
  t.cancel_state = -1;
}

void slow_poll(Thread& t) noexcept {
  const ErrnoGuard kept;
  this_thread().polls_left &= ~kCatchingUp;
  t.polled = true;
  if (this_thread().depth >= kCountedDepth) record_after_all(t);
  if (t.look == Look::none && is_patient(t)) return;
  const FloatGuard guard;
  const CancelGuard whole;
  const OwnState state(t, whole.saved());
  Runtime& rt = runtime();
  if (t.trace != nullptr && t.trace->recorder.pending() != 0) rt.tracer.pump(*t.trace, kTraceBatch);
  const std::uint64_t now = rt.clock.now();
  if (t.look != Look::taken) first_look(t, now);
  t.counters->open.seen = now;
  const bool may_sleep = rt.sleep_allowed && !holds_wanted_lock() && become_sleeper(t);
  if (rt.options.mode == WaitMode::spin) {
    this_thread().polls_left = ~kCatchingUp;
  } else if (__atomic_load_n(&fallow_hints.latency_critical, __ATOMIC_RELAXED) > 0) {
    this_thread().polls_left = kPollsBetweenLooks;
  } else if (rt.options.mode == WaitMode::yield || !may_sleep) {
    yield_core(t);
  } else {
    poll_automatic(t, now);
  }
}

}  // namespace fallow::pmpi
