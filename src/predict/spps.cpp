#include "predict/spps.hpp"

#include <algorithm>
#include <cmath>

namespace fallow::predict {
namespace {

/// The histogram's logarithmic axis; the last bin takes all that is longer.
struct Axis {
  double from, ratio;
  std::size_t bins;

  Axis(const SppsOptions& o, std::size_t n)
      : from(static_cast<double>(o.histogram_from.value)),
        ratio(std::pow(o.histogram_to / o.histogram_from, 1.0 / static_cast<double>(n))),
        bins(n) {}
  [[nodiscard]] std::size_t bin(std::int64_t gap) const noexcept {
    const double at = std::log(static_cast<double>(gap) / from) / std::log(ratio);
    return at <= 0.0 ? 0 : std::min(bins - 1, static_cast<std::size_t>(at));
  }
  [[nodiscard]] double low(std::size_t b) const noexcept { return from * std::pow(ratio, static_cast<double>(b)); }
};

/// The finalization phase: the first place in the bin that is wide enough for a threshold.
std::optional<Nanoseconds> place_in_bin(std::span<const std::int64_t> sorted, double low, double high,
                                        const SppsOptions& o) noexcept {
  const double wide = o.gap_ratio();
  double smaller = low;
  const auto threshold = [&o](double below) {
    return Nanoseconds(std::llround((1.0 + o.margin) * below / (1.0 - o.margin)));
  };
  for (const std::int64_t gap : sorted) {
    const auto x = static_cast<double>(gap);
    if (x <= low || x >= high) continue;
    if (x / smaller >= wide) return threshold(smaller);
    smaller = x;
  }
  if (high / smaller >= wide) return threshold(smaller);
  return std::nullopt;
}

}  // namespace

std::optional<Nanoseconds> tune_threshold(std::span<std::int64_t> gaps, const SppsOptions& options,
                                          std::span<TuningBin> bins) noexcept {
  const auto n_bins = std::min(bins.size(), static_cast<std::size_t>(std::sqrt(static_cast<double>(gaps.size()))));
  if (n_bins == 0) return std::nullopt;
  std::sort(gaps.begin(), gaps.end());
  const Axis axis(options, n_bins);
  std::fill(bins.begin(), bins.end(), TuningBin{});
  double total = 0.0;
  for (const std::int64_t gap : gaps) {
    TuningBin& bin = bins[axis.bin(gap)];
    ++bin.count;
    bin.time += static_cast<double>(gap);
    total += static_cast<double>(gap);
  }
  const double few = std::floor(options.alpha * (options.bin_gaps / static_cast<double>(n_bins)));
  double demanded = options.demanded_share;
  for (; demanded >= options.demanded_least; demanded *= options.demanded_decay) {
    double below = 0.0;  // idle time in bins up to and with this one
    std::size_t acceptable = 0;
    std::size_t best = n_bins;
    for (; acceptable < n_bins; ++acceptable) {
      below += bins[acceptable].time;
      if (below >= (1.0 - demanded) * total) break;
      if (best == n_bins || bins[acceptable].count <= bins[best].count) best = acceptable;
    }
    if (acceptable == 0) return std::nullopt;
    if (static_cast<double>(bins[best].count) >= few) continue;
    if (const auto threshold = place_in_bin(gaps, axis.low(best), axis.low(best + 1), options)) return threshold;
  }
  return std::nullopt;
}

SppsPredictor::SppsPredictor(const SppsOptions& options) : options_(options), pps_(options.pps) {
  options_.sample_gaps = std::max(1U, options.sample_gaps);
  sample_.reserve(options_.sample_gaps);
  bins_.resize(static_cast<std::size_t>(std::sqrt(static_cast<double>(options_.sample_gaps))) + 1);
  start_tuning(true);
}

void SppsPredictor::start_tuning(bool skip) noexcept {
  tuned_ = false;
  sample_.clear();
  to_skip_ = skip ? options_.skip_gaps : 0;
  danger_at_ = 0;
}

void SppsPredictor::collect(Nanoseconds gap) noexcept {
  if (gap < options_.pps.react.down + options_.pps.react.up) return;
  if (to_skip_ > 0) {
    --to_skip_;
    return;
  }
  sample_.push_back(gap.value);  // within what was reserved
  if (sample_.size() < options_.sample_gaps) return;
  const auto threshold = tune_threshold(sample_, options_, bins_);
  sample_.clear();  // a sample without an answer is replaced by the next
  if (!threshold) return;
  threshold_ = *threshold;
  pps_.restart(threshold_);
  tuned_ = true;
}

/// Whether this is the second gap near the threshold within a few pattern lengths.
bool SppsPredictor::endangered(Nanoseconds gap) noexcept {
  const double ratio = gap / threshold_;
  if (ratio < 1.0 - options_.margin || ratio > 1.0 + options_.margin) return false;
  const std::uint64_t now = pps_.grams().size() + 1;
  const double within = options_.restart_within_patterns * pps_.pattern_size();
  const bool again = danger_at_ != 0 && static_cast<double>(now - danger_at_) <= within;
  danger_at_ = now;
  return again;
}

Answer SppsPredictor::on_exit(const Event& event) noexcept {
  const Nanoseconds gap = event.enter - last_exit_;
  const bool has_gap = started_;
  started_ = true;
  last_exit_ = event.exit;
  if (has_gap && !tuned_) {
    collect(gap);
  } else if (has_gap && options_.restarts && endangered(gap)) {
    ++restarts_;
    start_tuning(options_.skip_again);
  }
  return tuned_ ? pps_.on_exit(event) : Answer{};
}

PredictorState SppsPredictor::state() const noexcept {
  PredictorState s = pps_.state();
  s.threshold = tuned_ ? threshold_ : Nanoseconds(0);
  s.restarts += restarts_;
  s.memory_bytes += sample_.capacity() * sizeof(std::int64_t) + bins_.size() * sizeof(TuningBin);
  return s;
}

}  // namespace fallow::predict
