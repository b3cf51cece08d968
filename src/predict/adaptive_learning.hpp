// How the adaptive predictor averages what it learns: shared by its sources.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace fallow::predict::adaptive_detail {

inline constexpr int kMemory = 32;            // visits over which earnings are averaged
inline constexpr std::uint16_t kSettled = 16;   // visits after which contexts that are not trusted learn from one in so many; at
inline constexpr unsigned kScoreEach = 2;       // random, as counting would pick phases of a loop

/// Weight of the n-th visit in a mean.
inline constexpr std::array<float, kMemory + 1> kWeights = [] {
  std::array<float, kMemory + 1> w{};
  for (std::size_t n = 0; n < w.size(); ++n) w[n] = 1.0F / static_cast<float>(n + 2);
  return w;
}();

/// A mean moved towards what was seen, ns. Fractions of a nanosecond are cut: fading means would end up as
/// denormal numbers, each of which costs as much as the rest of the update.
inline float nearer(float mean, float seen, float weight) noexcept {
  const float moved = mean + weight * (seen - mean);
  return std::fabs(moved) < 0.25F ? 0.0F : moved;
}

}  // namespace fallow::predict::adaptive_detail
