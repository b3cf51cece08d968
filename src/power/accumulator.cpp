#include "power/accumulator.hpp"

#include <algorithm>

namespace fallow::power {
namespace {

// Counters move in steps (RAPL: 1 ms; pm_counters: 100 ms), so two close reads may see a whole step between them.
constexpr Seconds kStepSlack{1.0};

Seconds between(Nanoseconds from, Nanoseconds to) noexcept {
  return std::max(Seconds{}, to_seconds(to - from));  // a clock that goes back has not moved
}

}  // namespace

void CounterAccumulator::add(std::uint64_t count, Nanoseconds now) noexcept {
  if (last_) {
    // count < last: it wrapped. The step from range_ to 0 is one count; unsigned arithmetic serves a range of 2^64-1.
    const std::uint64_t counts = count >= last_->count ? count - last_->count : range_ - last_->count + count + 1;
    const Joules step = per_count_ * static_cast<double>(counts);
    if (last_->count > range_ || count > range_ || step > ceiling_ * (between(last_->time, now) + kStepSlack)) {
      ++lost_;
    } else {
      energy_ += step;
    }
  }
  last_ = Last{count, now};
}

void PowerAccumulator::add(Watts power, Nanoseconds now) noexcept {
  if (last_) energy_ += (last_->power + power) * 0.5 * between(last_->time, now);
  last_ = Last{power, now};
}

}  // namespace fallow::power
