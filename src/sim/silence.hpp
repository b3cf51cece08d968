// When a node's links rest though nobody foresaw the gap: after a silence, until a message wakes them. How long a silence
// has to last is learned from the silences before: the time-outs that rest most, at a price for each delayed message
// at which delays come at the rate that the budget has left (docs/adr/0042). What of it is used is told by Lags (0044).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/machine.hpp"

namespace fallow::sim {

/// Whether and how links rest after silences. The same for all nodes.
struct SilencePolicy {
  bool rests = false;
  double budget = 0.01;  ///< a node's ranks may lag by this share of the time so far
  double price = 6;      ///< time at rest given up to avoid one unit of delay while all of the budget is left
};

/// What one node knows of its silences: the times in which nothing passed its links and they were awake, or would have been
/// without this. Silences that follow a planned rest are kept apart, as they end sooner.
class Silence {
 public:
  enum Kind : std::uint8_t { kPlain, kAfterPlan, kKinds };

  /// When a silence from `from` on has lasted long enough; kNever if never. Not before what the node's ranks lag by and the
  /// most that comes of rests like this one are within the budget.
  Time begin(Time from, Kind kind, const SilencePolicy& policy, const RestState& rest) const noexcept;
  /// Whether what the ranks lag by and what may come of a rest at `at` are within the budget.
  bool affords(Time at, const SilencePolicy& policy, const RestState& rest) const noexcept { return at >= affordable(policy, rest); }
  /// A message has ended a silence of `length` at `at`.
  void ended(Time at, Time length, Kind kind, const SilencePolicy& policy, const RestState& rest) noexcept;
  /// Share of the budget that is left at `at`, beside what one more rest may cost.
  double left(Time at, const SilencePolicy& policy, const RestState& rest) const noexcept;
  /// One message may find so many rests on its way: expected less with each silence that has ended.
  void expect_rests(std::uint32_t count) noexcept { expected_rests_ = static_cast<float>(count); }
  /// The node's ranks lag by at most so much (see Lags).
  void lags(Time lag) noexcept {
    lag_ = lag;
    rise_ = std::max(rise_, lag - before_);
  }

  Time timer(Kind kind) const noexcept { return timer_[kind]; }

 private:
  static constexpr std::size_t kBins = 44;  // two an octave: from 1 us to 3 s
  struct Bin {
    float count = 0, time = 0;  // silences, and their length in all, us
  };
  static std::size_t bin_of(Time length) noexcept;
  Time reserve(const RestState& rest) const noexcept;
  Time affordable(const SilencePolicy& policy, const RestState& rest) const noexcept;
  void choose(Time at, const SilencePolicy& policy, const RestState& rest) noexcept;
  struct Choice {
    std::size_t bin = kBins;  // the time-out is its lower bound
    double low = 0, late = 0; // us at rest, and of delay
  };
  Choice best(Kind kind, double price, const RestState& rest) const noexcept;
  void fade() noexcept;

  std::array<std::array<Bin, kBins>, kKinds> seen_{};
  std::array<Time, kKinds> timer_{kFirst, kFirst};
  Time lag_ = 0;
  Time before_ = 0;  // the lag when the last silence ended ...
  Time rise_ = 0;    // ... and how much it has grown since, at most; fades
  float expected_rests_ = 1;
  Time chosen_at_ = 0;
  float span_ = 0;          // time in which what is in the bins was seen, us
  float count_ = 0;
  std::uint32_t until_choice_ = kEach;

  static constexpr Time kFirst = 50 * kUs;        // before anything is known
  static constexpr std::uint32_t kEach = 16;      // silences between choices
};

}  // namespace fallow::sim
