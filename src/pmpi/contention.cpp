#include "pmpi/contention.hpp"

#include <fcntl.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <charconv>
#include <cstddef>

namespace fallow::pmpi {

Interruption Contention::judge(double late_ns, double now_ns, std::uint64_t queued_ns, bool others_want_cores) noexcept {
  const bool told = queued_ns != kUnknown && queued_ns_ != kUnknown && queued_ns >= queued_ns_;
  const double queued = told ? static_cast<double>(queued_ns - queued_ns_) : 0.0;
  queued_ns_ = queued_ns;
  if (late_ns <= kInterruptedNs) return Interruption::none;
  if (!others_want_cores || (told && queued < late_ns / 2)) return Interruption::elsewhere;
  if (now_ns - last_ns_ < kAgainNs) until_ns_ = now_ns + kContendedNs;
  last_ns_ = now_ns;
  return Interruption::others;
}

namespace {

/// The beginning of a file of /proc, without its end if it is longer.
struct Beginning {
  char text[96];
  std::size_t length = 0;

  explicit Beginning(const char* path) noexcept {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n > 0) length = static_cast<std::size_t>(n);
  }
  std::string_view view() const noexcept { return {text, length}; }
};

template <class Integer>
bool number_after(std::string_view text, std::size_t at, Integer& value) noexcept {
  return at < text.size() && std::from_chars(text.data() + at + 1, text.data() + text.size(), value).ec == std::errc{};
}

bool virtual_machine() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 31)) != 0;
#else
  return false;
#endif
}

}  // namespace

std::uint64_t queued_ns() noexcept {
  const Beginning file("/proc/thread-self/schedstat");  // time on a core, time waiting for one, number of turns
  std::uint64_t value = 0;
  return number_after(file.view(), file.view().find(' '), value) ? value : Contention::kUnknown;
}

unsigned runnable_threads(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');  // three means, then runnable/all
  if (slash == std::string_view::npos) return 0;
  unsigned value = 0;
  return number_after(text, text.rfind(' ', slash), value) ? value : 0;
}

bool others_want_cores() noexcept {
  // Asked once, and without the lock that a static variable of its value would have: a signal's handler may leave from here.
  static std::atomic<int> hypervisor{-1};
  if (hypervisor.load(std::memory_order_relaxed) < 0) hypervisor.store(virtual_machine(), std::memory_order_relaxed);
  if (hypervisor.load(std::memory_order_relaxed) == 0) return true;
  const unsigned runnable = runnable_threads(Beginning("/proc/loadavg").view());
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  return may_be_queued(runnable, processors);
}

}  // namespace fallow::pmpi
