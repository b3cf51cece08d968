// The end of a wait: what it cost, and what is learnt from it.

#include <algorithm>

#include "base/float_guard.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wait_outcome.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

constexpr double kLongWaitNs = 200e3;  // a wait as long as this clearly makes a delay good

/// Pays for the delay of a wait that lasted `wait` ticks, which is of `late` ticks before what comes after a sleep. Whether it costs
/// anybody anything can be told only where every rank is seen: another node's may have waited.
void account_delay(Thread& t, std::uint64_t exit, std::uint64_t wait, std::uint64_t late) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const std::uint64_t after = w.sleeps != 0 ? rt.clock.to_ticks(after_sleep_ns(t)) : 0;
  const double lasting = rt.whole_job_here ? 1.0 : rt.toll.lasting_share(key_of(t));
  const Bill bill = bill_of(late, after, w.others_had_core, lasting, rt.costs, rt.clock.rate());
  rt.late.answer(t.enter, wait, rt.clock.to_ticks(kLongWaitNs));
  std::uint64_t paid = 0;
  if (rt.options.mode == WaitMode::automatic) {
    paid = rt.node.page().budget.pay(exit - bill.lasts, exit);
    pay_wakers();  // within that, mostly
    w.absorbed += bill.delay - bill.lasts;
  }
  const bool judged = rt.whole_job_here && rt.threads.load(std::memory_order_relaxed) == 1;
  if (judged) rt.late.open(w.sleeps != 0 ? w.last_wake : exit, bill.delay, paid);
  w.delay = bill.delay + w.held_up;
}

void learn_patience(Thread& t, std::uint64_t ticks) noexcept {
  const Runtime& rt = runtime();
  const double ns = rt.clock.to_ns(ticks), poll_ns = rt.costs.idle_poll_ns;
  if (!was_short(t.wait, ns, rt.costs)) {
    t.patience.long_wait(key_of(t));
    return;
  }
  t.idle_poll = rt.clock.to_ticks(poll_ns);
  t.patience.short_wait(key_of(t), static_cast<std::uint64_t>(ns / poll_ns));
}

void set_first_polls() noexcept {
  Runtime& rt = runtime();
  if (rt.oversubscribed || rt.costs.idle_poll_ns <= 0) return;
  rt.first_polls.store(polls_until_first_look(rt.costs.idle_poll_ns), std::memory_order_relaxed);
}

/// Tells the model of waits. Returns the delay: where the end of the wait was not seen, what the model says.
std::uint64_t observe(const Thread& t, const WaitLength& length) noexcept {
  Runtime& rt = runtime();
  const Nanoseconds wait = to_nanoseconds(rt.clock.to_ns(length.lasted)), unsure = to_nanoseconds(rt.clock.to_ns(length.uncertain));
  const std::uint64_t planned_by = known_key(t);
  Nanoseconds lasted = rt.waits.observe(key_of(t), wait, unsure);
  if (t.wait.kind != 0) {
    const Nanoseconds of_kind = rt.waits.observe(t.wait.kind, wait, unsure);
    if (planned_by == t.wait.kind) lasted = of_kind;
  }
  return length.uncertain != 0 ? rt.clock.to_ticks(static_cast<double>(wait.value - lasted.value)) : length.delay;
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
  const WaitingCall call{t.enter, exit, has_many_steps(t)};
  const WaitEnd end = find_end(w, call, rt.whole_job_here, rt.costs, rt.clock.rate());
  if (end.moved && !rt.oversubscribed && !w.yields) w.busy += exit - w.last_poll;
  if (tells_aftermath(w, end, call, rt.costs, rt.clock.rate())) {
    rt.aftermath.learn(key_of(t), rt.clock.to_ns(exit - end.tick), w.sleeps != 0);
  }
  if (w.held) rt.holding.tell(w.sleeps == 0);
  if (w.sleeps != 0 && w.woken_by_peer && w.woken_by_test) tests_helped(t);
  if (w.watched) rt.sockets.came(rt.sockets.received() != w.received);
  if (end.unseen && !w.woken_by_peer && !w.from_here) rt.sockets.came(w.woken_by_data);
  const bool end_wakes = comes_from_here(t) && rt.wakers.holds();
  if (end.unseen && comes_from_here(t)) rt.wakers.tell(w.woken_by_peer);
  const WaitLength length = until_last_came(length_of(w, end, call, end_wakes, rt.costs, rt.clock.rate()), w, call, last_arrival(t));
  const std::uint64_t late = tells_model(surroundings(), call.many_steps) ? observe(t, length) : length.delay;
  if (!rt.whole_job_here) rt.toll.wait_over(key_of(t), end.tick, rt.ns_per_tick, w.sleeps != 0, rt.clock.to_ns(late));
  account_delay(t, exit, length.lasted, late);
  set_first_polls();
  if (rt.options.mode == WaitMode::automatic && !rt.oversubscribed) learn_patience(t, exit - t.enter);
}

namespace {

/// Of a wait that was over before it was looked at.
void settle_patiently(Thread& t, std::uint64_t exit, trace::Event& event) noexcept {
  Runtime& rt = runtime();
  const std::uint32_t left = std::min(this_thread().polls_left, t.patient_polls);
  const std::uint64_t polls = rt.first_polls.load(std::memory_order_relaxed) + t.patient_polls - left;
  const std::uint64_t wait = unlooked_wait(exit - t.enter, polls, t.idle_poll);
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

void settle_sleep(Thread& t) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  if (w.settled) return;
  w.settled = true;
  const WaitingCall call{t.enter, w.last_wake, has_many_steps(t)};
  const std::uint64_t late = held_up_by_sleep(w, call, rt.whole_job_here, rt.costs, rt.clock.rate());
  if (late == 0) return;
  const std::uint64_t after = rt.clock.to_ticks(after_sleep_ns(t));
  w.held_up += late + after;
  if (rt.options.mode != WaitMode::automatic) return;
  rt.node.page().budget.pay(w.last_wake - late, w.last_wake + after);
  pay_wakers();
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
  open.comm = comm != nullptr ? comm->event_id() : 0;
  std::atomic_ref(open.enter).store(t.enter, std::memory_order_release);
}

void abandon_wait(Thread& t) noexcept {
  if (t.wait.phase == WaitPhase::armed) disarm(t);
  Runtime& rt = runtime();
  if (rt.sleeper.load(std::memory_order_relaxed) == &t) rt.sleeper.store(nullptr, std::memory_order_release);
  rt.writer.tell(trace::RankState::computing);
  std::atomic_ref(t.counters->open.enter).store(0, std::memory_order_release);
  t.look = Look::none;
  t.wait = WaitState{};
}

}  // namespace fallow::pmpi
