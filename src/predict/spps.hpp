// The self-tuned grouping threshold: M. Dickov, 2015, section 5.3, Algorithm 5, on top of pps. What the text
// leaves open is decided in docs/adr/0012-what-threshold-tuning-leaves-open.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "predict/pps.hpp"

namespace fallow::predict {

struct SppsOptions {
  std::uint32_t skip_gaps = 100;         ///< firstIdleIntervals
  std::uint32_t sample_gaps = 100;       ///< numberIdleIntervals; published: 100 and 400
  double demanded_share = 0.90;          ///< demCumIdleTime: idle time in gaps above the threshold
  double demanded_decay = 0.95;
  double demanded_least = 0.10;          ///< below this the tuning gives up
  double alpha = 4.0;                    ///< tolerance of gaps in the chosen bin
  double bin_gaps = 28.6;                ///< of figure 5.19: ln(1e5) / ln(1.494)
  double margin = 0.10;                  ///< noise of gaps; also half the width of the danger zone
  Nanoseconds histogram_from{17'000};
  Nanoseconds histogram_to{1'700'000'000};
  bool restarts = true;
  double restart_within_patterns = 3.0;  ///< a second gap in the danger zone within so many pattern lengths
  bool skip_again = false;               ///< skip the first gaps after a restart too
  PpsOptions pps;                        ///< its threshold is not used

  /// Least ratio of neighbours between which a threshold fits: noise twice over, 1.494.
  [[nodiscard]] double gap_ratio() const noexcept {
    const double once = (1.0 + margin) / (1.0 - margin);
    return once * once;
  }
};

/// Algorithm 5 on a sample of gaps (ns, any order; it is sorted). Empty: no threshold can be had.
/// O(n log n); `bins` is scratch space of at least sqrt(n) elements. Does not allocate.
struct TuningBin {
  std::uint32_t count = 0;
  double time = 0;
};
std::optional<Nanoseconds> tune_threshold(std::span<std::int64_t> gaps, const SppsOptions& options,
                                          std::span<TuningBin> bins) noexcept;

class SppsPredictor final : public Predictor {
 public:
  explicit SppsPredictor(const SppsOptions& options);
  WaitForecast on_enter(const Call&) noexcept override { return {}; }
  Answer on_exit(const Event& event) noexcept override;
  [[nodiscard]] PredictorState state() const noexcept override;
  [[nodiscard]] bool tuned() const noexcept { return tuned_; }

 private:
  void collect(Nanoseconds gap) noexcept;
  [[nodiscard]] bool endangered(Nanoseconds gap) noexcept;
  void start_tuning(bool skip) noexcept;

  SppsOptions options_;
  PpsPredictor pps_;
  std::vector<std::int64_t> sample_;  // reserved once
  std::vector<TuningBin> bins_;
  std::uint32_t to_skip_ = 0;
  bool tuned_ = false;
  std::uint64_t danger_at_ = 0;       // grams seen when a gap last fell into the danger zone, plus one; 0: never
  Nanoseconds threshold_;
  Nanoseconds last_exit_;
  bool started_ = false;
  std::uint64_t restarts_ = 0;
};

}  // namespace fallow::predict
