#include "trace/trace_clock.hpp"

#include <algorithm>
#include <cmath>

namespace fallow::trace {
namespace {

constexpr double kRateOne = 4294967296.0;  // 2^32, see Stretch::rate
constexpr double kCatchUpNs = 0.9e9;

std::uint64_t rate_of(double ns_per_tick) noexcept {
  return static_cast<std::uint64_t>(std::clamp(ns_per_tick, 0.0, 1e6) * kRateOne + 0.5);
}

}  // namespace

TraceClock::TraceClock(const ClockScale& first) : stretches_(std::make_unique<Stretch[]>(1 + 2 * kCorrections)) {
  stretches_[0].ticks = first.ticks;
  stretches_[0].ns = first.ns;
  stretches_[0].rate = rate_of(first.ns_per_tick);
}

/// Makes two stretches after those in use: one in which it catches up, and what follows. False if they would change nothing.
bool TraceClock::corrects(const Stretch& now, const ClockScale& read, std::uint64_t from) noexcept {
  constexpr double kClose = 20.0;  // nanoseconds; about what reading two clocks at a time is out by
  const auto behind = static_cast<double>(read.ns) - static_cast<double>(now.ns + now.scaled(read.ticks - now.ticks));
  const double ahead = static_cast<double>(rate_of(read.ns_per_tick)) - static_cast<double>(now.rate);
  if (used_ + 2 > 1 + 2 * kCorrections || read.ticks < now.ticks || from <= read.ticks || read.ns_per_tick <= 0) return false;
  if (std::abs(behind) < kClose && std::abs(ahead) / static_cast<double>(now.rate + 1) * kCatchUpNs < kClose) return false;
  Stretch* const moving = &stretches_[used_];
  Stretch* const after = moving + 1;
  moving->ticks = from;
  moving->ns = now.ns + now.scaled(from - now.ticks);
  const double missing = static_cast<double>(read.ns) + static_cast<double>(from - read.ticks) * read.ns_per_tick - static_cast<double>(moving->ns);
  moving->rate = rate_of(read.ns_per_tick * (1.0 + std::clamp(missing / kCatchUpNs, -0.5, 0.5)));
  moving->before = &now;
  after->ticks = from + static_cast<std::uint64_t>(kCatchUpNs / read.ns_per_tick);
  after->ns = moving->ns + moving->scaled(after->ticks - from);
  after->rate = rate_of(read.ns_per_tick);
  after->before = moving;
  moving->next.store(after, std::memory_order_relaxed);
  return true;
}

std::uint64_t TraceClockReader::find(std::uint64_t ticks) noexcept {
  const auto is_before = [ticks](const TraceClock::Stretch* s) { return static_cast<std::int64_t>(ticks - s->ticks) < 0; };
  const TraceClock::Stretch* stretch = at_;
  while (is_before(stretch)) {
    if (stretch->before == nullptr) return stretch->ns;
    stretch = stretch->before;
  }
  for (const TraceClock::Stretch* next; (next = stretch->next.load(std::memory_order_acquire)) != nullptr && !is_before(next);) stretch = next;
  go_to(stretch);
  return ns_ + scaled(ticks - from_);
}

}  // namespace fallow::trace
