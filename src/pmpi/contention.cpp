#include "pmpi/contention.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace fallow::pmpi {

namespace {

/// What a count that was `before` has become more by; false if it is not known.
bool grown_by(std::uint64_t& before, std::uint64_t now, double& by) noexcept {
  const bool told = now != Contention::kUnknown && before != Contention::kUnknown && now >= before;
  by = told ? static_cast<double>(now - before) : 0.0;
  before = now;
  return told;
}

}  // namespace

Interruption Contention::judge(double late_ns, double now_ns, const KernelCounts& counts, const Crowd& crowd) noexcept {
  double queued = 0, throttled = 0;
  const bool told = grown_by(queued_ns_, counts.queued_ns, queued);
  grown_by(throttled_ns_, counts.throttled_ns, throttled);
  if (late_ns <= kInterruptedNs) return Interruption::none;
  if (throttled >= late_ns / 2) {
    limited_until_ns_ = now_ns + kLimitedNs;
    return Interruption::others;
  }
  if (late_ns >= kSuspendedNs) return Interruption::others;
  constexpr double kSmoothing = 1.0 / 8;
  runnable_ += (crowd.runnable - runnable_) * (runnable_ == 0 || crowd.runnable == 0 ? 1.0 : kSmoothing);
  if (told && queued < late_ns / 2) return Interruption::elsewhere;
  if (runnable_ == 0 || runnable_ >= kManyPerProcessor * crowd.processors) {
    many_.note(now_ns);
    return Interruption::others;
  }
  if (runnable_ >= crowd.processors + kSomeMore) few_.note(now_ns);
  return Interruption::elsewhere;
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

Crowd crowd_now() noexcept {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  return {static_cast<double>(runnable_threads(Beginning("/proc/loadavg").view())), static_cast<double>(std::max(processors, 1L))};
}

}  // namespace fallow::pmpi
