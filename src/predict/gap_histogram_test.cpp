#include "predict/gap_histogram.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fallow::predict {
namespace {

TEST(GapHistogram, PaperBinsEndWhereThePapersDo) {
  GapHistogram h;
  for (const std::int64_t gap : {0, 19'999, 20'000, 199'999, 200'000, 5'000'000}) h.add(Nanoseconds(gap));
  EXPECT_EQ(h.papers()[0].count, 2U);
  EXPECT_EQ(h.papers()[1].count, 2U);
  EXPECT_EQ(h.papers()[2].count, 2U);
  EXPECT_EQ(h.papers()[1].time.value, 219'999);
}

TEST(GapHistogram, EveryGapIsInTheBinWhoseBoundsHoldIt) {
  for (double gap = 10; gap < 1e12; gap *= 1.07) {
    GapHistogram h;
    h.add(Nanoseconds(std::llround(gap)));
    for (std::size_t i = 0; i < h.bins().size(); ++i) {
      if (h.bins()[i].count == 0) continue;
      EXPECT_GE(std::round(gap), GapHistogram::lower_bound(i));
      if (i + 1 < h.bins().size()) {
        EXPECT_LT(std::round(gap), GapHistogram::lower_bound(i + 1));
      }
    }
  }
}

TEST(GapHistogram, SumsAddUp) {
  GapHistogram a, b;
  a.add(Nanoseconds(1000));
  b.add(Nanoseconds(1000));
  b.add(Nanoseconds(1'000'000));
  a.add(b);
  std::uint64_t count = 0;
  std::int64_t time = 0;
  for (const GapHistogram::Bin& bin : a.bins()) {
    count += bin.count;
    time += bin.time.value;
  }
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(time, 1'002'000);
}

}  // namespace
}  // namespace fallow::predict
