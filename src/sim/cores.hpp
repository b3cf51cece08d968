// What each rank's core did in its waits, and what that does to its time.
#pragma once

#include <memory>
#include <vector>

#include "predict/wait_model.hpp"
#include "sim/core_policy.hpp"

namespace fallow::sim {

struct CoreTotals;

/// A wait, by what the core did in it. `polling + resting + changing` is its length and `late` together.
struct WaitOutcome {
  Time polling = 0, resting = 0, changing = 0;
  Time late = 0;        ///< from the coming of what it waited for until the rank goes on
  Time slow_until = 0;  ///< until then, counted from the end of the wait, the core is at CoreRestState::speed
};

/// A wait of `waited` under a rule that needs to know nothing else. A descent is completed before a core wakes.
WaitOutcome outcome_of_wait(const CorePolicy& policy, Time waited) noexcept;

/// The same of a rank that is through, until the last one is: a wait for whose end nobody wakes.
WaitOutcome outcome_of_end(const CorePolicy& policy, Time waited) noexcept;

class Cores {
 public:
  Cores(const CorePolicy& policy, std::uint32_t ranks);

  /// True: the functions below have to be asked. Else cores poll at nominal speed.
  bool active() const noexcept { return active_; }

  /// A wait of rank `r` ends that began at `from`; `kind` tells the kinds of waits apart. The rank goes on later
  /// by what the result has for `late`. All waits of the rank that come to an end must pass here.
  WaitOutcome end_wait(std::uint32_t r, Time from, Time waited, std::uint64_t kind) noexcept;

  /// How long `compute` at nominal speed takes that begins at `now`.
  Time stretch(std::uint32_t r, Time now, Time compute) const noexcept;

  /// Adds what the core of rank `r` did in waits.
  void add_to(CoreTotals& totals, std::uint32_t r) const noexcept;
  /// Adds what a core does whose rank was through so long before the last one.
  void add_end_to(CoreTotals& totals, Time left) const noexcept;
  std::size_t memory_bytes() const noexcept { return sums_.capacity() * sizeof(Sums) + models_.capacity() * sizeof(Planner) + arena_.capacity(); }

 private:
  struct Sums {
    Time polling = 0, resting = 0, changing = 0, late = 0;
    Time slow_until = 0;
    std::uint64_t rests = 0;
  };
  struct Planner {
    predict::WaitModel model;
    double balance;  // ps of delay that may still be caused
    Time earned_until = 0;
  };
  WaitOutcome plan(Planner& planner, Time from, Time waited, std::uint64_t kind) const noexcept;

  static constexpr std::size_t kKeys = 64;  ///< kinds of waits remembered per rank
  CorePolicy policy_;
  double budget_;  // of one rank: delays of all add up, as in the runtime
  std::vector<Sums> sums_;
  std::vector<std::byte> arena_;
  std::vector<Planner> models_;
  bool active_;
};

}  // namespace fallow::sim
