// Waits that sleep. The MPI library polls; when a blocking call has polled long enough without finding anything,
// slow_poll() decides whether to poll on, to yield the core, or to sleep until the time at which this call site
// usually has what it waits for, or until a rank of this node sends something.

#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/float_guard.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/pause.hpp"
#include "pmpi/scope.hpp"

namespace fallow::pmpi {
namespace {

using predict::WaitCosts;
using predict::WaitPlan;

constexpr std::uint32_t kPollsBetweenLooks = 8;     // about a microsecond of polling
constexpr std::uint32_t kPollsWhileArmed = 4;       // between telling that we sleep and sleeping, so that no wake is lost
constexpr double kBusyPolls = 4.0, kBusyNs = 300.0; // a poll this much longer than an idle one moved data
constexpr std::uint64_t kBusyPollsAre = 2;          // a poll this much longer than the shortest moved data, if nobody looked
constexpr std::uint32_t kForeseenAtALook = 32, kForeseenInPatience = 4;  // calls at most that are learnt then
constexpr std::uint32_t kAmplePatience = 512;         // polls in which some calls can be learnt without delay
constexpr double kGraceNs = 50e3;                   // polling after a wake by a peer or after data moved: more is on its way
constexpr double kLongestSleepNs = 10e6;            // a wake may get lost with a killed peer: look at least this often
constexpr double kFirstSliceNs = 50e3;              // first sleep of a wait in mode sleep
constexpr double kSliceOfSteps = 1.0 / 8;           // of the wait so far, a sleep in a call of many steps: each may add as much
constexpr double kSeenNs = 3e3;                     // an end this soon after a sleep came while we slept
constexpr double kSmoothing = 1.0 / 8;              // of the measured costs
constexpr double kLongWaitNs = 200e3;               // a wait as long as this clearly makes a delay good
constexpr double kHeldUp = 5.0;                     // a delay that lasts holds up others, and the rest of the node: in cores
constexpr std::uint32_t kKnownKind = 8;             // waits of a predicted kind before a plan goes by it

std::uint64_t key_of(const Thread& t) noexcept {
  return (reinterpret_cast<std::uint64_t>(t.caller) ^ (std::uint64_t{t.op} << 48)) * 0x9e3779b97f4a7c15u;
}

/// The predicted kind of wait once enough is known of it, else the call site.
std::uint64_t known_key(const Thread& t) noexcept {
  const std::uint64_t kind = t.wait.kind;
  return kind != 0 && runtime().waits.summary(kind).samples >= kKnownKind ? kind : key_of(t);
}

Nanoseconds to_nanoseconds(double ns) noexcept { return Nanoseconds(static_cast<std::int64_t>(ns)); }

/// World rank that the call waits for, where there is only one.
std::int32_t wanted_rank(const Thread& t) noexcept {
  const CommInfo* const info = t.last_info;
  if (runtime().threads.load(std::memory_order_relaxed) > 1) return -1;  // another thread may wait for another rank
  if (t.wanted_calls != 1 || t.peer < 0 || info == nullptr || info->handle != t.comm_handle) return -1;
  const auto peer = static_cast<std::size_t>(t.peer);
  return peer < info->world.size() ? info->world[peer] : -1;
}

/// Tells the node, and whoever reads the file of a killed rank. Short states are told to the node only, see scope.hpp.
void show(trace::RankState state, std::uint64_t tick) noexcept {
  runtime().node.own().doing(state, tick);
  runtime().writer.header().state = static_cast<std::uint32_t>(state);
}

void arm(Thread& t, std::uint64_t planned_end) noexcept {
  Runtime& rt = runtime();
  NodeSlot& own = rt.node.own();
  own.wanted.store(wanted_rank(t), std::memory_order_relaxed);
  own.sleep_word.store(static_cast<std::uint32_t>(SleepWord::asleep));
  rt.node.page().sleepers.fetch_add(1);
  t.wait.phase = WaitPhase::armed;
  t.wait.planned_end = planned_end;
  fallow_tls.polls_left = kPollsWhileArmed;
}

/// Takes the sign down. True if a peer woke us, which it may have done before we slept.
bool disarm(Thread& t) noexcept {
  Runtime& rt = runtime();
  const std::uint32_t word = rt.node.own().sleep_word.exchange(static_cast<std::uint32_t>(SleepWord::awake));
  rt.node.page().sleepers.fetch_sub(1);
  t.wait.phase = WaitPhase::spinning;
  return word == static_cast<std::uint32_t>(SleepWord::woken);
}

/// Sleeps until the tick, a wake by a peer, or a signal.
void sleep_until(NodeSlot& own, std::uint64_t now, std::uint64_t end) noexcept {
  const double ns = std::min(runtime().clock.to_ns(end - now), kLongestSleepNs);
  timespec timeout{};
  timeout.tv_nsec = static_cast<long>(std::max(ns, 1.0));
  syscall(SYS_futex, &own.sleep_word, FUTEX_WAIT, static_cast<std::uint32_t>(SleepWord::asleep), &timeout, nullptr, 0);
}

void smooth(double& value, double sample) noexcept { value += (sample - value) * kSmoothing; }

/// Whether something that took `ticks` until `now` was interrupted, and by whom.
Interruption interrupted(const Thread& t, std::uint64_t ticks, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const double late_ns = rt.clock.to_ns(ticks);
  if (late_ns <= Contention::kInterruptedNs) return Interruption::none;
  if (rt.contention_of != &t) rt.contention.begin(Contention::kUnknown);
  rt.contention_of = &t;
  return rt.contention.judge(late_ns, rt.clock.to_ns(now), queued_ns(), others_want_cores());
}

void do_sleep(Thread& t) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  NodeSlot& own = rt.node.own();
  const std::uint64_t before = rt.clock.now();
  if (before >= w.planned_end) {
    disarm(t);
    return;
  }
  show(trace::RankState::asleep, before);
  sleep_until(own, before, w.planned_end);
  const std::uint64_t after = rt.clock.now();
  show(trace::RankState::waiting, after);
  w.woken_by_peer = disarm(t);
  w.asleep += after - before;
  w.last_sleep = after - before;
  w.last_wake = after;
  ++w.sleeps;
  if (w.woken_by_peer) {
    const std::uint64_t woken = own.wake_tick.load(std::memory_order_relaxed);
    w.woken_tick = woken >= before && woken < after ? woken : after;
    ++t.counters->wakes_by_peer;
  }
  const std::uint64_t due = w.woken_by_peer ? w.woken_tick : std::min(w.planned_end, after);
  const Interruption cause = interrupted(t, after - due, after);
  w.others_had_core = cause == Interruption::others;
  if (cause == Interruption::none && after > due) {
    smooth(w.woken_by_peer ? rt.costs.peer_wake_ns : rt.costs.overshoot_ns, rt.clock.to_ns(after - due));
  }
  touch_header(false);
}

trace::OpKind kind_of(const Thread& t) noexcept { return static_cast<trace::OpKind>(runtime().writer.header().ops[t.op].kind); }

/// The call takes one message after the other among its ranks, and those inside it wake nobody. So each of them may
/// find the rest asleep, and what such calls last is no measure: all would sleep for as long as all have slept before.
bool has_many_steps(const Thread& t) noexcept {
  const trace::OpKind kind = kind_of(t);
  return kind == trace::OpKind::io || kind == trace::OpKind::other || kind == trace::OpKind::setup;
}

/// A plan that does not weigh spinning against sleeping: sleep at once, in slices that grow with the wait. Where the
/// end of the wait also ends the sleep, for as long as most waits at this place last.
WaitPlan plan_growing(const Thread& t, double waited_ns) noexcept {
  Runtime& rt = runtime();
  const bool steps = has_many_steps(t);
  double slice_ns = std::max(steps ? waited_ns * kSliceOfSteps : waited_ns, kFirstSliceNs);
  if (!steps && rt.whole_job_here && rt.options.wake) {
    slice_ns = std::max(slice_ns, static_cast<double>(rt.waits.summary(known_key(t)).p90.value) - waited_ns);
  }
  return {to_nanoseconds(std::min(slice_ns, kLongestSleepNs)), to_nanoseconds(0)};
}

WaitPlan make_plan(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const double waited_ns = rt.clock.to_ns(now - t.enter);
  if (rt.options.mode == WaitMode::sleep || rt.oversubscribed) return plan_growing(t, waited_ns);
  if (rt.contention.contended(rt.clock.to_ns(now))) {
    if (t.wait.held || !rt.holding.pays()) return plan_growing(t, waited_ns);
    t.wait.held = true;
    return {to_nanoseconds(0), to_nanoseconds(Holding::kHoldNs)};
  }
  rt.node.page().budget.earn(now);
  const WaitCosts costs{to_nanoseconds(rt.costs.sleep_cpu_ns), to_nanoseconds(rt.costs.overshoot_ns), rt.whole_job_here,
                        to_nanoseconds(rt.costs.peer_wake_ns + rt.costs.waking_ns)};
  const double price = std::max(rt.node.page().budget.price(), 1.0 + kHeldUp * rt.late.lasting_share());
  return rt.waits.plan(known_key(t), to_nanoseconds(waited_ns), costs, price);
}

void follow_plan(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const WaitPlan plan = make_plan(t, now);
  t.wait.spin_after = rt.clock.to_ticks(static_cast<double>(plan.spin.value));
  if (plan.sleep_for.value > 0) {
    if (rt.forecast.belongs_to(&t)) rt.forecast.wait_until(now + rt.clock.to_ticks(static_cast<double>(plan.sleep_for.value)));
    arm(t, now + rt.clock.to_ticks(static_cast<double>(plan.sleep_for.value)));
  } else {
    t.wait.phase = WaitPhase::spinning;
    t.wait.spin_until = now + std::max<std::uint64_t>(t.wait.spin_after, 1);
    fallow_tls.polls_left = kPollsBetweenLooks;
  }
}

/// True if the polls since the last look took so long that they must have moved data.
bool moved_data(WaitState& w, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const double per_poll = rt.clock.to_ns(now - w.last_poll) / w.polls_since;
  double& idle = rt.costs.idle_poll_ns;
  if (idle == 0 || per_poll < idle) idle = per_poll;
  idle += idle * 1e-4;  // forgets a lucky minimum slowly
  return per_poll > kBusyPolls * idle + kBusyNs;
}

/// At the start of a wait: what became of the delay before the last wait. Returns how much of it cost nobody anything; if
/// that is clear, what was paid for it is paid back.
std::uint64_t judge_lateness() noexcept {
  Runtime& rt = runtime();
  Node& node = rt.node;
  const Lateness::Delay d = rt.late.take();
  if (d.ticks == 0) return 0;
  const std::uint64_t good = others_stopped_waiting(node.page(), node.attached(), node.own(), d.from, d.to) ? 0 : d.good;
  rt.late.learn(d.ticks, good);
  if (good != 0 && d.clearly) node.page().budget.pay_back(d.paid);
  return good;
}

void first_look(Thread& t, std::uint64_t now) noexcept {
  t.look = Look::taken;
  show(trace::RankState::waiting, now);
  add_to_totals(t);
  t.wait.last_poll = now;
  if (runtime().threads.load(std::memory_order_relaxed) == 1) t.wait.absorbed = judge_lateness();
  if (Forecast& forecast = runtime().forecast; forecast.belongs_to(&t)) {
    foresee(t, kForeseenAtALook);
    t.wait.kind = forecast.enter({t.enter, t.caller, t.op});
  }
  if (runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0) wake_for_progress(t);
}

void poll_automatic(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const double grace = static_cast<double>(rt.clock.to_ticks(kGraceNs));
  if (w.phase == WaitPhase::spinning) interrupted(t, now - w.last_poll, now);
  if (w.phase == WaitPhase::armed) {
    do_sleep(t);
    now = rt.clock.now();
    const bool linger = w.woken_by_peer && !rt.oversubscribed;
    const auto pause = std::max<std::uint64_t>(w.spin_after, linger ? static_cast<std::uint64_t>(grace) : 1);
    w.spin_until = now + pause;
    fallow_tls.polls_left = kPollsBetweenLooks;
  } else if (w.phase == WaitPhase::none) {
    follow_plan(t, now);
  } else if (!rt.oversubscribed && moved_data(w, now)) {
    w.busy += now - w.last_poll;
    w.spin_until = std::max(w.spin_until, now + static_cast<std::uint64_t>(grace));
    fallow_tls.polls_left = kPollsBetweenLooks;
    if (rt.node.page().sleepers.load(std::memory_order_relaxed) != 0) wake_for_progress(t);
  } else if (now >= w.spin_until) {
    follow_plan(t, now);
  } else {
    rest_briefly();
    fallow_tls.polls_left = kPollsBetweenLooks;
  }
  w.last_poll = rt.clock.now();
  w.polls_since = fallow_tls.polls_left;
}

}  // namespace

void wake_for_progress(Thread& t) noexcept {
  const trace::OpKind kind = kind_of(t);
  if (kind == trace::OpKind::collective || kind == trace::OpKind::other || kind == trace::OpKind::io) {
    const CommInfo* const info = t.last_info;
    wake_partners_slow(t, info != nullptr && info->handle == t.comm_handle ? info : nullptr);
  } else {
    wake_recent_slow(t);
  }
}

namespace {

/// One thread of a process sleeps at a time: it has the rank's slot in the node page, and what is learnt of waits.
bool become_sleeper(Thread& t) noexcept {
  std::atomic<Thread*>& sleeper = runtime().sleeper;
  Thread* current = sleeper.load(std::memory_order_relaxed);
  return current == &t || (current == nullptr && sleeper.compare_exchange_strong(current, &t, std::memory_order_acquire));
}

/// Leaves the wait alone for a while if waits at this place are short. The totals can be brought up to date meanwhile. Not
/// where another rank may have to be woken, or another thread may want the core or a lock.
bool is_patient(Thread& t) noexcept {
  Runtime& rt = runtime();
  if (t.trace != nullptr || rt.node.page().sleepers.load(std::memory_order_relaxed) != 0) return false;
  if (rt.threads.load(std::memory_order_relaxed) > 1) return false;
  const std::uint32_t polls = t.patience.polls(key_of(t));
  if (polls == 0) return false;
  t.look = Look::patient;
  t.patient_polls = fallow_tls.polls_left = polls;
  add_to_totals(t);
  if (polls >= kAmplePatience && rt.forecast.belongs_to(&t)) foresee(t, kForeseenInPatience);
  return true;
}

/// Inside the library, where other threads want its lock; between the tests of a twin nothing is held.
bool holds_wanted_lock() noexcept {
  const Runtime& rt = runtime();
  return rt.threads_share_a_lock && rt.threads.load(std::memory_order_relaxed) > 1 && fallow_tls.waiting != nullptr;
}

}  // namespace

void slow_poll(Thread& t) noexcept {
  if (t.look == Look::none && is_patient(t)) return;
  const FloatGuard guard;
  Runtime& rt = runtime();
  if (t.trace != nullptr && t.trace->recorder.pending() != 0) rt.tracer.pump(*t.trace, kTraceBatch);
  const std::uint64_t now = rt.clock.now();
  if (t.look != Look::taken) first_look(t, now);
  const bool may_sleep = rt.sleep_allowed && !holds_wanted_lock() && become_sleeper(t);
  if (rt.options.mode == WaitMode::spin) {
    fallow_tls.polls_left = ~0u;
  } else if (__atomic_load_n(&fallow_hints.latency_critical, __ATOMIC_RELAXED) > 0) {
    fallow_tls.polls_left = kPollsBetweenLooks;
  } else if (rt.options.mode == WaitMode::yield || !may_sleep) {
    syscall(SYS_sched_yield);  // not by its name, which may be hooked
    fallow_tls.polls_left = 1;
  } else {
    poll_automatic(t, now);
  }
}

namespace {

/// What others took to wake us: some of it may be told only after the next wait.
void pay_wakers() noexcept {
  Runtime& rt = runtime();
  const std::uint64_t spent = rt.node.own().wake_spent.exchange(0, std::memory_order_relaxed);
  if (spent == 0) return;
  rt.node.page().budget.pay(spent);
  if (rt.clock.to_ns(spent) < Contention::kInterruptedNs) smooth(rt.costs.waking_ns, rt.clock.to_ns(spent));
}

/// Pays for the delay of a wait that lasted `wait` ticks. Whether it costs anybody anything can be told only where every
/// rank is seen: another node's may have waited.
void account_delay(Thread& t, std::uint64_t exit, std::uint64_t wait) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  if (w.others_had_core) {  // without sleep they would have had it as well
    w.delay = std::min(w.delay, rt.clock.to_ticks(std::max(rt.costs.peer_wake_ns, rt.costs.overshoot_ns)));
  }
  rt.late.answer(t.enter, wait, rt.clock.to_ticks(kLongWaitNs));
  std::uint64_t paid = 0;
  if (rt.options.mode == WaitMode::automatic) {
    pay_wakers();
    paid = rt.node.page().budget.pay(exit - w.delay, exit);
  }
  if (rt.whole_job_here && rt.threads.load(std::memory_order_relaxed) == 1) rt.late.open(exit, w.delay, paid);
}

/// Whether the wait of `ticks` was too short to be slept in, so that the next ones need not be looked at.
void learn_patience(Thread& t, std::uint64_t ticks) noexcept {
  const Runtime& rt = runtime();
  const double ns = rt.clock.to_ns(ticks), poll_ns = rt.costs.idle_poll_ns;
  if (t.wait.sleeps != 0 || t.wait.held || poll_ns <= 0 || ns > rt.costs.sleep_cpu_ns + rt.costs.overshoot_ns) {
    t.patience.long_wait(key_of(t));
    return;
  }
  t.idle_poll = rt.clock.to_ticks(poll_ns);
  t.patience.short_wait(key_of(t), static_cast<std::uint64_t>(ns / poll_ns));
}

/// How late the rank noticed the end of its wait, and what the model learns from it.
void learn(Thread& t, std::uint64_t exit) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const bool unseen = w.sleeps != 0 && rt.clock.to_ns(exit - w.last_wake) < kSeenNs + rt.costs.idle_poll_ns * kPollsBetweenLooks;
  std::uint64_t uncertain = 0, ended = exit - t.enter;
  if (w.held) rt.holding.tell(w.sleeps == 0);
  if (w.sleeps != 0 && w.woken_by_peer) {
    w.delay = w.last_wake - w.woken_tick;
    if (unseen) ended = w.woken_tick > t.enter ? w.woken_tick - t.enter : 0;
  } else if (unseen) {
    uncertain = w.last_sleep;
    w.delay = uncertain / 2;
  }
  if (rt.options.mode == WaitMode::automatic) {
    const Nanoseconds wait = to_nanoseconds(rt.clock.to_ns(ended)), unsure = to_nanoseconds(rt.clock.to_ns(uncertain));
    const std::uint64_t planned_by = known_key(t);
    Nanoseconds lasted = rt.waits.observe(key_of(t), wait, unsure);
    if (w.kind != 0) {
      const Nanoseconds of_kind = rt.waits.observe(w.kind, wait, unsure);
      if (planned_by == w.kind) lasted = of_kind;
    }
    if (uncertain != 0) w.delay = rt.clock.to_ticks(static_cast<double>(wait.value - lasted.value));
  }
  account_delay(t, exit, ended);
  if (rt.options.mode == WaitMode::automatic && !rt.oversubscribed) learn_patience(t, exit - t.enter);
}

/// Of a wait that was over before it was looked at. In integers: see Patience.
void settle_patiently(Thread& t, std::uint64_t exit, trace::Event& event) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t duration = exit - t.enter;
  const std::uint32_t left = std::min(fallow_tls.polls_left, t.patient_polls);
  const std::uint64_t polled = kBusyPollsAre * t.idle_poll * (rt.first_polls + t.patient_polls - left);
  const std::uint64_t wait = std::min(duration, polled);
  t.waits[t.recorded % kPendingEvents] = {wait, 0, 0, 0, 0};
  const auto us = static_cast<std::uint64_t>((static_cast<unsigned __int128>(wait) * rt.ns_per_tick_q32) >> 32) / 1000;
  event.awake_us = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(us, 1, ~std::uint32_t{0}));
  rt.node.own().wait_over(exit);
  t.look = Look::none;
}

std::uint32_t microseconds(std::uint64_t ticks) noexcept {
  const double us = runtime().clock.to_ns(ticks) * 1e-3;
  return us < 4294967295.0 ? static_cast<std::uint32_t>(us) : 4294967295u;
}

}  // namespace

void settle_wait(Thread& t, std::uint64_t exit, trace::Event& event) noexcept {
  if (t.look == Look::patient) return settle_patiently(t, exit, event);
  const FloatGuard guard;
  WaitState& w = t.wait;
  if (w.phase == WaitPhase::armed) disarm(t);
  if (runtime().sleeper.load(std::memory_order_relaxed) == &t) learn(t, exit);
  const std::uint64_t duration = exit - t.enter;
  const std::uint64_t wait = duration > w.busy ? duration - w.busy : 0;
  const std::uint64_t asleep = std::min(w.asleep, wait);
  t.waits[t.recorded % kPendingEvents] = {wait, asleep, w.delay, w.absorbed, w.sleeps};
  event.awake_us = std::max(microseconds(wait - asleep), 1u);
  event.asleep_us = microseconds(asleep);
  runtime().node.own().wait_over(exit - w.delay);
  abandon_wait(t);
}

void abandon_wait(Thread& t) noexcept {
  if (t.wait.phase == WaitPhase::armed) disarm(t);
  Runtime& rt = runtime();
  if (rt.sleeper.load(std::memory_order_relaxed) == &t) rt.sleeper.store(nullptr, std::memory_order_release);
  rt.writer.header().state = static_cast<std::uint32_t>(trace::RankState::computing);
  t.look = Look::none;
  t.wait = WaitState{};
}

}  // namespace fallow::pmpi
