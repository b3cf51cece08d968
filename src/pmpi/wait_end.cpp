// The end of a wait: what it cost, and what is learnt from it.

#include <algorithm>

#include "base/float_guard.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kBusyPollsAre = 2;          // a poll this much longer than the shortest moved data, if nobody looked
constexpr double kEndNs = 1e3;                       // from the last poll to the end of the call
constexpr double kLongWaitNs = 200e3;               // a wait as long as this clearly makes a delay good

/// Pays for the delay of a wait that lasted `wait` ticks. Whether it costs anybody anything can be told only where every
/// rank is seen: another node's may have waited.
void account_delay(Thread& t, std::uint64_t exit, std::uint64_t wait) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  w.delay -= w.held_up;
  if (w.others_had_core) {  // without sleep they would have had it as well
    w.delay = std::min(w.delay, rt.clock.to_ticks(std::max(rt.costs.peer_wake_ns, rt.costs.overshoot_ns)));
  }
  rt.late.answer(t.enter, wait, rt.clock.to_ticks(kLongWaitNs));
  std::uint64_t paid = 0;
  if (rt.options.mode == WaitMode::automatic) {
    pay_wakers();
    const double lasting = rt.whole_job_here ? 1.0 : rt.toll.lasting_share(key_of(t));
    const auto lasts = static_cast<std::uint64_t>(lasting * static_cast<double>(w.delay));
    paid = rt.node.page().budget.pay(exit - lasts, exit);
    w.absorbed += w.delay - lasts;
  }
  if (rt.whole_job_here && rt.threads.load(std::memory_order_relaxed) == 1) rt.late.open(w.sleeps != 0 ? w.last_wake : exit, w.delay, paid);
  w.delay += w.held_up;
}

/// Whether a wait of this length is one to sleep in.
bool pays_to_sleep(double ns) noexcept { return ns > runtime().costs.sleep_cpu_ns + runtime().costs.overshoot_ns; }

/// Whether the wait of `ticks` was too short to be slept in, so that the next ones need not be looked at.
void learn_patience(Thread& t, std::uint64_t ticks) noexcept {
  const Runtime& rt = runtime();
  const double ns = rt.clock.to_ns(ticks), poll_ns = rt.costs.idle_poll_ns;
  if (t.wait.sleeps != 0 || t.wait.held || poll_ns <= 0 || pays_to_sleep(ns)) {
    t.patience.long_wait(key_of(t));
    return;
  }
  t.idle_poll = rt.clock.to_ticks(poll_ns);
  t.patience.short_wait(key_of(t), static_cast<std::uint64_t>(ns / poll_ns));
}

/// Waits are looked at after some microseconds, however long a poll takes: a rank must not wait much longer unnoticed,
/// as others take their delays for made good if nobody seems to have waited for them.
void set_first_polls() noexcept {
  Runtime& rt = runtime();
  if (rt.oversubscribed || rt.costs.idle_poll_ns <= 0) return;
  const double polls = std::clamp(kFirstLookNs / rt.costs.idle_poll_ns, double{kFirstPollsShared}, double{kFirstPolls});
  rt.first_polls.store(static_cast<std::uint32_t>(polls), std::memory_order_relaxed);
}

/// What is known of the end of a wait, in ticks.
struct End {
  std::uint64_t tick;   ///< at which what was waited for was there: a long message is moved by the poll that finds it
  bool unseen;          ///< it came during the last sleep
  bool moved;           ///< data moved after the last look
};

End find_end(const Thread& t, std::uint64_t exit) noexcept {
  const Runtime& rt = runtime();
  WaitState w = t.wait;
  const double idle_ns = rt.costs.idle_poll_ns * w.polls_since;
  const bool moved = rt.clock.to_ns(exit - w.last_poll) > kBusyPolls * idle_ns + kEndNs;  // in the polls that nobody looked at
  end_lull(w, moved ? w.last_poll : exit, exit);
  const bool steps = has_many_steps(t);
  const std::uint64_t tick = steps ? exit : w.quiet_until;
  // Of many steps the first may have come during the sleep: a rank of this node would have woken us for it.
  if (came_during_sleep(w, steps && !rt.whole_job_here ? w.moved_at : tick)) return {w.last_wake, true, moved};
  return {std::max(tick, w.last_wake), false, moved};
}

}  // namespace

bool disarm(Thread& t) noexcept {
  Runtime& rt = runtime();
  const std::uint32_t word = rt.node.own().sleep_word.exchange(static_cast<std::uint32_t>(SleepWord::awake));
  rt.node.page().sleepers.fetch_sub(1);
  t.wait.phase = WaitPhase::spinning;
  const bool woken = word == static_cast<std::uint32_t>(SleepWord::woken);
  if (woken) pass_wake_on(t);
  return woken;
}

void learn_wait(Thread& t, std::uint64_t exit) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const End end = find_end(t, exit);
  if (end.moved && !rt.oversubscribed && !w.yields) w.busy += exit - w.last_poll;
  if (!has_many_steps(t) && (w.sleeps != 0 || pays_to_sleep(rt.clock.to_ns(end.tick - t.enter)))) {
    rt.aftermath.learn(key_of(t), rt.clock.to_ns(exit - end.tick), w.sleeps != 0);
  }
  const bool long_transfer = rt.clock.to_ns(exit - end.tick) > kLullNs;
  std::uint64_t uncertain = 0, ended = (end.unseen || long_transfer ? end.tick : exit) - t.enter;
  if (w.held) rt.holding.tell(w.sleeps == 0);
  if (w.sleeps != 0 && w.woken_by_peer && w.woken_by_test) tests_helped(t);
  if (w.watched) rt.sockets.came(rt.sockets.received() != w.received);
  if (end.unseen && !w.woken_by_peer && !w.from_here) rt.sockets.came(w.woken_by_data);
  if (w.sleeps != 0 && w.woken_by_peer) {
    w.delay = w.last_wake - w.woken_tick;
    if (end.unseen) ended = w.woken_tick > t.enter ? w.woken_tick - t.enter : 0;
  } else if (end.unseen && w.woken_by_data) {
    w.delay = unseen_delay(w);
    ended = w.last_wake - w.delay > t.enter ? w.last_wake - w.delay - t.enter : 0;
  } else if (end.unseen) {
    uncertain = w.last_sleep;
    w.delay = uncertain / 2;
  }
  if (rt.options.mode == WaitMode::automatic && !(rt.oversubscribed && has_many_steps(t))) {
    const Nanoseconds wait = to_nanoseconds(rt.clock.to_ns(ended)), unsure = to_nanoseconds(rt.clock.to_ns(uncertain));
    const std::uint64_t planned_by = known_key(t);
    Nanoseconds lasted = rt.waits.observe(key_of(t), wait, unsure);
    if (w.kind != 0) {
      const Nanoseconds of_kind = rt.waits.observe(w.kind, wait, unsure);
      if (planned_by == w.kind) lasted = of_kind;
    }
    if (uncertain != 0) w.delay = rt.clock.to_ticks(static_cast<double>(wait.value - lasted.value));
  }
  if (!rt.whole_job_here) rt.toll.wait_over(key_of(t), end.tick, rt.ns_per_tick, w.sleeps != 0, rt.clock.to_ns(w.delay));
  w.delay += w.held_up;
  if (w.sleeps != 0) w.delay += rt.clock.to_ticks(after_sleep_ns(t));
  account_delay(t, exit, ended);
  set_first_polls();
  if (rt.options.mode == WaitMode::automatic && !rt.oversubscribed) learn_patience(t, exit - t.enter);
}

namespace {

/// Of a wait that was over before it was looked at. In integers: see Patience.
void settle_patiently(Thread& t, std::uint64_t exit, trace::Event& event) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t duration = exit - t.enter;
  const std::uint32_t left = std::min(fallow_tls.polls_left, t.patient_polls);
  const std::uint64_t polled = kBusyPollsAre * t.idle_poll * (rt.first_polls.load(std::memory_order_relaxed) + t.patient_polls - left);
  const std::uint64_t wait = std::min(duration, polled);
  note_wait(t, {wait, 0, 0, 0, 0}, event);
  rt.node.own().wait_over(exit);
  t.look = Look::none;
}

}  // namespace

void pay_wakers() noexcept {
  Runtime& rt = runtime();
  const std::uint64_t spent = rt.node.own().wake_spent.exchange(0, std::memory_order_relaxed);
  if (spent == 0) return;
  const std::uint64_t from = rt.node.own().wake_tick.load(std::memory_order_relaxed);
  rt.node.page().budget.pay(from, from + spent);
  if (rt.clock.to_ns(spent) < Contention::kInterruptedNs) smooth(rt.costs.waking_ns, rt.clock.to_ns(spent));
}

void settle_wait(Thread& t, std::uint64_t exit, trace::Event& event) noexcept {
  if (t.look == Look::patient) return settle_patiently(t, exit, event);
  const FloatGuard guard;
  WaitState& w = t.wait;
  if (w.phase == WaitPhase::armed) disarm(t);
  if (runtime().sleeper.load(std::memory_order_relaxed) == &t) learn_wait(t, exit);
  const std::uint64_t duration = exit - t.enter;
  const std::uint64_t wait = duration > w.busy ? duration - w.busy : 0;
  const std::uint64_t asleep = std::min(w.asleep, wait);
  note_wait(t, {wait, asleep, w.delay, w.absorbed, w.sleeps}, event);
  runtime().node.own().wait_over(exit - w.delay);
  abandon_wait(t);
}

void note_open(Thread& t, std::uint64_t now) noexcept {
  trace::OpenCall& open = t.counters->open;
  const CommInfo* const comm = runtime().comms.known(t.comm_handle);
  const bool one = t.wanted_calls == 1 && t.peer >= 0;
  open.seen = now;
  open.asleep = 0;
  open.address = reinterpret_cast<std::uint64_t>(t.caller);
  open.peer = one ? t.peer : -1;
  open.op = t.op;
  open.comm = comm != nullptr ? static_cast<std::uint16_t>(std::min<std::uint32_t>(comm->id, 0xffff)) : 0;
  std::atomic_ref(open.enter).store(t.enter, std::memory_order_release);
}

void abandon_wait(Thread& t) noexcept {
  if (t.wait.phase == WaitPhase::armed) disarm(t);
  Runtime& rt = runtime();
  if (rt.sleeper.load(std::memory_order_relaxed) == &t) rt.sleeper.store(nullptr, std::memory_order_release);
  rt.writer.header().state = static_cast<std::uint32_t>(trace::RankState::computing);
  std::atomic_ref(t.counters->open.enter).store(0, std::memory_order_release);
  t.look = Look::none;
  t.wait = WaitState{};
}

}  // namespace fallow::pmpi
