// Rests in loops of tests that do nothing else: where a test has found nothing, and is known to be one of a wait, the thread sleeps
// before the program tests again. One sleep at most in each test, so the program sees to whatever else it tests for after every
// wake-up. Between telling that it sleeps and sleeping the test is made again a few times, so that no wake is lost.

#include <algorithm>
#include <utility>

#include "base/cancel_guard.hpp"
#include "base/errno_guard.hpp"
#include "base/float_guard.hpp"
#include "pmpi/interpreting.hpp"
#include "pmpi/own_state.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kReadings = 2;     // of the clock, that may come to what is between tests: one is in it
constexpr double kOwnGapNs = 5e3;          // adding to the totals, writing the trace
constexpr double kSmallNs = 200, kInterruptNs = 60e3, kHeldUpNs = 250e3, kSlackNs = 2e3;
constexpr double kRememberedNs = 50e6;
constexpr double kLongEnoughNs = 30e3, kAfterShortNs = 50e3;  // what is learnt of shorter ones costs more than they are worth
constexpr std::uint32_t kTestsWhileArmed = 4;
constexpr double kMovedNs = 1e3;           // a test that lasts longer has done something; a shorter one may have been held up
constexpr std::uint64_t kMeasureAgainNs = 2'000'000;  // to measure takes a five-hundredth of it
constexpr double kUnseenNs = 100e6;        // programs that leave loops as a rule do so more often
constexpr double kPlanAgainNs = 4e3;       // what is found meanwhile is not seen
constexpr double kDoubtNs = 10e3;          // until the next rest, if nobody can be waiting for what it did

/// Ticks that a reading of the clock takes. Half as long again while another thread has the core's other half, or at another frequency.
std::uint64_t reading(const TickClock& clock) noexcept {
  constexpr int kTimes = 64, kTries = 3;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int k = 0; k < kTries; ++k) {  // some are interrupted
    const std::uint64_t before = clock.now();
    for (int i = 1; i < kTimes; ++i) clock.now();
    shortest = std::min(shortest, clock.now() - before);
  }
  return shortest / kTimes;
}

/// What the program may take between two tests of a loop that waits, ns, as fast as this core is now.
double between_tests(Runtime& rt) noexcept {
  const char* program = rt.writer.header().program;
  const double slowness = test_gap_is_of_interpreter(rt.options, program) ? slowness_of_interpreting(rt.clock) : 1;
  return test_gap_of(rt.options, program, slowness);
}

void measure_gap(Runtime& rt, double between_ns) noexcept {
  const std::uint64_t ticks = reading(rt.clock);
  rt.reading.store(ticks, std::memory_order_relaxed);
  rt.test_loops.measured(rt.clock.to_ticks(between_ns) + kReadings * ticks);
}

/// Takes up the wait that the loop is, as a call that blocks would be in.
void take_up(Thread& t, std::uint64_t now) noexcept {
  if (t.loop.takes_up()) t.loop_wait = {};
  t.wait = t.loop_wait;
  t.look = Look::taken;
  t.comm_handle = 0;
  t.peer = -1;
  t.wanted_calls = 0;
  if (t.wait.phase != WaitPhase::none) return;
  allow_tests(t, now);
  t.wait.last_poll = now;
  t.wait.absorbed = judge_lateness();
  look_where_from(t);
}

/// Until the next test.
void put_aside(Thread& t) noexcept {
  t.loop_wait = t.wait;
  abandon_wait(t);
}

bool may_rest_now(Thread& t) noexcept {
  Runtime& rt = runtime();
  const bool calm = __atomic_load_n(&fallow_hints.latency_critical, __ATOMIC_RELAXED) <= 0;
  return calm && rt.threads.load(std::memory_order_relaxed) == 1 && become_sleeper(t);
}

/// Tells that it sleeps, if it is to: then the test is to be made again.
bool begin_rest(Thread& t) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t now = rt.clock.now();
  if (!t.loop.may_rest()) {
    t.loop.set_due(TestLoop::kNever);
    return false;
  }
  if (!may_rest_now(t)) {
    t.loop.set_due(now + rt.test_loops.long_enough);
    return false;
  }
  interrupted(t, now - std::min(now, t.loop.due()), now);
  take_up(t, now);
  const std::uint64_t entered = t.enter;
  t.enter = t.loop.since();  // the wait's
  follow_plan(t, now);
  t.enter = entered;
  if (t.wait.phase == WaitPhase::armed) {
    t.wait.armed_polls = kTestsWhileArmed;
    t.wait.last_poll = rt.clock.now();
    return true;
  }
  t.loop.set_due(std::max(t.wait.spin_until, now + rt.clock.to_ticks(kPlanAgainNs)));
  put_aside(t);
  return false;
}

/// Whether a test that lasted so long did nothing. The first one after a sleep is slow anyway, and that after planning one.
bool is_idle(Thread& t, bool armed, std::uint64_t ns) noexcept {
  const bool after_sleep = !armed && std::exchange(t.loop_wait.fresh, 0u) != 0;
  const bool after_plan = armed && t.wait.armed_polls == kTestsWhileArmed;
  const double slow_ns = after_sleep ? kColdPollNs : after_plan ? kMovedNs : 0.0;
  return static_cast<double>(ns) < slow_ns || t.idle_tests.is_idle_beside_ours(t.op, ns);
}

/// The test that has just been made did something, as long as it lasted, or one before it did: whoever may wait for that is to be woken
/// before this thread rests. The tests that follow tell whether more comes.
void put_off(Thread& t, std::uint64_t now, std::uint64_t lasted_ns) noexcept {
  if (t.wait.phase == WaitPhase::armed) {
    disarm(t);
    put_aside(t);
  }
  t.tested_long = true;
  const bool doubtful = static_cast<double>(lasted_ns) < kMovedNs && !somebody_sleeps();
  const double grace_ns = !t.idle_tests.knows_beside_ours(t.op) ? 0.0 : doubtful ? kDoubtNs : kGraceNs;
  t.loop.set_due(now + runtime().clock.to_ticks(grace_ns));
}

void sleep_now(Thread& t) noexcept {
  Runtime& rt = runtime();
  WaitState& w = t.wait;
  const std::uint32_t sleeps = w.sleeps;
  do_sleep(t);
  const std::uint64_t now = rt.clock.now();
  if (w.sleeps != sleeps) t.loop_rest = {0, w.last_sleep, 0, 0, 1};
  t.loop.rested(t.loop_rest.asleep);
  const bool more_comes = (w.woken_by_peer && !w.woken_by_test) || w.woken_by_data;
  const std::uint64_t spin = w.woken_by_test ? 0 : w.spin_after;  // what a test brought is there already
  t.loop.set_due(now + std::max<std::uint64_t>(spin, more_comes ? rt.clock.to_ticks(kGraceNs) : 1));
  w.phase = WaitPhase::spinning;
  put_aside(t);
}

/// Others' delays are made good only as far as this rank's waits are seen: those that end with a find are. A loop was left.
void tell_unseen(const Thread& t) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t until = t.loop.waits_unseen() ? t.enter + rt.test_loops.unseen : 0;
  rt.node.own().unseen_until.store(until, std::memory_order_relaxed);
}

}  // namespace

void watch_test_loops() noexcept {
  Runtime& rt = runtime();
  const bool rests = rt.sleep_allowed && !rt.oversubscribed;
  rt.watches_tests = rests;
  if (!rests) {
    rt.reading.store(reading(rt.clock), std::memory_order_relaxed);
    return;
  }
  const auto ticks = [&rt](double ns) { return rt.clock.to_ticks(ns); };
  const double between = between_tests(rt);
  rt.test_loops = {0, ticks(between), ticks(between + kOwnGapNs), ticks(between + kInterruptNs), ticks(kSmallNs), ticks(kHeldUpNs), ticks(kSlackNs),
                   ticks(kRememberedNs), ticks(kLongEnoughNs), ticks(kAfterShortNs), ticks(kFirstLookNs), ticks(kUnseenNs)};
  measure_gap(rt, between);
}

bool rest_in_test(Thread& t) noexcept {
  const ErrnoGuard kept;
  const FloatGuard guard;
  const CancelGuard whole;
  const OwnState state(t, whole.saved());
  t.loop_rest = {};
  if (!t.loop.goes_on(runtime().test_loops, t.enter, t.totalled)) return false;  // the loop is over: that this is due says nothing
  const bool armed = t.wait.phase == WaitPhase::armed;
  const std::uint64_t now = runtime().clock.now(), since = armed ? t.wait.last_poll : t.enter;
  t.owes_wake = t.owes_wake && somebody_sleeps();  // else who was to be woken has woken by itself
  const std::uint64_t ns = to_ns(now - since, runtime().ns_per_tick_q32);
  if (!is_idle(t, armed, ns) || t.owes_wake) {
    put_off(t, now, ns);
    return false;
  }
  if (!armed) return begin_rest(t);
  t.wait.last_poll = now;
  if (--t.wait.armed_polls != 0) return true;
  sleep_now(t);
  return false;
}

void test_loop_left(Thread& t) noexcept {
  Runtime& rt = runtime();
  tell_unseen(t);
  if (to_ns(t.enter - t.measured_gap, rt.ns_per_tick_q32) < kMeasureAgainNs) return;
  const FloatGuard guard;
  measure_gap(rt, between_tests(rt));  // it may have been the clock that took longer, or the core
  t.measured_gap = t.enter;
}

void test_wait_over(Thread& t, std::uint64_t exit) noexcept {
  const FloatGuard guard;
  Runtime& rt = runtime();
  t.loop_rest = {};
  const std::uint64_t since = t.loop.since();
  if (t.loop.found_after(rt.test_loops, t.enter, exit, t.totalled, t.caller) && (t.look == Look::taken || may_rest_now(t))) {
    if (t.look == Look::none) take_up(t, t.enter);
    if (t.wait.phase == WaitPhase::armed) disarm(t);
    const std::uint64_t entered = t.enter;
    t.wait.last_poll = entered;
    t.enter = since;
    learn_wait(t, exit);
    t.enter = entered;
    t.loop_rest = {0, 0, t.wait.delay, t.wait.absorbed, 0};
  }
  rt.node.own().wait_over(exit - t.wait.delay);
  if (t.look == Look::taken) abandon_wait(t);
  t.loop_wait = {};
}

bool settle_rest(Thread& t, std::uint64_t enter, std::uint64_t exit, trace::Event& event) noexcept {
  PendingWait& rest = t.loop_rest;
  if (rest.sleeps == 0 && rest.delay == 0 && rest.absorbed == 0) return false;
  rest.wait = rest.sleeps != 0 ? exit - enter : 0;
  rest.asleep = std::min(rest.asleep, rest.wait);
  note_wait(t, rest, event);
  rest = {};
  return true;
}

}  // namespace fallow::pmpi
