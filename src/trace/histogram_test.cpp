#include "trace/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace fallow::trace {
namespace {

constexpr std::uint64_t kTicks = 7;

/// The bins that an interval of so many nanoseconds is counted in.
struct Bins {
  explicit Bins(std::uint64_t ns) {
    Histogram h{};
    add_intervals(h, ns, kTicks);
    fine = std::find(std::begin(h.count), std::end(h.count), 1u) - std::begin(h.count);
    coarse = std::find(std::begin(h.coarse_count), std::end(h.coarse_count), 1u) - std::begin(h.coarse_count);
    EXPECT_EQ(h.ticks[fine], kTicks);
    EXPECT_EQ(h.coarse_ticks[coarse], kTicks);
  }
  std::ptrdiff_t fine = 0, coarse = 0;
};

TEST(Histogram, ABinIsTwiceAsWideAsTheOneBefore) {
  EXPECT_EQ(Bins(0).fine, 0);
  EXPECT_EQ(Bins(1).fine, 0);
  for (std::ptrdiff_t bin = 1; bin < 64; ++bin) {
    const std::uint64_t least = std::uint64_t{1} << bin;
    EXPECT_EQ(Bins(least - 1).fine, bin - 1);
    EXPECT_EQ(Bins(least).fine, bin);
  }
  EXPECT_EQ(Bins(~std::uint64_t{0}).fine, 63);
}

TEST(Histogram, ACoarseBinEndsBeforeItsEdge) {
  EXPECT_EQ(Bins(0).coarse, 0);
  EXPECT_EQ(Bins(19'999).coarse, 0);
  EXPECT_EQ(Bins(20'000).coarse, 1);
  EXPECT_EQ(Bins(199'999).coarse, 1);
  EXPECT_EQ(Bins(200'000).coarse, 2);
  EXPECT_EQ(Bins(~std::uint64_t{0}).coarse, 2);
}

TEST(Histogram, SeveralIntervalsAreAddedAsOneAfterTheOther) {
  Histogram together{}, one_by_one{};
  for (const std::uint64_t ns : {100u, 50'000u}) {
    add_intervals(together, ns, 3 * ns, 5);
    for (int i = 0; i < 5; ++i) add_intervals(one_by_one, ns, 3 * ns);
  }
  EXPECT_EQ(together.count[6], 5u);
  EXPECT_EQ(together.ticks[6], 1'500u);
  EXPECT_TRUE(std::ranges::equal(together.count, one_by_one.count));
  EXPECT_TRUE(std::ranges::equal(together.ticks, one_by_one.ticks));
  EXPECT_TRUE(std::ranges::equal(together.coarse_count, one_by_one.coarse_count));
  EXPECT_TRUE(std::ranges::equal(together.coarse_ticks, one_by_one.coarse_ticks));
}

}  // namespace
}  // namespace fallow::trace
