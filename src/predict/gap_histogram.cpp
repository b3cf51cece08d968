#include "predict/gap_histogram.hpp"

#include <algorithm>
#include <cmath>

namespace fallow::predict {
namespace {

using Bounds = std::array<std::int64_t, GapHistogram::kBins - 1>;  // of all bins but the first

const Bounds& bounds() noexcept {
  static const Bounds all = [] {
    Bounds b{};
    for (std::size_t i = 0; i < b.size(); ++i) {
      const double exponent = static_cast<double>(i) / GapHistogram::kPerDecade;
      b[i] = std::llround(static_cast<double>(GapHistogram::kFirst.value) * std::pow(10.0, exponent));
    }
    return b;
  }();
  return all;
}

void count(GapHistogram::Bin& bin, Nanoseconds gap) noexcept {
  ++bin.count;
  bin.time += gap;
}

}  // namespace

void GapHistogram::add(Nanoseconds gap) noexcept {
  const auto paper = std::upper_bound(kPaperBounds.begin(), kPaperBounds.end(), gap) - kPaperBounds.begin();
  const auto fine = std::upper_bound(bounds().begin(), bounds().end(), gap.value) - bounds().begin();
  count(papers_[static_cast<std::size_t>(paper)], gap);
  count(bins_[static_cast<std::size_t>(fine)], gap);
}

void GapHistogram::add(const GapHistogram& other) noexcept {
  const auto merge = [](auto& into, const auto& from) {
    for (std::size_t i = 0; i < into.size(); ++i) {
      into[i].count += from[i].count;
      into[i].time += from[i].time;
    }
  };
  merge(papers_, other.papers_);
  merge(bins_, other.bins_);
}

double GapHistogram::lower_bound(std::size_t bin) noexcept {
  return bin == 0 ? 0.0 : static_cast<double>(bounds()[bin - 1]);
}

}  // namespace fallow::predict
