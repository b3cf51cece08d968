// How long tests last that find nothing: one that lasts longer may have sent something.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace fallow::pmpi {

/// By call: tests of different requests last differently. All zero is the state of knowing nothing.
class IdleTests {
 public:
  /// A test of this call has found nothing, in `ns`. Whether it lasted no longer than those that do nothing.
  bool is_idle(std::uint32_t call, double ns) noexcept {
    Kind& k = kinds_[call % kinds_.size()];
    if (k.call != call) k = {call, 0, 0};
    if (k.seen < kEnough) ++k.seen;
    k.shortest_ns = k.seen == 1 ? ns : std::min(k.shortest_ns * kForgets, ns);
    return k.seen == kEnough && ns < kLonger * k.shortest_ns + kMoreNs;
  }

 private:
  static constexpr std::uint32_t kEnough = 16;
  static constexpr double kForgets = 1 + 1e-4;  // a lucky minimum is forgotten slowly
  static constexpr double kLonger = 2, kMoreNs = 60;  // sending the shortest message takes longer
  struct Kind {
    std::uint32_t call = 0, seen = 0;
    double shortest_ns = 0;
  };
  std::array<Kind, 8> kinds_{};
};

}  // namespace fallow::pmpi
