// When a thread's calls are counted only, and what of them is to be known all the same: that a rank which has begun to sleep may need what
// they did, when something was found, whether loops of tests are waits or work, and that a call waits.
#include "pmpi/counting.hpp"

#include <array>
#include <string>

#include "base/errno_guard.hpp"
#include "pmpi/call_sample.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

constexpr double kSlowNs = 2e3;      // to record a call takes one to five hundredths of it
constexpr double kClosestNs = 50;    // no call comes sooner after another
constexpr double kOwnPathNs = 6;      // of each test that is counted as the one before, beside what is between tests of a loop
constexpr double kWorkNs = 20, kWorkOfWaitersNs = 60;  // between tests, beside what is in loops that wait; in programs whose loops are known to
constexpr double kNoWaitsNs = 50;    // where no loop rests: what gaps may differ by

/// Whether the program's calls of this function go to the MPI library at once, by either name that has been called yet: another tool
/// would have it that we see them twice.
bool goes_to_library(std::uint16_t op) noexcept try {
  void* own = g_own[op].load(std::memory_order_relaxed);
  if (own == nullptr) {
    const std::string name = std::string("P") + runtime().writer.header().ops[op].name;
    own = runtime().preload->find(name.c_str());
    g_own[op].store(own, std::memory_order_relaxed);
  }
  const auto is_own = [own](const void* next) { return next == nullptr || next == own; };
  return own != nullptr && is_own(g_next[2 * op].load(std::memory_order_relaxed)) && is_own(g_next[2 * op + 1].load(std::memory_order_relaxed));
} catch (...) {
  return false;  // no memory for its name
}

/// Ticks from one call to the next of those that may be counted only, on average; 0: none may. Where ranks share cores the tests that
/// are recorded have to be so close that each may give way when it is time to.
std::uint64_t longest_pace(const Thread& t) noexcept {
  Runtime& rt = runtime();
  if (t.trace != nullptr) return 0;
  const std::uint64_t slow = rt.count_limits.slow;
  const bool gives_way = rt.oversubscribed && rt.options.mode != WaitMode::spin;
  return gives_way ? std::min(slow, rt.node.page().giving_way.hold_ticks() / kPendingEvents) : slow;
}

/// Whether messages may be counted. Those that wait have to be seen to, by a hook that is called while they do, as far as there is anybody
/// to wait for; where ranks share cores a wait may have one poll only.
bool counts_messages(const Thread& t) noexcept {
  const Runtime& rt = runtime();
  return (t.polled || rt.world_size == 1) && rt.hooked && !rt.oversubscribed && !rt.twinned.load(std::memory_order_relaxed);
}

trace::OpKind kind_of(std::uint16_t op) noexcept { return static_cast<trace::OpKind>(runtime().writer.header().ops[op].kind); }

/// Of those that may be counted only: one that passes on messages, and may wait.
bool is_blocking_message(std::uint16_t op) noexcept {
  using trace::OpKind;
  const OpKind kind = kind_of(op);
  return kind == OpKind::send || kind == OpKind::recv || kind == OpKind::collective;
}

bool may_count(const Thread& t) noexcept { return longest_pace(t) > runtime().count_limits.closest; }

RecordedCall recorded(const Thread& t, std::uint64_t number) noexcept {
  const trace::Event& e = t.ring[number & t.ring_mask];
  RecordedCall call;
  call.enter = e.enter;
  call.exit = e.exit;
  const unsigned traits = runtime().op_traits[e.op];
  if ((traits & kOpCounted) == 0) return call;
  const trace::OpKind kind = kind_of(e.op);
  const bool waits = is_blocking_message(e.op) || kind == trace::OpKind::wait || kind == trace::OpKind::probe;
  if (waits && (e.bytes > kShortMessage || !counts_messages(t))) return call;
  call.place.caller = t.callers[number % kPendingEvents];
  call.place.op = e.op;
  call.place.comm = e.comm;
  call.place.tests = (traits & kOpTests) != 0;
  return call;
}

bool starts_long_message(const trace::Event& e) noexcept { return e.bytes > kShortMessage && kind_of(e.op) == trace::OpKind::start; }

void stop_counting(Thread& t) noexcept {
  t.counted.stop();
  this_thread().expected = nullptr;
  this_thread().direct = &t;
}

/// Loops of tests that may be waits to rest in, and end unseen.
void end_run(Thread& t, bool found) noexcept {
  const Runtime& rt = runtime();
  const std::uint64_t lasted = t.counted.end_run();
  if (t.counted.by_trust() && lasted >= rt.count_limits.long_enough) t.loop.ended_unseen(found);
}

/// Whether the thread has done something else between the calls that were counted.
bool has_worked(Thread& t) noexcept {
  const TestLoopLimits& limits = runtime().test_loops;
  const std::uint64_t odd = t.counted.unexplained();
  return t.counted.by_trust() ? t.loop.left_unseen(limits, t.counted.explained(), odd) : odd > limits.interrupt;
}

/// Those whom calls like the last ones at their places were about may have to be woken, should others have been met since.
void recall_peers(Thread& t) noexcept {
  for (const CallPlace& p : t.counted.places()) {
    if (p.last.returns_to != nullptr && p.last.peer >= 0) t.keep_recent(p.last.where, p.last.peer);
  }
}

/// The calls that were counted are added, as a call is to be recorded.
void settle_counted(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const bool any = t.counted.open() != 0;
  add_counted(t, now);
  if (rt.oversubscribed) {
    if (t.tested_at == 0) t.kept_since = 0;  // the one before these found something
    t.vain_tests = t.counted.run();
    t.tested_at = t.vain_tests != 0 ? now : 0;
  }
  if (any && rt.watches_tests && has_worked(t)) end_run(t, false);
  t.loop.break_off();
  recall_peers(t);
  if (somebody_sleeps()) t.owes_wake = true;
  if (rt.forecast.belongs_to(&t)) {
    rt.forecast.pass_over();
    t.foreseen = t.recorded;
  }
}

__attribute__((noinline)) Thread* admit_after_counted(Thread& t, std::uint16_t op) noexcept {
  Runtime& rt = runtime();
  if ((rt.op_traits[op] & kOpTests) == 0) end_run(t, false);
  if (t.counted.open() != 0) settle_counted(t, rt.clock.now());
  consider_counting(t);
  if (!t.counted.on() || !may_count(t) || (t.counted.by_trust() && !t.loop.works())) stop_counting(t);
  return &t;
}

}  // namespace

void allow_counting() noexcept {
  Runtime& rt = runtime();
  const auto ticks = [&rt](double ns) { return rt.clock.to_ticks(ns); };
  const std::uint64_t between = rt.test_loops.between;
  const std::uint64_t nothing = rt.watches_tests ? between + ticks(kOwnPathNs) : ticks(kNoWaitsNs);
  rt.count_limits = {ticks(kSlowNs), ticks(kClosestNs), nothing, rt.test_loops.long_enough, ticks(kWorkNs), ticks(kWorkOfWaitersNs)};
}

void consider_counting(Thread& t) noexcept {
  const Runtime& rt = runtime();
  constexpr std::uint64_t kCalls = kPendingEvents;
  if (t.recorded - t.considered < kCalls || !may_count(t) || this_thread().thread != &t) return;
  t.considered = t.recorded;
  const bool all_are_recorded = somebody_sleeps();
  if (t.counted.on()) {
    if (t.counted.pays(kCalls) && !all_are_recorded) return;
    stop_counting(t);
  }
  if (all_are_recorded) return;
  const std::uint64_t work = t.loop.waits_unseen() ? rt.count_limits.work : rt.count_limits.work_of_waiters;
  CallSample sample(rt.reading.load(std::memory_order_relaxed), rt.watches_tests ? rt.test_loops.longest_gap() + work : 0);
  for (std::uint64_t n = t.recorded - kCalls; n != t.recorded; ++n) {
    if (starts_long_message(t.ring[n & t.ring_mask]) || !sample.add(recorded(t, n))) return;
  }
  if (sample.is_close() && !t.loop.works()) return t.counted.was_wait();
  if (sample.pace() > longest_pace(t)) return;
  std::array<CallPlace, CountedCalls::kPlaces> storage;
  const std::span<const CallPlace> places = sample.places(storage);
  const ErrnoGuard kept;
  for (const CallPlace& place : places) {
    if (!goes_to_library(place.op)) return;
  }
  this_thread().expected = nullptr;
  t.counted.begin(places, sample.gap(), sample.is_close());
  if (t.counted.on()) this_thread().direct = nullptr;
}

namespace {

const void* place_of(const void* caller) noexcept { return this_thread().caller != nullptr ? this_thread().caller : caller; }

/// Null: the call is counted only.
inline Thread* count(Thread& t, const void* frame, const void* caller, std::uint16_t op) noexcept {
  t.counted.take();
  this_thread().depth = kCountedDepth;
  this_thread().counted = 1;
  this_thread().frame = const_cast<void*>(frame);
  this_thread().return_address = const_cast<void*>(caller);
  this_thread().caller = nullptr;
  t.op = op;
  return nullptr;
}

__attribute__((noinline)) Thread* admit_out_of_turn(const void* frame, const void* caller, std::uint16_t op) noexcept {
  Thread& t = *static_cast<Thread*>(this_thread().thread);
  if (somebody_sleeps() || !t.counted.takes(op, place_of(caller))) return admit_after_counted(t, op);
  return count(t, frame, caller, op);
}

}  // namespace

Thread* admit_counting(const void* frame, const void* caller, std::uint16_t op) noexcept {
  this_thread().expected = nullptr;
  Thread& t = *static_cast<Thread*>(this_thread().thread);
  if (somebody_sleeps() || !t.counted.takes_next(op, place_of(caller))) [[unlikely]] return admit_out_of_turn(frame, caller, op);
  return count(t, frame, caller, op);
}

void record_after_all(Thread& t) noexcept {
  Runtime& rt = runtime();
  if (this_thread().depth == kRepeatedDepth) take_up_repeat(t);
  const std::uint64_t now = rt.clock.now();
  t.counted.untake();
  settle_counted(t, now);
  this_thread().depth = 1;
  t.enter = now;
  t.caller = t.counted.now().caller;
  rt.node.own().doing(trace::RankState::in_mpi, now);
  if (!somebody_sleeps()) return;
  if (kind_of(t.op) == trace::OpKind::collective) wake_partners_slow(t, rt.comms.known(t.comm_handle));
  wake_recent_slow(t);  // a rank that slept before a call like the last may be who this one waits for
}

void take_up_repeat(Thread& t) noexcept {
  const CallPlace& place = *static_cast<CallPlace*>(this_thread().turn);
  const bool is_message = is_blocking_message(place.op);
  t.counted.take();
  this_thread().return_address = place.last.returns_to;
  t.op = place.op;
  t.comm_handle = is_message ? place.last.where : 0;
  t.peer = kind_of(place.op) == trace::OpKind::collective ? kSeveralPeers : is_message ? place.last.peer : -1;
  t.wanted_calls = place.last.wanted_calls;
  t.part = 0;
  t.repeated = {place.last.bytes, place.last.received, place.last.peer, place.comm};
  if (place.last.peer >= 0) t.keep_recent(place.last.where, place.last.peer);
  this_thread().depth = kCountedDepth;
}

void end_odd_repeat(CountedKind kind, bool as_usual, int tag) noexcept {
  if (this_thread().thread == nullptr) return;  // this is the child of a callback that has forked
  Thread& t = *static_cast<Thread*>(this_thread().thread);
  if (this_thread().depth == kRepeatedDepth) take_up_repeat(t);
  const RepeatedDetails& d = t.repeated;
  const bool counted = this_thread().depth == kCountedDepth;
  if (passes_messages(kind)) {
    end_message(t, as_usual, as_usual ? CallDetails{d.bytes, d.peer >= 0 ? d.peer : -1, tag, d.comm, d.received} : CallDetails{});
  } else if (!counted) {
    end_recorded_after_all(t);
  } else {
    this_thread().depth = 0;
    const bool is_test = kind == CountedKind::test || kind == CountedKind::probe;
    if (is_test && !as_usual) found_in_counted(t);
    if (!is_test && as_usual) {
      t.counted.now().bytes += d.bytes;
      t.counted.now().received += d.received;
    }
    if (wakes_after(kind) && somebody_sleeps()) wake_those_met(t);
  }
  expect_next(t);
}

void end_message(Thread& t, bool well, const CallDetails& details) noexcept {
  if (!well && this_thread().depth == kCountedDepth) record_after_all(t);  // its communicator may be none
  if (this_thread().depth != kCountedDepth) return end_recorded_after_all(t, details);
  if (details.comm != t.counted.now().comm) moved_to_comm(t, details.comm);
  t.counted.now().bytes += details.bytes;
  t.counted.now().received += details.received;
  if (somebody_sleeps()) wake_those_met(t);
  this_thread().depth = 0;
}

void wake_those_met(Thread& t) noexcept {
  recall_peers(t);
  if (kind_of(t.op) == trace::OpKind::collective) wake_after_collective(t);
  wake_recent_slow(t);
}

void end_recorded_after_all(Thread& t, const CallDetails& details) noexcept {
  end_unreturned(t, details);
  if (somebody_sleeps()) wake_recent_slow(t);
}

void found_in_counted(Thread& t) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t lasted = t.counted.run_lasted();
  if (lasted >= rt.test_loops.noticed) rt.node.own().wait_over(rt.clock.now());
  end_run(t, true);
  t.counted.found();
  t.kept_since = 0;
}

void moved_to_comm(Thread& t, std::uint16_t comm) noexcept {
  t.counted.untake();
  add_counted(t, runtime().clock.now());
  t.counted.move(comm);
}

}  // namespace fallow::pmpi
