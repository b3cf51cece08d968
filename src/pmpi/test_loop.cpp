// Programs that wait in a loop of tests. Where ranks share cores and the library does not give way, such a rank keeps those that
// it waits for from working until the kernel takes its core, milliseconds later.

#include <sys/syscall.h>
#include <unistd.h>

#include "pmpi/scope.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kVainTests = 16;    // one after the other until a loop is taken to do nothing else
constexpr std::uint64_t kNothingElseNs = 1000;   // between two tests

}  // namespace

void tested_in_vain(Thread& t, std::uint64_t enter) noexcept {
  const Runtime& rt = runtime();
  const bool at_once = t.tested_at != 0 && to_ns(enter - t.tested_at, rt.ns_per_tick_q32) < kNothingElseNs;
  t.vain_tests = at_once ? t.vain_tests + 1 : 0;
  const bool calm = rt.options.mode != WaitMode::spin && __atomic_load_n(&fallow_hints.latency_critical, __ATOMIC_RELAXED) <= 0;
  if (t.vain_tests >= kVainTests && calm && t.gave_way == t.gave_way_before) syscall(SYS_sched_yield);
  t.gave_way_before = t.gave_way;
  t.tested_at = rt.clock.now();
}

void wake_after_test_slow(Thread& t, bool found, std::uint64_t ticks) noexcept {
  t.tests_softly = !found && t.idle_tests.is_idle(t.op, to_ns(ticks, runtime().ns_per_tick_q32));
  wake_recent_slow(t);
  t.tests_softly = false;
}

}  // namespace fallow::pmpi
