// Accounting: what a predictor's rests would have given and cost on a recorded stream.
#pragma once

#include <cstdint>
#include <span>

#include "predict/predictor.hpp"

namespace fallow::predict {

struct EvaluateParams {
  ReactTimes react;
  Nanoseconds start_up = kStartUp;  ///< run time before the first call: the highest share of delay is one of it too
  bool delays_shift = true;  ///< a delay moves all that follows, as it would in the run; false: times stay as recorded
};

/// Sums over one stream. Gaps that count are those that a rest fits into: longer than both transitions.
struct Evaluation {
  std::uint64_t calls = 0;
  std::uint64_t calls_predicted = 0;
  std::uint64_t gaps = 0;
  std::uint64_t gaps_predicted = 0;   ///< for which a length was expected
  std::uint64_t rests = 0;
  std::uint64_t mispredictions = 0;   ///< rests that outlasted their gap
  Nanoseconds idle, idle_predicted;   ///< time in these gaps, in the predicted ones
  Nanoseconds low, oracle_low;        ///< time in the low-power state; what the oracle has
  Nanoseconds delay, delay_worst;     ///< sum; the largest of one call
  Nanoseconds run;                    ///< from the first entry to the last exit, without delays
  double budget_worst = 0;            ///< highest of (delay so far) / (start-up and time so far), over all calls
  PredictorState state;

  /// Adds what was had on another stream. `run` becomes the sum of both; the worst stay the worst of one stream,
  /// and so does `state.threshold` the first's.
  void add(const Evaluation& other) noexcept;

  [[nodiscard]] double calls_predicted_share() const noexcept { return share(double(calls_predicted), double(calls)); }
  [[nodiscard]] double gaps_predicted_share() const noexcept { return share(double(gaps_predicted), double(gaps)); }
  [[nodiscard]] double idle_predicted_share() const noexcept { return share(ns(idle_predicted), ns(idle)); }
  [[nodiscard]] double rest_of_oracle() const noexcept { return share(ns(low), ns(oracle_low)); }
  [[nodiscard]] double slowdown() const noexcept { return share(ns(delay), ns(run)); }

 private:
  static double ns(Nanoseconds t) noexcept { return static_cast<double>(t.value); }
  static double share(double part, double whole) noexcept { return whole > 0.0 ? part / whole : 0.0; }
};

/// The account of one predictor on one stream, call by call: for streams that do not fit into memory.
class Evaluator {
 public:
  Evaluator(Predictor& predictor, const EvaluateParams& params) noexcept : predictor_(predictor), params_(params) {}

  /// The next call, with its times as recorded. Returns what the predictor answers for the gap after it.
  const Answer& feed(const Event& recorded) noexcept;
  /// So far. Cheap enough to be asked for once a stream, not once a call.
  [[nodiscard]] Evaluation result() const noexcept;

 private:
  Predictor& predictor_;
  EvaluateParams params_;
  Evaluation sum_;
  Answer answer_;
  Nanoseconds first_enter_, previous_exit_;  // as recorded
  Nanoseconds shift_;                        // by the delays so far
};

/// Feeds `stream` (in order of time) through `predictor`. Every rest that outlasts its gap is charged the delay
/// of rest_outcome(). Neither allocates nor throws.
Evaluation evaluate(std::span<const Event> stream, Predictor& predictor, const EvaluateParams& params) noexcept;

}  // namespace fallow::predict
