#include "sim/silence.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fallow::sim {
namespace {

constexpr float kMostSeen = 2048;      // silences after which all count half
constexpr double kMostRate = 4;        // delay may come at up to so many times the budget while much of it is left, ...
constexpr double kShareLeft = 0.1;     // ... and at the budget's rate when this share of it is
constexpr Time kRiseFades = 8;          // one part of so many with each silence
constexpr float kExpectedLasts = 1 - 1.0F / 32;  // ... of the rests expected on a message's way, before any are seen
constexpr double kLeastLeft = 0.02;     // of the budget, for the price of delay
constexpr double kPriceStep = 1.4;
constexpr int kPrices = 40;

constexpr double us(Time t) noexcept { return static_cast<double>(t) / static_cast<double>(kUs); }

/// Lower bound of a bin: 1, 1.5, 2, 3, 4, 6, ... us.
constexpr Time bound(std::size_t bin) noexcept { return (bin % 2 == 0 ? 2 : 3) * (kUs << (bin / 2)) / 2; }

}  // namespace

std::size_t Silence::bin_of(Time length) noexcept {
  const auto halves = static_cast<std::uint64_t>(2 * length / kUs);  // 2 for the first bin's bound
  if (halves < 2) return kBins;
  const auto octave = static_cast<std::size_t>(std::bit_width(halves) - 2);
  const std::size_t bin = 2 * octave + ((halves >> (octave)) & 1u);
  return std::min(bin, kBins - 1);
}

/// What one more rest may cost: as much as any lately, or as is to be expected.
Time Silence::reserve(const RestState& rest) const noexcept {
  return std::max(rise_, static_cast<Time>(static_cast<double>(expected_rests_) * static_cast<double>(rest.down + rest.up)));
}

double Silence::left(Time at, const SilencePolicy& policy, const RestState& rest) const noexcept {
  const double whole = policy.budget * static_cast<double>(at);
  return whole > 0 ? std::clamp(1 - static_cast<double>(lag_ + reserve(rest)) / whole, 0.0, 1.0) : 0.0;
}

/// From when on one more rest is within the budget, whatever it may cost.
Time Silence::affordable(const SilencePolicy& policy, const RestState& rest) const noexcept {
  const double from = static_cast<double>(lag_ + reserve(rest)) / policy.budget;  // infinite without one
  return from < static_cast<double>(kNever) ? static_cast<Time>(from) : kNever;
}

Time Silence::begin(Time from, Kind kind, const SilencePolicy& policy, const RestState& rest) const noexcept {
  if (from >= kNever) return kNever;
  return std::max(from + timer_[kind], affordable(policy, rest));
}

void Silence::ended(Time at, Time length, Kind kind, const SilencePolicy& policy, const RestState& rest) noexcept {
  before_ = lag_;
  rise_ -= rise_ / kRiseFades;
  expected_rests_ = std::max(1.0F, expected_rests_ * kExpectedLasts);
  const std::size_t bin = bin_of(length);
  if (bin == kBins) return;
  Bin& b = seen_[kind][bin];
  b.count += 1;
  b.time += static_cast<float>(us(length));
  count_ += 1;
  if (--until_choice_ == 0) choose(at, policy, rest);
}

/// The time-out that is worth most at this price.
Silence::Choice Silence::best(Kind kind, double price, const RestState& rest) const noexcept {
  const double down = us(rest.down), up = us(rest.up);
  Choice best;
  double value = 0, count = 0, time = 0;
  for (std::size_t k = kBins; k-- > 0;) {
    const Bin& bin = seen_[kind][k];
    count += static_cast<double>(bin.count);
    time += static_cast<double>(bin.time);
    const double from = us(bound(k));
    // Silences that end during the descent rest for no time; they are few but for the bin itself.
    const double low = std::max(0.0, time - count * (from + down));
    const double late = count * up;
    if (low - price * late <= value) continue;
    value = low - price * late;
    best = {k, low, late};
  }
  return best;
}

void Silence::choose(Time at, const SilencePolicy& policy, const RestState& rest) noexcept {
  until_choice_ = kEach;
  span_ += static_cast<float>(us(at - chosen_at_));
  chosen_at_ = at;
  const double whole = policy.budget * us(at);
  const double unused = whole > 0 ? std::clamp(1 - us(lag_) / whole, 0.0, 1.0) : 0.0;
  const double allowed = policy.budget * std::min(kMostRate, unused / kShareLeft) * static_cast<double>(span_);
  std::array<Choice, kKinds> choice;
  double price = policy.price / std::max(kLeastLeft, left(at, policy, rest));
  for (int k = 0; k < kPrices; ++k, price *= kPriceStep) {
    double late = 0;
    for (const Kind kind : {kPlain, kAfterPlan}) {
      choice[kind] = best(kind, price, rest);
      late += choice[kind].late;
    }
    if (late <= allowed) break;
  }
  // Where nothing that was seen is worth a rest, something longer may yet come: having lost by waiting what the rest costs,
  // it costs at most twice what knowing would have (Karlin et al., 1988).
  const auto unseen = static_cast<Time>(std::min(price * static_cast<double>(rest.up), static_cast<double>(kMs) * 1e6));
  for (const Kind kind : {kPlain, kAfterPlan}) timer_[kind] = choice[kind].bin == kBins ? unseen : bound(choice[kind].bin);
  if (count_ >= kMostSeen) fade();
}

void Silence::fade() noexcept {
  for (auto& kind : seen_) {
    for (Bin& bin : kind) bin.count /= 2, bin.time /= 2;
  }
  count_ /= 2;
  span_ /= 2;
}

}  // namespace fallow::sim
