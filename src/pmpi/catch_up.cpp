// Brings totals, forecast and trace up to the calls that lie in the rings, where the rank does not wait for long enough that
// it would be done then.
#include "base/cancel_guard.hpp"
#include "base/errno_guard.hpp"
#include "pmpi/counting.hpp"
#include "pmpi/own_state.hpp"
#include "pmpi/scope.hpp"

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kTotalledAtAPoll = 2, kPackedAtAPoll = 2;  // events: 0.1 us, by which a message may be seen later
constexpr std::uint32_t kForeseen = 32;                            // calls that are learnt at a time

}  // namespace

void catch_up(Thread& t) noexcept {
  Forecast& forecast = runtime().forecast;
  t.caught_up = t.recorded;
  if (forecast.belongs_to(&t) && forecast.affords(kForeseen, runtime().clock.now())) foresee(t, kForeseen);
  add_to_totals(t);
  consider_counting(t);
  if (this_thread().waiting != nullptr) return;  // in a call, which is itself something else than tests
  // That took longer than a program takes that does nothing but test.
  const std::uint64_t now = runtime().clock.now();
  if (t.tested_at != 0 && t.tested_at == t.last_exit) t.tested_at = now;
  t.loop.resume(t.last_exit, now);
}

/// A rank whose waits are over after some polls would do so all at once where it computes, and have its peer wait for it.
void catch_up_in_wait(Thread& t) noexcept {
  const ErrnoGuard kept;
  if (t.totalled != t.recorded) {
    add_to_totals(t, kTotalledAtAPoll);
    if (t.recorded - t.caught_up >= kPendingEvents) catch_up(t);
  } else if (t.trace != nullptr && t.trace->recorder.pending() != 0) {
    Tracer& tracer = runtime().tracer;
    if (tracer.pump_repeated(*t.trace, kPackedAtAPoll)) return;
    const CancelGuard whole;
    const OwnState state(t, whole.saved());
    tracer.pump(*t.trace, kPackedAtAPoll);
  } else {
    this_thread().polls_left &= ~kCatchingUp;
  }
}

}  // namespace fallow::pmpi
