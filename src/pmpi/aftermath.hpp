// What a sleep leaves behind: a core that slept has lost its caches, and moves what was waited for more slowly.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace fallow::pmpi {

/// How long calls last once what they waited for is there, after a sleep and without: their difference is a delay that sleeping
/// causes, of a long message many times what it is of a short one. One entry a place; places that share one forget each other.
class Aftermath {
 public:
  /// A wait at this place, long enough to be slept in, was over `ns` before its call was.
  void learn(std::uint64_t place, double ns, bool slept) noexcept {
    Entry& e = entries_[place >> 58];
    if (e.place != place) e = {.place = place};
    std::uint32_t& count = slept ? e.slept : e.awake;
    double& mean = slept ? e.slept_ns : e.awake_ns;
    if (count < kMemory) ++count;
    const double most = count == 1 ? ns : std::max(mean, kLeastStepNs);  // one interruption is not to outweigh all others
    mean += std::clamp(ns - mean, -most, most) / count;
  }

  /// By how much calls at this place last longer after a sleep, in ns: `least` where less or too little is known.
  double slower_by(std::uint64_t place, double least) const noexcept {
    const Entry& e = entries_[place >> 58];
    if (e.place != place || e.slept < kEnough || e.awake < kEnough) return least;
    return std::max(least, e.slept_ns - e.awake_ns);
  }

 private:
  static constexpr std::uint32_t kEnough = 4, kMemory = 16;  // calls
  static constexpr double kLeastStepNs = 10e3;
  static constexpr std::size_t kEntries = 64;

  struct Entry {
    std::uint64_t place = 0;
    std::uint32_t slept = 0, awake = 0;
    double slept_ns = 0, awake_ns = 0;
  };

  std::array<Entry, kEntries> entries_{};
};

}  // namespace fallow::pmpi
