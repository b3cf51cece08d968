// One link shared by the ranks of a node: it rests only while all of them are predicted idle, and wakes for the
// first (Dickov 5.2.2: prediction inside each process, outputs combined at one controller per node).
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "predict/evaluate.hpp"
#include "predict/predictor.hpp"

namespace fallow::predict {

class NodeLink {
 public:
  /// All ranks are taken to be in a call until on_exit() is told of them.
  NodeLink(std::size_t ranks, const ReactTimes& react);

  /// A rank begins a call. Returns for how long it has to wait for the link. Times never go back. Not while in a call.
  Nanoseconds on_enter(Nanoseconds now) noexcept;
  /// A rank that makes no other call rests for so long: it does not keep the others' link awake.
  static constexpr Nanoseconds kForGood{std::numeric_limits<std::int64_t>::max()};
  /// A rank has ended a call and is predicted idle for `rest_for` (0: not predicted).
  void on_exit(std::size_t rank, Nanoseconds now, Nanoseconds rest_for) noexcept;

  [[nodiscard]] Nanoseconds low() const noexcept { return low_; }                ///< time in the low-power state
  [[nodiscard]] Nanoseconds oracle_low() const noexcept { return oracle_low_; }  ///< what the oracle would have had
  [[nodiscard]] Nanoseconds delay() const noexcept { return delay_; }            ///< sum over ranks
  [[nodiscard]] std::uint64_t rests() const noexcept { return rests_; }

 private:
  ReactTimes react_;
  std::vector<Nanoseconds> idle_until_;  // by prediction, of ranks that are in no call; 0: not
  std::size_t in_call_;
  Nanoseconds quiet_since_;              // the last rank left its call
  Nanoseconds rest_from_, rest_until_;   // rest_until_ 0: not at rest
  Nanoseconds full_at_;                  // the link is up again
  Nanoseconds low_, oracle_low_, delay_;
  std::uint64_t rests_ = 0;
};

struct NodeEvaluation {
  Nanoseconds low, oracle_low, delay;  ///< delay: sum over ranks
  Nanoseconds run;                     ///< from the first entry to the last exit of any rank, delays included
  Nanoseconds delay_worst_rank;        ///< the most that one rank was delayed in all
  std::uint64_t rests = 0;
  [[nodiscard]] double rest_of_oracle() const noexcept { return oracle_low.value > 0 ? low / oracle_low : 0.0; }
};

/// Where the ranks' calls come from, each rank's in order of time. May throw.
class RankEvents {
 public:
  virtual ~RankEvents() = default;
  /// The next call of a rank; false at its end.
  virtual bool next(std::size_t rank, Event& event) = 0;

 protected:
  RankEvents() = default;
  RankEvents(const RankEvents&) = default;
  RankEvents& operator=(const RankEvents&) = default;
};

/// Runs one predictor per rank over streams that share a clock. Each rank's delays move what it does later.
/// Memory grows with the number of ranks, not of calls; time with calls x log(ranks).
NodeEvaluation evaluate_node(RankEvents& events, std::span<Predictor* const> predictors, const EvaluateParams& params);

/// The same over streams in memory. Both spans are of equal length.
NodeEvaluation evaluate_node(std::span<const std::span<const Event>> streams, std::span<Predictor* const> predictors,
                             const EvaluateParams& params);

}  // namespace fallow::predict
