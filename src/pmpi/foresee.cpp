#include "pmpi/foresee.hpp"

#include <algorithm>

#include "pmpi/runtime.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kAtOnce = 32;  // calls that are caught up with when nobody waits

void learn(Forecast& forecast, const Thread& t, std::uint64_t number) noexcept {
  const trace::Event& e = t.ring[number & t.ring_mask];
  if (e.enter == e.exit) return;  // made by a callback inside the call that follows
  const PendingWait& w = t.waits[number % kPendingEvents];
  const std::uint64_t wait = e.awake_us == 0 ? 0 : w.wait > w.delay ? w.wait - w.delay : 0;
  forecast.learn({e.enter, t.callers[number % kPendingEvents], e.op}, e.exit, wait);
}

}  // namespace

void foresee(Thread& t, std::uint32_t most) noexcept {
  Forecast& forecast = runtime().forecast;
  const std::uint64_t from = t.recorded - std::min<std::uint64_t>(most, t.recorded - t.foreseen);
  if (from != t.foreseen) forecast.pass_over();
  for (t.foreseen = from; t.foreseen != t.recorded; ++t.foreseen) learn(forecast, t, t.foreseen);
}

void foresee_gap(Thread& t, const void* caller) noexcept {
  Forecast& forecast = runtime().forecast;
  if (!forecast.belongs_to(&t) || !forecast.matters_after(caller)) return;
  const std::uint64_t calls = std::min<std::uint64_t>(t.recorded - t.foreseen, kAtOnce);
  if (!forecast.affords(calls, t.ring[(t.recorded - 1) & t.ring_mask].exit)) {
    forecast.withdraw();
    return;
  }
  foresee(t, kAtOnce);
  forecast.promise();
}

}  // namespace fallow::pmpi
