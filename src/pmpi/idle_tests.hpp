// How long tests last that find nothing: one that lasts longer may have sent something.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace fallow::pmpi {

/// By call: tests of different requests last differently. All zero is the state of knowing nothing. Integers only, so that the
/// program's floating-point state is left alone.
class IdleTests {
 public:
  /// A test of this call has found nothing, in `ns`. Whether it lasted no longer than those that do nothing.
  bool is_idle(std::uint32_t call, std::uint64_t ns) noexcept {
    Kind& k = kind(call);
    if (k.seen < kEnough) ++k.seen;
    const std::uint64_t now = std::min(ns, kLongest) << kFraction;
    k.shortest = k.seen == 1 ? now : std::min(k.shortest + (k.shortest >> kForgets), now);
    return k.seen == kEnough && no_longer_than(k.shortest, now);
  }

  /// The same of a test that is timed with code of ours, or comes after it, which took its place in the core's caches. Most such
  /// tests last as long as usual, not as long as the shortest; where most move something, that is too long to be usual.
  bool is_idle_beside_ours(std::uint32_t call, std::uint64_t ns) noexcept {
    Kind& k = kind(call);
    const std::uint64_t now = std::min(ns, kLongest) << kFraction;
    if (k.seen_beside == 0) k.shortest_beside = k.usual_beside = now;
    if (k.seen_beside < kEnough) ++k.seen_beside;
    k.shortest_beside = std::min(k.shortest_beside + (k.shortest_beside >> kForgetsBeside), now);
    const bool idle = k.seen_beside == kEnough && no_longer_than(k.usual_beside, now);
    const std::uint64_t step = k.usual_beside >> kFollows;
    k.usual_beside = std::min(now > k.usual_beside ? k.usual_beside + step : k.usual_beside - step, kUsual * k.shortest_beside);
    return idle;
  }

  /// Whether enough tests of this call have been seen to tell.
  bool knows_beside_ours(std::uint32_t call) const noexcept {
    const Kind& k = kinds_[call % kinds_.size()];
    return k.call == call && k.seen_beside == kEnough;
  }

 private:
  static constexpr std::uint32_t kEnough = 16;
  static constexpr unsigned kFraction = 16;   // bits of a nanosecond
  static constexpr unsigned kForgets = 13;    // a lucky minimum is forgotten slowly: by 1/2^13 a test
  static constexpr std::uint64_t kLonger = 2, kMoreNs = 60;  // sending the shortest message takes longer
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 40;
  static constexpr unsigned kFollows = 4, kForgetsBeside = 7;  // by 1/2^4 a test: half of them are shorter
  static constexpr std::uint64_t kUsual = 4;
  struct Kind {
    std::uint32_t call = 0, seen = 0, seen_beside = 0;
    std::uint64_t shortest = 0, shortest_beside = 0, usual_beside = 0;
  };

  static bool no_longer_than(std::uint64_t idle, std::uint64_t now) noexcept { return now < kLonger * idle + (kMoreNs << kFraction); }
  Kind& kind(std::uint32_t call) noexcept {
    Kind& k = kinds_[call % kinds_.size()];
    if (k.call != call) k = {.call = call};
    return k;
  }

  std::array<Kind, 64> kinds_{};  // so many that no two tests of MPI have the same place
};

}  // namespace fallow::pmpi
