// Fallow's own predictor: no threshold, no sampling phase, delay held to a budget. See
// docs/adr/0013-adaptive-predictor.md for why it is as it is.
//
// After each call a few contexts are looked up: the call itself, the calls before it with their peers (2 to 64 of
// them, the longer with sizes), and how often it was made since its gap was last unusual. Each context keeps the
// last gaps that followed and the waits inside, and plans a rest by experts: the best rest over its sample, and, for
// the call itself, the last gap. A lead is taken off. What is maximized is
//
//     time at low power - price x delay,
//
// and each expert and context is trusted by what it would have earned so far, a longer context only where it
// earned more than the shorter ones did at the same calls (prediction by partial matching, blended by success).
// Where no rest is planned, or a gap outlasts it, a rest begins after a silence of many wake-ups' length. That is what gaps
// are rested in that come once, and what no context can foresee.
//
// A rest is taken only while the credit, budget x time - delay caused, covers the worst delay that it can
// cause: the budget holds at every moment, and the price rises as the credit is used up.
//
// Memory: one arena, 1 MiB by default, fixed at construction. The least used contexts give way, those of several calls
// before those of one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "predict/branchless.hpp"
#include "predict/predictor.hpp"
#include "predict/sample_window.hpp"

namespace fallow::predict {

struct AdaptiveOptions {
  ReactTimes react;
  double budget = 0.01;        ///< accepted delay as a share of run time
  double delay_price = 19.0;   ///< low-power time given up to avoid one unit of delay, while credit is plenty
  double late_share = 0.05;    ///< ... and at least this share of the gap to avoid a late wake-up
  Nanoseconds start_up = kStartUp;  ///< run time before the first call, which the budget is a share of too
  double silence = 16.0;       ///< rest after a silence of so many wake-ups; 0: never, for who cannot do so later
  std::size_t memory_bytes = std::size_t{1} << 20;  ///< arena, when the predictor brings its own
};

class AdaptivePredictor final : public Predictor {
 public:
  static constexpr unsigned kLevels = 5;

  explicit AdaptivePredictor(const AdaptiveOptions& options);
  /// Uses the caller's memory, which must outlive the predictor; too little for one set throws std::bad_alloc.
  AdaptivePredictor(const AdaptiveOptions& options, std::span<std::byte> arena);

  WaitForecast on_enter(const Call& call) noexcept override;
  Answer on_exit(const Event& event) noexcept override;
  /// The price of delay is divided by it, from the next plans on.
  void budget_left(double share) noexcept override;
  [[nodiscard]] PredictorState state() const noexcept override;

  /// Calls went by that were not fed: what follows the last one is not a gap to learn from, and what was begun with
  /// on_enter() ends without on_exit().
  void pass_over() noexcept;

  /// Delay that may still be caused, ns: budget x time - delay caused.
  [[nodiscard]] double credit_ns() const noexcept;
  /// Delay beyond the predictor's own account, as its user measured it; counts against the budget.
  void charge(Nanoseconds delay) noexcept { paid_ns_ += static_cast<double>(delay.value); }

 private:
  enum Expert : int { kSample, kLast, kExperts };

  struct alignas(64) Context {
    std::uint32_t stamp;            ///< of the last visit
    std::uint16_t visits;           ///< gaps learned, saturating
    std::uint16_t since_unusual;    ///< visits since the gap was last far from the median
    std::uint8_t gaps, gap_head;    ///< of the window
    std::uint8_t waits, wait_head;
    std::array<std::uint8_t, kLevels> benefit;  ///< of a call: what looking at each level has brought lately
    bool is_root;                   ///< the call itself, which the longer ones do without only at a loss
    float target[kExperts];         ///< planned end of the wake-up, ns after the call; 0: no rest
    float score[kExperts];          ///< mean of what the expert would have earned, ns
    float rival;                    ///< what shorter contexts would have earned at the same calls
    float ideal;                    ///< what the oracle would have
    float wait_error;               ///< mean error of the median wait, in codes
    double most;                    ///< low-power time in all gaps of the window if they were known, ns
    SampleWindow gap;
    SampleWindow wait;
  };
  static_assert(sizeof(Context) == 192);

  struct Visit {
    Context* context;
    float before;        ///< the target that shorter contexts had chosen
    float after;         ///< the same with this one
    std::uint8_t level;
  };

  /// What a gap would have earned, ns.
  struct Earnings {
    float own[kExperts];  ///< with each expert of a context
    float rival;          ///< with what shorter contexts had chosen
  };

  static constexpr unsigned kWays = 4;
  static constexpr unsigned kHistory = 128;
  static constexpr unsigned kNextCalls = 4096;

  void carve(std::span<std::byte> arena);
  void set_price(double credit) noexcept;
  void arrive(const Call& call) noexcept;
  void settle(Nanoseconds gap) noexcept;
  void learn(Context& c, float gap_ns, std::uint16_t code, const Earnings& earnings, bool is_root) const noexcept;
  void pass_by(Context& c, std::uint16_t code, bool is_root) const noexcept;
  void keep(Context& c, std::uint16_t code) const noexcept;
  [[nodiscard]] float best_of_sample(const Context& context) const noexcept;
  void plan(Context& context) const noexcept;
  void follow_last(Context& root, std::uint16_t code) const noexcept;
  [[nodiscard]] static bool is_quiet(const Context& c) noexcept;
  static void note_unusual(Context& context, std::uint16_t code) noexcept;
  [[nodiscard]] static int better_expert(const Context& c, unsigned level) noexcept;
  [[nodiscard]] Nanoseconds rest_after(double credit) noexcept;
  /// Price of one unit of delay at this target: never so low that a late wake-up counts less than a share of it.
  [[nodiscard]] float price_at(float target) const noexcept { return larger(price_, late_share_ * target); }
  /// What resting until `target` (end of the wake-up) would have earned in this gap: rest_outcome() and the price,
  /// without branches, as their outcomes are what cannot be predicted. A target is 0 or leaves room for a rest.
  [[nodiscard]] float earned(float target, float gap_ns) const noexcept {
    const float low = larger(0.0F, smaller(target - up_, gap_ns) - down_);
    const float delay = smaller(larger(0.0F, target - gap_ns), up_) + larger(0.0F, down_ - gap_ns);
    return target > 0.0F ? low - price_at(target) * delay : 0.0F;
  }
  void walk() noexcept;
  void visit(Context* context, unsigned level) noexcept;
  [[nodiscard]] unsigned wanted_levels(const Context& root) noexcept;
  [[nodiscard]] std::uint64_t key_of(const Context& root, unsigned level) const noexcept;
  [[nodiscard]] std::uint64_t history(unsigned level) const noexcept;
  [[nodiscard]] const Visit& best_for_waits() const noexcept;
  [[nodiscard]] Context* look_up(std::uint64_t key, unsigned level, bool create) noexcept;
  [[nodiscard]] Context* replaced(Context* first, const std::array<std::uint32_t, kWays>& tags, unsigned level) noexcept;
  void reward(Context& root, const Visit& visit, float gain) noexcept;
  void learn_wait(Nanoseconds wait) noexcept;
  [[nodiscard]] std::uint32_t random() noexcept;

  // Set on construction.
  AdaptiveOptions options_;
  float down_, up_;
  float late_share_;  ///< per ns of wake-up time
  std::unique_ptr<std::byte[]> own_arena_;
  std::size_t arena_bytes_ = 0;
  Context* contexts_ = nullptr;
  std::array<std::uint32_t, kWays>* tags_ = nullptr;
  std::uint64_t set_mask_ = 0;

  // The call in progress or just ended, and the contexts that it stands in.
  std::array<Visit, kLevels> visits_;
  std::size_t visited_ = 0;
  bool arrived_ = false;
  bool expected_ = false;
  bool broken_ = false;        ///< calls went by since the last one
  float chosen_ = 0;           ///< target of the context that is trusted
  const Context* trusted_ = nullptr;
  std::uint64_t root_key_ = 0;
  Answer taken_;               ///< the rests of the gap that goes on

  // History of calls.
  std::array<std::uint64_t, kHistory> hashes_{};       // of all calls up to one: operation, communicator, site, peer
  std::array<std::uint64_t, kHistory> full_hashes_{};  // and size class
  std::array<std::uint16_t, kNextCalls> next_call_{};
  std::uint32_t clock_ = 0;
  std::uint32_t next_slot_ = 0;
  std::uint32_t random_state_ = 1;
  float exploration_;          ///< contexts that may yet be looked at to see whether they help

  // Accounts.
  Nanoseconds first_enter_, last_exit_;
  bool started_ = false;
  double paid_ns_ = 0;
  float mean_ideal_ = 0;       ///< what the oracle would have after a call, ns
  float unforeseen_ = 0;       ///< what rests after a silence are worth where no context is known, ns: mean over long gaps
  float silence_ = 0;          ///< the silence after which one would begin in the gap that goes on; 0: a context is known
  float price_;
  double others_left_ = 1;     ///< share of a budget that others keep account of
  std::uint64_t mispredictions_ = 0;
};

}  // namespace fallow::predict
