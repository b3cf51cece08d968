#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fallow {
namespace {

const std::set<std::string, std::less<>> kKnown{"compute_w", "gb_s", "name", "react_down_us", "react_us", "w"};

TEST(Nearest, CountsChanges) {
  EXPECT_EQ(spelling_distance("", "abc"), 3U);
  EXPECT_EQ(spelling_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(spelling_distance("recat_us", "react_us"), 1U) << "neighbours exchanged";
  EXPECT_EQ(spelling_distance("React-US", "react_us"), 0U);
}

TEST(Nearest, SuggestsWhatIsNear) {
  EXPECT_EQ(did_you_mean("reactus", kKnown), "; did you mean react_us?");
  EXPECT_EQ(did_you_mean("compute_watts", kKnown), "; did you mean compute_w?");
  EXPECT_EQ(did_you_mean("GB_s", kKnown), "; did you mean gb_s?");
  EXPECT_EQ(did_you_mean("nmea", kKnown), "") << "half of it is another";
  EXPECT_EQ(did_you_mean("names", kKnown), "; did you mean name?");
  EXPECT_EQ(did_you_mean("react", kKnown), "; did you mean react_us?") << "the nearer of those that begin so";
  EXPECT_EQ(did_you_mean("gb_t", std::set<std::string>{"gb_r", "gb_s"}), "; did you mean gb_r?") << "the first of equals";
}

TEST(Nearest, AndNothingElse) {
  for (const char* far : {"", "x", "mhz", "colour", "noise"}) EXPECT_EQ(did_you_mean(far, kKnown), "") << far;
  EXPECT_EQ(did_you_mean(std::string(1 << 20, 'a'), kKnown), "") << "and at once";
}

}  // namespace
}  // namespace fallow
