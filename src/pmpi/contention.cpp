#include "pmpi/contention.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace fallow::pmpi {

Interruption Contention::judge(double late_ns, double now_ns, std::uint64_t queued_ns, const Crowd& crowd) noexcept {
  const bool told = queued_ns != kUnknown && queued_ns_ != kUnknown && queued_ns >= queued_ns_;
  const double queued = told ? static_cast<double>(queued_ns - queued_ns_) : 0.0;
  queued_ns_ = queued_ns;
  if (late_ns <= kInterruptedNs) return Interruption::none;
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
