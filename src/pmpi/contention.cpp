#include "pmpi/contention.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace fallow::pmpi {

Interruption Contention::judge(double late_ns, double now_ns, std::uint64_t queued_ns) noexcept {
  const bool told = queued_ns != kUnknown && queued_ns_ != kUnknown && queued_ns >= queued_ns_;
  const double queued = told ? static_cast<double>(queued_ns - queued_ns_) : 0.0;
  queued_ns_ = queued_ns;
  if (late_ns <= kInterruptedNs) return Interruption::none;
  if (told && queued < late_ns / 2) return Interruption::elsewhere;
  if (now_ns - last_ns_ < kAgainNs) until_ns_ = now_ns + kContendedNs;
  last_ns_ = now_ns;
  return Interruption::others;
}

std::uint64_t queued_ns() noexcept {
  const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Contention::kUnknown;
  char text[96];  // time on a core, time waiting for one, number of turns
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  if (n <= 0) return Contention::kUnknown;
  const char* const end = text + n;
  const auto* const space = static_cast<const char*>(std::memchr(text, ' ', static_cast<std::size_t>(n)));
  std::uint64_t value = 0;
  if (space == nullptr || std::from_chars(space + 1, end, value).ec != std::errc{}) return Contention::kUnknown;
  return value;
}

}  // namespace fallow::pmpi
