#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace fallow {
namespace {

constexpr std::uint64_t kReading = 100;  // each takes so long
constexpr std::uint64_t kAway = 40'000'000;

/// Two clocks that show the same, read by a process that does not have its core for a while before some of the readings.
struct Away {
  std::uint64_t time = 1000;
  int readings = 0;
  int from, to;

  std::uint64_t read() {
    time += kReading + (readings >= from && readings < to ? kAway : 0);
    ++readings;
    return time;
  }
  Instant moment() {
    return same_moment([this] { return read(); }, [this] { return read(); });
  }
};

TEST(Clock, WhoLosesTheCoreBetweenTwoReadingsTakesOthers) {
  for (int from = 0; from < 17; ++from) {
    for (int to = from; to <= from + 12; ++to) {
      const Instant i = Away{.from = from, .to = to}.moment();
      EXPECT_EQ(i.ticks, i.ns) << "away before readings " << from << " to " << to;
    }
  }
}

TEST(Clock, TakesTheSameRateEachTime) {
  const TickClock quiet;
  for (int i = 0; i < 5; ++i) {
    const TickClock clock;
    EXPECT_NEAR(clock.ticks_per_ns() / quiet.ticks_per_ns(), 1.0, 0.05);
  }
}

TEST(Clock, OneMomentLiesBetweenReadingsBeforeAndAfter) {
  const TickClock clock;
  const std::uint64_t before = monotonic_ns(), ticks_before = clock.now();
  const Instant i = clock.instant();
  EXPECT_GE(i.ns, before);
  EXPECT_GE(i.ticks, ticks_before);
  EXPECT_LE(i.ns, monotonic_ns());
  EXPECT_LE(i.ticks, clock.now());
}

}  // namespace
}  // namespace fallow
