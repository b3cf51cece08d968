// The one interface of all predictors: fed with a rank's calls, they say after each how long its link (or core)
// may rest in the gap that follows, and before each what it is likely to wait inside.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"

namespace fallow::predict {

/// A call about to be made. Identifiers are the recorder's: equal means alike, nothing else is read from them.
struct Call {
  Nanoseconds enter;
  std::uint64_t bytes = 0;
  std::uint32_t site = 0;  ///< call site
  std::int32_t peer = -1;  ///< rank in the communicator; negative: none, any or several
  std::uint16_t op = 0;
  std::uint16_t comm = 0;
};

/// A call that has been made.
struct Event : Call {
  Nanoseconds exit;
  Nanoseconds wait;  ///< the part of it in which the rank only waited for others
};

/// Time to change what rests from full power to rest and back (Dickov 5.1: T_react, the same both ways).
struct ReactTimes {
  Nanoseconds down{10'000};
  Nanoseconds up{10'000};
};

/// What a process takes from its start to its first call, at least: so long has the run lasted before the first event.
inline constexpr Nanoseconds kStartUp{2'000'000};

/// What to do in the gap that now begins, and what was known of the call that ended.
struct Answer {
  Nanoseconds rest_for;      ///< stay at rest (time to get there included), then start to wake; 0: do not rest
  Nanoseconds expected_gap;  ///< 0: no prediction
  bool call_expected = false;  ///< the call that has just ended was the one predicted
  /// Rest again after so long without a call, until one comes, which then waits for the wake-up; never before the first
  /// rest is over. 0: do not.
  Nanoseconds rest_after{};
};

/// What the call that begins will wait inside; samples 0: unknown.
struct WaitForecast {
  std::uint64_t key = 0;  ///< the context it was taken from: a key for WaitModel
  std::uint32_t samples = 0;
  Nanoseconds p10, median, p90;
};

/// How a predictor fares, for reports. Times it does not have are 0.
struct PredictorState {
  Nanoseconds threshold;            ///< grouping threshold in use
  Nanoseconds delay;                ///< delay that its rests have caused, by its own account
  std::uint64_t searches = 0;       ///< pattern searches run
  std::uint64_t restarts = 0;       ///< times that it started anew: threshold tuned again, tables full
  std::uint64_t mispredictions = 0;
  std::size_t memory_bytes = 0;
};

/// One per rank, one thread at a time. All memory is taken on construction; the calls below neither allocate
/// nor throw nor make system calls. Events come in order of time.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// A call begins. Optional: what is not said here is taken from the event at its exit.
  virtual WaitForecast on_enter(const Call& call) noexcept = 0;

  /// A call has ended. `event.enter` minus the previous event's exit is the gap that the last answer was about.
  virtual Answer on_exit(const Event& event) noexcept = 0;

  /// Of a budget of delay that the predictor's user keeps account of, this share (0 to 1) is left. What has no price of
  /// delay takes no notice.
  virtual void budget_left(double share) noexcept { static_cast<void>(share); }

  [[nodiscard]] virtual PredictorState state() const noexcept = 0;

 protected:
  Predictor() = default;
  Predictor(const Predictor&) = default;
  Predictor& operator=(const Predictor&) = default;
};

/// What a rest gave and cost.
struct RestOutcome {
  Nanoseconds low;    ///< time in the low-power state
  Nanoseconds delay;  ///< time by which the next call had to wait for full power
};

/// The outcome of resting for `rest_for` in a gap that lasted `gap`. A call that comes while the link rests or
/// wakes starts the wake-up at once and waits for what is left of the transitions (Dickov 5.2.6: "equal or
/// smaller than reactivation time if reactivation has already been started"; a descent is completed first).
constexpr RestOutcome rest_outcome(Nanoseconds rest_for, Nanoseconds gap, const ReactTimes& react) noexcept {
  if (rest_for.value <= 0) return {};
  const Nanoseconds zero(0);
  const Nanoseconds full_again = std::max(rest_for, react.down) + react.up;
  const Nanoseconds low = std::max(zero, std::min(rest_for, gap) - react.down);
  if (gap >= full_again) return {low, zero};
  if (gap >= rest_for) return {low, std::min(full_again - gap, react.up + react.down)};
  return {low, std::max(zero, react.down - gap) + react.up};
}

/// The outcome of both rests of an answer: at once for `rest_for`, and after a silence of `rest_after` until the call.
constexpr RestOutcome rest_outcome(const Answer& answer, Nanoseconds gap, const ReactTimes& react) noexcept {
  RestOutcome outcome = rest_outcome(answer.rest_for, gap, react);
  if (answer.rest_after.value <= 0 || gap <= answer.rest_after) return outcome;
  const RestOutcome second = rest_outcome(gap, gap - answer.rest_after, react);
  return {outcome.low + second.low, outcome.delay + second.delay};
}

/// What a policy that knows the gap rests: all but the two transitions.
constexpr Nanoseconds oracle_rest(Nanoseconds gap, const ReactTimes& react) noexcept {
  return gap > react.down + react.up ? gap - react.up : Nanoseconds(0);
}

}  // namespace fallow::predict
