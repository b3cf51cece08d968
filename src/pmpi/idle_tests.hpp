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
    Kind& k = kinds_[call % kinds_.size()];
    if (k.call != call) k = {call, 0, 0};
    if (k.seen < kEnough) ++k.seen;
    const std::uint64_t now = std::min(ns, kLongest) << kFraction;
    k.shortest = k.seen == 1 ? now : std::min(k.shortest + (k.shortest >> kForgets), now);
    return k.seen == kEnough && now < kLonger * k.shortest + (kMoreNs << kFraction);
  }

  /// Whether enough tests of this call have been seen to tell.
  bool knows(std::uint32_t call) const noexcept {
    const Kind& k = kinds_[call % kinds_.size()];
    return k.call == call && k.seen == kEnough;
  }

 private:
  static constexpr std::uint32_t kEnough = 16;
  static constexpr unsigned kFraction = 16;   // bits of a nanosecond
  static constexpr unsigned kForgets = 13;    // a lucky minimum is forgotten slowly: by 1/2^13 a test
  static constexpr std::uint64_t kLonger = 2, kMoreNs = 60;  // sending the shortest message takes longer
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 40;
  struct Kind {
    std::uint32_t call = 0, seen = 0;
    std::uint64_t shortest = 0;
  };
  std::array<Kind, 64> kinds_{};  // so many that no two tests of MPI have the same place
};

}  // namespace fallow::pmpi
