// What the adaptive predictor learns from a gap, and how long it plans to rest.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "predict/adaptive.hpp"
#include "predict/adaptive_learning.hpp"

namespace fallow::predict {
namespace {

using namespace adaptive_detail;

constexpr float kSampleLead = 0.005F, kLastLead = 0.05F;  // shares taken off what the experts expect
constexpr int kUnusual = kCodeOctave * 3 / 4;
constexpr double kLongestSilence = 3.6e12;  // ns

}  // namespace

/// Adds a gap to the window and to the sum over it.
void AdaptivePredictor::keep(Context& c, std::uint16_t code) const noexcept {
  const auto low = [this](std::uint16_t gap) { return gap == 0 ? 0.0 : static_cast<double>(decode_float(gap) - down_); };
  if (c.gaps == SampleWindow::kSize) c.most -= low(c.gap.ring[c.gap_head]);
  c.most += low(code);
  c.gap.insert(code, c.gaps, c.gap_head);
}

/// The gap of the window to which it would have been best to rest each time, ns; 0: not to rest.
/// Of a window of n gaps in order of size, resting to the k-th is worth the k shorter ones (each cut short, and late)
/// and the k-th itself for all that are longer. It is at most worth all gaps together without what is late by then,
/// which ends the search after a few where gaps are steady.
float AdaptivePredictor::best_of_sample(const Context& context) const noexcept {
  const float least = down_ + up_, most = static_cast<float>(context.most);
  unsigned k = 0;
  while (k < context.gaps && context.gap.sorted[k] == 0) ++k;
  float shorter = 0.0F;  // low-power time in the gaps that are slept over
  float best = 0.0F, base = 0.0F;
  float left = static_cast<float>(context.gaps - k), late = static_cast<float>(k) * up_;
  for (; k < context.gaps; ++k) {
    const float gap = decode_float(context.gap.sorted[k]);
    const float cost = price_at(gap) * late;
    if (most - cost <= best) break;
    const float value = shorter + left * (gap - least) - cost;
    base = value > best ? gap : base;
    best = value > best ? value : best;
    shorter += gap - down_;
    left -= 1.0F;
    late += up_;
  }
  return base;
}

/// Sets the sample expert's target for the next visit.
void AdaptivePredictor::plan(Context& context) const noexcept {
  const float sample = best_of_sample(context) * (1.0F - kSampleLead);
  context.target[kSample] = sample > down_ + up_ ? sample : 0.0F;
}

/// Counts visits since the gap was last far from the median.
void AdaptivePredictor::note_unusual(Context& context, std::uint16_t code) noexcept {
  const int median = context.gaps > 0 ? context.gap.sorted[context.gaps / 2U] : code;
  const bool unusual = std::abs(code - median) > kUnusual;
  context.since_unusual = unusual ? std::uint16_t{0} : static_cast<std::uint16_t>(context.since_unusual + 1U);
}

/// Notes the last gap of a call, and sets the target of the expert that goes by it.
void AdaptivePredictor::follow_last(Context& root, std::uint16_t code) const noexcept {
  note_unusual(root, code);
  const float last = code == 0 ? 0.0F : decode_float(code) * (1.0F - kLastLead);
  root.target[kLast] = last > down_ + up_ ? last : 0.0F;
}

void AdaptivePredictor::learn(Context& c, float gap_ns, std::uint16_t code, const Earnings& earnings, bool is_root) const noexcept {
  const float weight = kWeights[std::min<std::size_t>(c.visits, kWeights.size() - 1)];
  if (c.visits < 0xffff) ++c.visits;
  c.rival = nearer(c.rival, earnings.rival, weight);
  if (code == 0 && c.gaps > 0 && c.gap.sorted[c.gaps - 1U] == 0) {  // only short gaps: nothing to plan
    if (c.gaps < SampleWindow::kSize) c.gap.insert(0, c.gaps, c.gap_head);  // adds nothing to the sum
    c.ideal = nearer(c.ideal, 0.0F, weight);
    for (float& score : c.score) score = nearer(score, 0.0F, weight);
    return;
  }
  c.ideal = nearer(c.ideal, larger(0.0F, gap_ns - up_ - down_), weight);
  if (c.visits > 1) {
    c.score[kSample] = nearer(c.score[kSample], earnings.own[kSample], weight);
    if (is_root) c.score[kLast] = nearer(c.score[kLast], earnings.own[kLast], weight);
  }
  if (is_root) follow_last(c, code);
  keep(c, code);
  plan(c);
}

/// A visit that is not learned from: all that is kept of it is the last gap of a call.
void AdaptivePredictor::pass_by(Context& c, std::uint16_t code, bool is_root) const noexcept {
  if (c.visits < 0xffff) ++c.visits;
  if (is_root) follow_last(c, code);
}

/// After how long a silence to rest until the next call, which then waits for the wake-up; not where such gaps have not
/// been worth it, and not before the credit covers the worst.
Nanoseconds AdaptivePredictor::rest_after(double credit) noexcept {
  silence_ = 0.0F;
  if (options_.silence <= 0.0) return {};
  const float cost = price_ * up_;
  const double worst = static_cast<double>(up_) + static_cast<double>(down_);
  const double affordable = credit >= worst ? 0.0 : (worst - credit) / options_.budget;  // may be infinite
  const double silence = static_cast<double>(chosen_) + options_.silence * static_cast<double>(up_);
  const double start = std::max({affordable, silence, 1.0});
  if (!(start < kLongestSilence)) return {};
  if (trusted_ == nullptr) {
    silence_ = static_cast<float>(silence);
    if (unforeseen_ < 0.0F) return {};
  } else {
    const auto from = static_cast<float>(start);
    float value = 0.0F;
    for (unsigned k = trusted_->gaps; k-- > 0;) {
      const float gap = decode_float(trusted_->gap.sorted[k]);
      if (gap <= from) break;
      value += gap - from - down_ - cost;
    }
    if (value < 0.0F) return {};
  }
  return Nanoseconds(static_cast<std::int64_t>(start));
}

}  // namespace fallow::predict
