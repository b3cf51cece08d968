// A program that tests, for tests of what TestLoop makes of it.
#pragma once

#include <cstdint>

#include "pmpi/test_loop.hpp"

namespace fallow::pmpi {

inline constexpr TestLoopLimits kLimits{.gap = 50, .own_gap = 5'000, .interrupt = 60'000, .small = 200, .held_up = 250'000, .slack = 2'000,
                                   .remembered = 20'000'000, .long_enough = 50'000, .after_short = 80'000, .noticed = 6'000, .unseen = 0};
inline const int kHere = 0, kThere[4] = {};

/// A program that tests, a test being 100 ticks long.
struct Program {
  TestLoop loop;
  std::uint64_t now = 1'000'000, events = 0;
  int left = 0;  ///< loops, for something else

  void test_in_vain(std::uint64_t gap = 20, const void* place = &kHere) {
    now += gap;
    const std::uint64_t enter = now;
    now += 100;
    left += loop.in_vain(kLimits, enter, now, events, place) ? 1 : 0;
  }
  void test_for(std::uint64_t ticks, std::uint64_t gap = 20) {
    for (const std::uint64_t end = now + ticks; now < end;) test_in_vain(gap);
  }
  /// True if that ended a wait.
  bool find(const void* place = &kHere, std::uint64_t gap = 20) {
    now += gap;
    const std::uint64_t enter = now;
    now += 100;
    if (loop.ends_wait(kLimits, now)) return loop.found_after(kLimits, enter, now, events, place);
    loop.found();
    return false;
  }
  /// In a test that begins at once.
  void rest_for(std::uint64_t ticks) {
    const std::uint64_t enter = now += 20;
    now += ticks;
    loop.rested(ticks);
    left += loop.in_vain(kLimits, enter, now, events, &kHere) ? 1 : 0;
  }
  bool due() const { return now >= loop.due(); }
  void earn_trust() {
    for (int i = 0; i < 8; ++i, now += 10'000) {
      test_for(200'000);
      find();
    }
  }
  /// Between its tests, for a third of the time.
  void work_for_long() {
    for (int i = 0; i < 50; ++i, now += 60'000) test_for(120'000);
    now += 1'000'000;
  }
};

}  // namespace fallow::pmpi
