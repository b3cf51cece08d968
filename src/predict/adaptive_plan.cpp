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

constexpr float kMostLead = 0.6F;
constexpr float kNear = 0.01F;         // gaps so near the target (relative) show how dense they are there
constexpr float kStep = 2e-4F;         // of the leads' gradient, once settled ...
constexpr float kFirstStep = 2e-3F;    // ... and at first
constexpr float kMostStep = 0.02F;
constexpr int kUnusual = kCodeOctave * 3 / 4;
constexpr double kLongestSilence = 3.6e12;  // ns

constexpr std::array<float, 256> kSteps = [] {
  std::array<float, 256> s{};
  for (std::size_t n = 0; n < s.size(); ++n) s[n] = kStep + kFirstStep * 8.0F / (8.0F + static_cast<float>(n));
  return s;
}();

}  // namespace

/// Moves a lead along the gradient of what it earns: less lead is worth the gap's length in each gap, and costs
/// a delay as often as gaps end near the target.
void AdaptivePredictor::adjust_lead(Context& context, int expert, float gap_ns) const noexcept {
  const float target = context.target[expert];
  if (target <= 0.0F) return;
  const float step = kSteps[std::min<std::size_t>(context.visits, kSteps.size() - 1)];
  const float near_step = std::min(kMostStep, step * (price_at(target) * up_ / (target * 2.0F * kNear) - 1.0F));
  const float change = std::fabs(gap_ns - target) < kNear * target ? near_step : -step;
  context.lead[expert] = std::clamp(context.lead[expert] + change, 0.0F, kMostLead);
}

/// Chooses the base of the sample expert: the gap to which it would have been best to rest each time.
/// Of a window of n gaps in order of size, resting to the k-th is worth the k shorter ones (each cut short, and late)
/// and the k-th itself for all that are longer. The loops have no branches and a fixed length, so that compilers can use
/// vectors; places beyond the n-th hold gaps that nothing is worth.
void AdaptivePredictor::choose_base(Context& context) const noexcept {
  const float n = static_cast<float>(context.gaps), least = down_ + up_;
  float shorter = 0.0F;  // low-power time in the gaps that are slept over
  float best = 0.0F, base = 0.0F, left = n, before = 0.0F;
  unsigned k = 0;
  while (k < context.gaps && context.gap.sorted[k] == 0) ++k;
  before = static_cast<float>(k) * up_;
  left = n - static_cast<float>(k);
  for (; k < context.gaps; ++k) {
    const float gap = decode_float(context.gap.sorted[k]);
    const float value = shorter + left * (gap - least) - price_at(gap) * before;
    base = value > best ? gap : base;
    best = value > best ? value : best;
    shorter += gap - down_;
    left -= 1.0F;
    before += up_;
  }
  context.base = base;
}

/// Sets the target of the expert that goes by the last gap.
void AdaptivePredictor::plan_last(Context& context) const noexcept {
  const float last = context.last == 0 ? 0.0F : decode_float(context.last) * (1.0F - context.lead[kLast]);
  context.target[kLast] = last > down_ + up_ ? last : 0.0F;
}

/// Sets both experts' targets for the next visit.
void AdaptivePredictor::plan(Context& context) const noexcept {
  plan_last(context);
  const float sample = context.base * (1.0F - context.lead[kSample]);
  context.target[kSample] = sample > down_ + up_ ? sample : 0.0F;
}

/// Counts visits since the gap was last far from the median.
void AdaptivePredictor::note_unusual(Context& context, std::uint16_t code) noexcept {
  const int median = context.gaps > 0 ? context.gap.sorted[context.gaps / 2U] : code;
  const bool unusual = std::abs(code - median) > kUnusual;
  context.since_unusual = unusual ? std::uint16_t{0} : static_cast<std::uint16_t>(context.since_unusual + 1U);
}

void AdaptivePredictor::learn(Context& c, float gap_ns, std::uint16_t code, const Earnings& earnings) const noexcept {
  const float weight = kWeights[std::min<std::size_t>(c.visits, kWeights.size() - 1)];
  if (c.visits < 0xffff) ++c.visits;
  c.rival = nearer(c.rival, earnings.rival, weight);
  if (code == 0 && c.gaps > 0 && c.gap.sorted[c.gaps - 1U] == 0) {  // only short gaps: nothing to plan
    if (c.gaps < SampleWindow::kSize) c.gap.insert(0, c.gaps, c.gap_head);
    c.ideal = nearer(c.ideal, 0.0F, weight);
    for (float& score : c.score) score = nearer(score, 0.0F, weight);
    return;
  }
  c.ideal = nearer(c.ideal, std::max(0.0F, gap_ns - up_ - down_), weight);
  for (int e = 0; e < kExperts; ++e) {
    if (c.visits > 1) c.score[e] = nearer(c.score[e], earnings.own[e], weight);
    adjust_lead(c, e, gap_ns);
  }
  note_unusual(c, code);
  c.last = code;
  c.gap.insert(code, c.gaps, c.gap_head);
  choose_base(c);
  plan(c);
}

/// A visit that is not scored: all that is kept of it is the last gap.
void AdaptivePredictor::pass_by(Context& c, std::uint16_t code) const noexcept {
  if (c.visits < 0xffff) ++c.visits;
  c.last = code;
  note_unusual(c, code);
  plan_last(c);
}

/// After how long a silence to rest until the next call, which then waits for the wake-up: as soon as that costs no more
/// than what has been lost by waiting, so that at most twice the best is paid whatever comes; not where such gaps have
/// not been worth it, and not before the credit covers the worst.
Nanoseconds AdaptivePredictor::rest_after(double credit) const noexcept {
  if (options_.silence <= 0.0) return {};
  const float cost = price_ * up_;
  const double worst = static_cast<double>(up_) + static_cast<double>(down_);
  const double affordable = credit >= worst ? 0.0 : (worst - credit) / options_.budget;  // may be infinite
  const double silence = static_cast<double>(chosen_) + options_.silence * static_cast<double>(cost);
  const double start = std::max({affordable, silence, 1.0});
  if (!(start < kLongestSilence)) return {};
  if (trusted_ != nullptr) {
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
