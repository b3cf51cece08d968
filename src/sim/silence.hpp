// When a node's links rest though nobody foresaw the gap: after a silence, until a message wakes them. How long a silence
// has to last is learned from the silences before: the time-outs that rest most, at a price for each delayed message
// that keeps all delays of the node's links, planned rests' included, within the budget (docs/adr/0042).
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
  double budget = 0.01;  ///< delays of a node's links may reach this share of the time so far
  double price = 6;      ///< time at rest given up to avoid one unit of delay, at least
};

/// What one node knows of its silences: the times in which nothing passed its links and they were awake, or would have been
/// without this. Silences that follow a planned rest are kept apart, as they end sooner.
class Silence {
 public:
  enum Kind : std::uint8_t { kPlain, kAfterPlan, kKinds };

  /// When a silence from `from` on has lasted long enough; kNever if never. Not before all delays so far and the
  /// longest that this rest may cause (a descent and a wake-up) are within the budget.
  Time begin(Time from, Kind kind, const SilencePolicy& policy, const RestState& rest) const noexcept;
  /// Whether all delays so far and those that a rest at `at` may cause are within the budget.
  bool affords(Time at, const SilencePolicy& policy, const RestState& rest) const noexcept { return at >= affordable(policy, rest); }
  /// A message has ended a silence of `length` at `at`.
  void ended(Time at, Time length, Kind kind, const SilencePolicy& policy, const RestState& rest) noexcept;
  /// A message leaves the node at `ready` instead of `at`, as its link was at rest.
  void sent(Time at, Time ready) noexcept { paid_ += ready - at; }
  /// A message reaches the node likewise. While no rank of it is in a call, nobody waits for that: what is left of the
  /// delay when the next call begins counts.
  void received(Time at, Time ready) noexcept {
    if (calling_ != 0) {
      paid_ += ready - at;
    } else {
      ready_ = ready;
    }
  }
  /// A rank of the node begins a call, or has ended it.
  void call_begins(Time at) noexcept {
    ++calling_;
    paid_ += std::max<Time>(0, ready_ - at);
    ready_ = 0;
  }
  void call_ends() noexcept { --calling_; }

  /// Delays so far.
  Time paid() const noexcept { return paid_; }
  Time timer(Kind kind) const noexcept { return timer_[kind]; }

 private:
  static constexpr std::size_t kBins = 44;  // two an octave: from 1 us to 3 s
  struct Bin {
    float count = 0, time = 0;  // silences, and their length in all, us
  };
  static std::size_t bin_of(Time length) noexcept;
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
  Time paid_ = 0;
  Time ready_ = 0;  // a message comes by then that nobody waits for yet
  Time chosen_at_ = 0;
  float span_ = 0;          // time in which what is in the bins was seen, us
  float count_ = 0;
  std::uint32_t until_choice_ = kEach;
  std::uint32_t calling_ = 0;  // ranks in calls

  static constexpr Time kFirst = 50 * kUs;        // before anything is known
  static constexpr std::uint32_t kEach = 16;      // silences between choices
};

}  // namespace fallow::sim
