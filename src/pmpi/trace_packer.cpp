#include "pmpi/trace_packer.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/float_guard.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kAtOnce = 64;                // records packed before it looks around: some 5 us
constexpr std::uint64_t kShortestSleepNs = 200'000;  // below that, sleeping costs more than it saves
constexpr std::uint64_t kLongestSleepNs = 50'000'000;
constexpr std::uint64_t kLateNs = 1'000'000;         // by so much, somebody else has the processor
constexpr std::uint64_t kFirstBackOffNs = 10'000'000, kLongestBackOffNs = 1'000'000'000;
#ifdef SYS_close_range
constexpr long kCloseRange = SYS_close_range;
#else
constexpr long kCloseRange = 436;                    // Linux 5.9, on every architecture
#endif
constexpr unsigned kUnshare = 2;                     // CLOSE_RANGE_UNSHARE

std::uint64_t thread_cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

void TracePacker::start(const Work& work) noexcept {
  State none = State::none;
  if (!state_.compare_exchange_strong(none, State::starting)) return;
  work_ = work;
  // A signal for the process must not be delivered to a thread that the program knows nothing of.
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
    state_ = State::over;
    return;
  }
  const int error = pthread_create(&thread_, nullptr, entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  state_ = error == 0 ? State::running : State::over;
}

void TracePacker::stop() noexcept {
  State none = State::none;
  if (state_.compare_exchange_strong(none, State::over)) return;
  while (state_.load() == State::starting) sched_yield();  // by another thread
  State running = State::running;
  if (!state_.compare_exchange_strong(running, State::over)) return;
  stopping_ = 1;
  syscall(SYS_futex, &stopping_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  pthread_join(thread_, nullptr);
}

void TracePacker::forget() noexcept {
  state_ = State::over;
  helps_ = false;
}

void* TracePacker::entry(void* self) noexcept {
  auto& packer = *static_cast<TracePacker*>(self);
  const FloatGuard guard;
  if (packer.get_ready()) packer.run();
  packer.helps_ = false;
  packer.cpu_ns_ = thread_cpu_ns();
  return nullptr;
}

bool TracePacker::get_ready() noexcept {
  prctl(PR_SET_NAME, "fallow-trace", 0, 0, 0);
  const sched_param lowest{};
  if (sched_setscheduler(0, SCHED_IDLE, &lowest) != 0) return false;
  // Its own empty table of descriptors: what it opens, the program never meets; what the program closes is closed.
  return syscall(kCloseRange, 0u, ~0u, kUnshare) == 0;
}

/// False if it is time to end.
bool TracePacker::sleep(std::uint64_t ns) noexcept {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
  syscall(SYS_futex, &stopping_, FUTEX_WAIT_PRIVATE, 0u, &time, nullptr, 0);
  return stopping_.load(std::memory_order_relaxed) == 0;
}

void TracePacker::run() noexcept {
  std::uint64_t wanted = kShortestSleepNs;
  for (std::uint64_t begin = monotonic_ns(); sleep(wanted);) {
    const std::uint64_t slept = monotonic_ns() - begin;
    // Woken late, it would be interrupted as well, and keep what it has locked from the thread that records.
    const bool late = slept > wanted + kLateNs;
    const std::uint64_t next = late ? 0 : round(slept);
    helps_.store(next != 0, std::memory_order_relaxed);
    if (next != 0) {
      wanted = next;
      back_off_ns_ = 0;
    } else {
      wanted = back_off_ns_ = std::clamp(2 * back_off_ns_, kFirstBackOffNs, kLongestBackOffNs);
    }
    begin = monotonic_ns();
  }
}

/// Packs all there is. Returns how long to sleep then, 0 if it was interrupted.
std::uint64_t TracePacker::round(std::uint64_t slept_ns) noexcept {
  std::uint64_t packed = 0;
  for (std::uint32_t n = kAtOnce; n == kAtOnce && stopping_.load(std::memory_order_relaxed) == 0; packed += n) {
    const std::uint64_t before = monotonic_ns();
    {
      const std::lock_guard lock(work_mutex_);
      n = work_.pack(work_.context, kAtOnce);
    }
    if (monotonic_ns() - before > kLateNs) return 0;
  }
  const double half = work_.ring / 2.0;
  const double wanted = static_cast<double>(slept_ns) * half / static_cast<double>(std::max<std::uint64_t>(packed, 1));
  const double most = std::min(2.0 * static_cast<double>(slept_ns), static_cast<double>(kLongestSleepNs));
  return static_cast<std::uint64_t>(std::max(std::min(wanted, most), static_cast<double>(kShortestSleepNs)));
}

}  // namespace fallow::pmpi
