#include "pmpi/forecast.hpp"

#include "base/float_guard.hpp"

namespace fallow::pmpi {
namespace {

constexpr double kPriceNs = 150.0;   // of one call in the predictor, from its benchmark, with a cold cache
constexpr double kBurst = 512.0;     // calls that may be paid from savings

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
  savings_ = 0;
  start_ = last_exit_ = clock.now();
  owner_ = owner;
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
  if (entered_) return 0;
  entered_ = true;
  return predictor_->on_enter(to_call(call)).key;
}

void Forecast::publish(std::uint64_t tick) noexcept {
  if (tick == 0 && !published_) return;
  published_ = tick != 0;
  slot_->rest_until.store(tick, std::memory_order_relaxed);
}

void Forecast::feed(const CallNow& call, std::uint64_t exit_tick) noexcept {
  const FloatGuard guard;
  predict::Event event;
  static_cast<predict::Call&>(event) = to_call(call);
  event.exit = time_of(exit_tick);
  event.wait = length_of(wait_);
  wait_ = 0;
  entered_ = false;
  const Nanoseconds rest = predictor_->on_exit(event).rest_for;
  publish(rest.value > 0 ? exit_tick + static_cast<std::uint64_t>(static_cast<double>(rest.value) / ns_per_tick_) : 0);
}

void Forecast::go_by() noexcept {
  predictor_->pass_over();
  wait_ = 0;
  entered_ = false;
  publish(0);
}

}  // namespace fallow::pmpi
