// Programs that wait in a loop of tests. Where ranks share cores and the library does not give way, such a rank keeps those that
// it waits for from working until the kernel takes its core, milliseconds later. Where it does give way, those are held up that
// test after each small piece of work; see giving_way.hpp.

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "pmpi/counting.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kVainTests = 16;    // one after the other until a loop is taken to do nothing else
constexpr std::uint64_t kNothingElseNs = 1000;   // between two tests
constexpr std::uint64_t kTestsEvery = 4;         // part of the wait so far from one test in vain that wakes it to the next
constexpr std::uint64_t kLongTestsEvery = 128;   // likewise from one that lasted long: what is late by so much is within most budgets
constexpr double kLongTestsNs = 200e3;           // or this, if it is less; to be woken in vain takes a tenth of it
constexpr std::uint32_t kVainWaits = 7;          // in a row: each doubles these; then tests are taken to do nothing for this rank
constexpr double kUselessTestsNs = 1.6e6;        // of a wait in which such tests do not wake it

bool is_at_once(const Thread& t, std::uint64_t enter) noexcept {
  return t.tested_at != 0 && to_ns(enter - t.tested_at, runtime().ns_per_tick_q32) < kNothingElseNs;
}

std::uint64_t calls_of_all(Runtime& rt) noexcept {
  std::uint64_t calls = 0;
  for (std::uint32_t i = 0; i < rt.node.attached(); ++i) calls += rt.node.page().slots[i].calls.load(std::memory_order_relaxed);
  return calls;
}

__attribute__((noinline)) void step_trials(Runtime& rt, std::uint64_t now) noexcept {
  const std::uint64_t ticks_per_us = (std::uint64_t{1000} << 32) / rt.ns_per_tick_q32;
  rt.node.page().giving_way.step(now, ticks_per_us, rt.node.attached(), [&rt] { return calls_of_all(rt); });
}

}  // namespace

bool keeps_core(Thread& t) noexcept {
  Runtime& rt = runtime();
  if (this_thread().depth == kRepeatedDepth) take_up_repeat(t);
  const std::uint64_t hold = rt.node.page().giving_way.hold_ticks();
  if (hold == 0 || this_thread().depth == 0 || (rt.op_traits[t.op] & kOpTests) == 0) return false;
  const bool counted = this_thread().depth == kCountedDepth;  // they come at once, see consider_counting()
  if ((counted ? t.counted.run() : t.vain_tests) < kVainTests || !(counted || is_at_once(t, t.enter))) return false;
  const std::uint64_t now = rt.clock.now();
  if (counted && t.kept_since == 0) t.kept_since = now;
  return now - t.kept_since < hold;
}

std::uint64_t tested_in_vain(Thread& t, std::uint64_t enter, std::uint64_t exit) noexcept {
  Runtime& rt = runtime();
  ++t.all_vain_tests;
  t.vain_tests = is_at_once(t, enter) ? t.vain_tests + 1 : 0;
  const bool library_does = t.gave_way != t.gave_way_before;
  t.gave_way_before = t.gave_way;
  t.tested_at = exit;
  if (t.vain_tests < kVainTests || rt.options.mode == WaitMode::spin) return exit;
  GivingWay& giving_way = rt.node.page().giving_way;
  if (giving_way.is_due(exit)) [[unlikely]] step_trials(rt, exit);
  if (t.vain_tests == kVainTests || t.kept_since == 0) t.kept_since = exit;
  const bool calm = __atomic_load_n(&fallow_hints.latency_critical, __ATOMIC_RELAXED) <= 0;
  if (library_does || !calm || exit - t.kept_since < giving_way.hold_ticks()) return exit;
  syscall(SYS_sched_yield);
  return t.tested_at = t.kept_since = rt.clock.now();
}

void tests_helped(Thread& t) noexcept {
  t.woken_in_vain = false;
  t.vain_waits = 0;
}

void allow_tests(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  NodeSlot& own = rt.node.own();
  if (std::exchange(t.woken_in_vain, false) && t.vain_waits < kVainWaits) ++t.vain_waits;
  const bool useless = t.vain_waits == kVainWaits;
  own.tests_from.store(useless ? now + rt.clock.to_ticks(kUselessTestsNs) : 0, std::memory_order_relaxed);
  own.long_tests_from.store(useless ? now + rt.clock.to_ticks(kGraceNs) : 0, std::memory_order_relaxed);
}

void defer_tests(Thread& t, std::uint64_t now) noexcept {
  if (t.wait.moved_at != 0 || t.wait.found_at_once) {
    tests_helped(t);
    return allow_tests(t, now);
  }
  NodeSlot& own = runtime().node.own();
  const std::uint64_t waited = now - t.enter, most = runtime().clock.to_ticks(kLongTestsNs);
  own.tests_from.store(now + (waited / kTestsEvery << t.vain_waits), std::memory_order_relaxed);
  own.long_tests_from.store(now + (std::min(waited / kLongTestsEvery, most) << t.vain_waits), std::memory_order_relaxed);
  t.woken_in_vain = true;
}

void wake_after_test_slow(Thread& t, bool found, std::uint64_t ticks) noexcept {
  const bool owed = std::exchange(t.owes_wake, false), lasted = std::exchange(t.tested_long, false) || owed;
  t.tests_in_vain = !found;
  t.tests_softly = !found && (ticks == 0 || t.idle_tests.is_idle(t.op, to_ns(ticks, runtime().ns_per_tick_q32))) && !lasted;
  wake_recent_slow(t);
  t.tests_in_vain = t.tests_softly = false;
}

}  // namespace fallow::pmpi
