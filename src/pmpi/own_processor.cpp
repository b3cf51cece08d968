#include "pmpi/own_processor.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/signal_guard.hpp"

namespace fallow::pmpi {
namespace {

/// Of the calling thread; the program may have changed it. By system calls: the names may be a tool's.
bool may_run_on(cpu_set_t& set) noexcept {
  CPU_ZERO(&set);
  return syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0;
}

bool run_on(const cpu_set_t& set) noexcept { return syscall(SYS_sched_setaffinity, 0, sizeof set, &set) == 0; }

/// Processors of the ranks other than `own`, where they were last seen.
cpu_set_t taken_by_others(const NodePage& page, std::uint32_t ranks, const NodeSlot& own) noexcept {
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const int processor = page.slots[i].processor.load(std::memory_order_relaxed) - 1;
    if (&page.slots[i] != &own && processor >= 0 && processor < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(processor), &taken);
  }
  return taken;
}

cpu_set_t without(const cpu_set_t& allowed, const cpu_set_t& taken) noexcept {
  cpu_set_t both, left;
  CPU_AND(&both, &allowed, &taken);
  CPU_XOR(&left, &allowed, &both);
  return left;
}

}  // namespace

int free_processor(const cpu_set_t& allowed, const cpu_set_t& taken, int home) noexcept {
  int found = -1;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    const auto bit = static_cast<std::size_t>(i);
    if (!CPU_ISSET(bit, &allowed) || CPU_ISSET(bit, &taken)) continue;
    if (found < 0 || std::abs(i - home) < std::abs(found - home)) found = i;
  }
  return found;
}

/// Of `allowed_`.
bool OwnProcessor::narrow(const cpu_set_t& only) noexcept {
  const SignalGuard whole;  // a handler might fork
  only_ = only;
  narrowed_ = run_on(only_);
  return narrowed_;
}

void OwnProcessor::widen() noexcept {
  if (!narrowed_) return;
  const SignalGuard whole;
  cpu_set_t now;
  if (may_run_on(now) && CPU_EQUAL(&now, &only_)) run_on(allowed_);
  narrowed_ = false;
}

void OwnProcessor::leave(const NodePage& page, std::uint32_t ranks, NodeSlot& own, int here) noexcept {
  before_ = here;
  own.processor.store(here + 1, std::memory_order_relaxed);
  if (kept_ == 0) {
    if (++free_ == kFewSleeps) keep_ = kFewSleeps;
    return;
  }
  --kept_;
  free_ = 0;
  if (!may_run_on(allowed_)) return;
  const cpu_set_t only = without(allowed_, taken_by_others(page, ranks, own));
  if (CPU_COUNT(&only) != 0 && !CPU_EQUAL(&only, &allowed_)) narrow(only);
}

bool OwnProcessor::come_back(int here, const NodePage& page, std::uint32_t ranks, NodeSlot& own, double late_ns, std::uint64_t now,
                             const TickRate& rate) noexcept {
  own.processor.store(here + 1, std::memory_order_relaxed);
  if (here < 0 || here != own.woken_from.load(std::memory_order_relaxed) - 1) {
    home_ = here;
    return false;
  }
  if (before_ != here) home_ = before_;
  if (late_ns < kQueuedNs || (moved_ != 0 && rate.to_ns(now - moved_) < kSeldomNs) || !may_run_on(allowed_)) return false;
  const int there = free_processor(allowed_, taken_by_others(page, ranks, own), home_ >= 0 ? home_ : here);
  if (there < 0 || there == here) return false;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(there), &only);
  if (!narrow(only)) return false;
  widen();
  own.processor.store(there + 1, std::memory_order_relaxed);
  home_ = there;
  moved_ = now;
  if (kept_ == 0) {
    kept_ = keep_;
    keep_ = std::min(2 * keep_, kManySleeps);
  }
  return true;
}

}  // namespace fallow::pmpi
