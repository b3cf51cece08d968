#include "pmpi/forecast.hpp"

#include <algorithm>

#include "base/float_guard.hpp"

namespace fallow::pmpi {
namespace {

constexpr unsigned kShareShift = 10;  // the ration: 2^-10 of the run time
constexpr double kPriceNs = 200.0;    // of one call in the predictor, measured with a cold cache
constexpr double kBurst = 512.0;      // calls that may be paid from savings
constexpr double kLongGapNs = 20e3;   // shorter ones are no rest for a link (Dickov 2015, table 5.1)
constexpr std::uint8_t kLately = 8;   // short gaps after a place until it counts as one that long gaps do not follow

}  // namespace

void Forecast::open(const TickClock& clock, NodeSlot& slot, double budget, const void* owner) {
  predict::AdaptiveOptions options;
  options.budget = budget;
  options.silence = 0;  // the rank computes when it would have to say that it rests
  predictor_.emplace(options, arena_);
  ns_per_tick_ = 1.0 / clock.ticks_per_ns();
  slot_ = &slot;
  price_ = clock.to_ticks(kPriceNs);
  most_saved_ = clock.to_ticks(kPriceNs * kBurst);
  long_gap_ = clock.to_ticks(kLongGapNs);
  savings_ = last_exit_ = 0;
  start_ = saved_until_ = clock.now();
  owner_ = owner;
}

bool Forecast::affords(std::uint64_t calls, std::uint64_t tick) noexcept {
  savings_ = std::min(savings_ + ((tick - saved_until_) >> kShareShift), most_saved_);
  saved_until_ = tick;
  if (savings_ < calls * price_) return false;
  savings_ -= calls * price_;
  return true;
}

predict::Call Forecast::to_call(const CallNow& now) const noexcept {
  predict::Call call;
  call.enter = time_of(now.enter);
  const auto address = reinterpret_cast<std::uint64_t>(now.caller);
  call.site = static_cast<std::uint32_t>(address ^ (address >> 32));
  call.op = now.op;
  return call;
}

std::uint64_t Forecast::enter(const CallNow& call) noexcept {
  withdraw();  // a gap that was over early is no wait that lasts
  if (entered_) return 0;
  entered_ = true;
  return predictor_->on_enter(to_call(call)).key;
}

/// Of the gap after the last call learnt.
void Forecast::note_gap(std::uint64_t ticks) noexcept {
  std::uint8_t& lately = lately_[last_mark_];
  if (ticks >= long_gap_) {
    lately = kLately;
    long_after_ |= std::uint64_t{1} << last_mark_;
  } else if (lately != 0 && --lately == 0) {
    long_after_ &= ~(std::uint64_t{1} << last_mark_);
  }
}

void Forecast::learn(const CallNow& call, std::uint64_t exit_tick, std::uint64_t wait) noexcept {
  const FloatGuard guard;
  if (last_exit_ != 0 && call.enter > last_exit_) note_gap(call.enter - last_exit_);
  predict::Event event;
  static_cast<predict::Call&>(event) = to_call(call);
  event.exit = time_of(exit_tick);
  event.wait = length_of(wait);
  entered_ = false;
  rest_ = predictor_->on_exit(event).rest_for;
  last_exit_ = exit_tick;
  last_mark_ = mark_of(call.caller);
}

void Forecast::pass_over() noexcept {
  predictor_->pass_over();
  entered_ = false;
  last_exit_ = 0;
}

void Forecast::promise() noexcept {
  const FloatGuard guard;
  publish(rest_.value > 0 ? last_exit_ + static_cast<std::uint64_t>(static_cast<double>(rest_.value) / ns_per_tick_) : 0);
}

void Forecast::publish(std::uint64_t tick) noexcept {
  if (tick == 0 && !promised_) return;
  promised_ = tick != 0;
  slot_->rest_until.store(tick, std::memory_order_relaxed);
}

}  // namespace fallow::pmpi
