// How long the gaps between calls are, by number and by time: in the papers' three bins (Dickov 2015, table 5.1),
// and on a logarithmic axis (figures 5.16 and 5.17).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace fallow::predict {

class GapHistogram {
 public:
  struct Bin {
    std::uint64_t count = 0;
    Nanoseconds time;
  };
  static constexpr std::array<Nanoseconds, 2> kPaperBounds{Nanoseconds(20'000), Nanoseconds(200'000)};
  static constexpr unsigned kPerDecade = 8, kDecades = 8;  ///< from 100 ns to 10 s
  static constexpr Nanoseconds kFirst{100};
  static constexpr std::size_t kBins = kPerDecade * kDecades + 2;  ///< the first and the last take what is shorter and longer

  void add(Nanoseconds gap) noexcept;
  void add(const GapHistogram& other) noexcept;

  [[nodiscard]] const std::array<Bin, 3>& papers() const noexcept { return papers_; }
  [[nodiscard]] const std::array<Bin, kBins>& bins() const noexcept { return bins_; }
  /// Lower bound of a bin, ns; 0 of the first.
  [[nodiscard]] static double lower_bound(std::size_t bin) noexcept;

 private:
  std::array<Bin, 3> papers_{};
  std::array<Bin, kBins> bins_{};
};

}  // namespace fallow::predict
