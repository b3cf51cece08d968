#include "trace/trace_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fallow::trace {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kAhead = 10'000'000;

/// It is `ns` at `ticks`, and goes at `rate`.
void correct(TraceClock& clock, std::uint64_t ticks, std::uint64_t ns, double rate) {
  clock.correct({ticks, ns, rate}, ticks + kAhead, [ticks] { return ticks; });
}

TEST(TraceClock, GoesOnWithinASecondAsItWasRead) {
  TraceClock clock({1000, 0, 0.5});
  TraceClockReader reader(clock);
  EXPECT_EQ(reader.to_ns(1000), 0u);
  EXPECT_EQ(reader.to_ns(900), 0u) << "before it began";
  EXPECT_EQ(reader.to_ns(3000), 1000u);
  correct(clock, 1000 + 2 * kSecond, kSecond + 50'000, 0.5);  // 50 us behind
  reader.refresh();
  EXPECT_EQ(reader.to_ns(1000 + 2 * kSecond), kSecond) << "nothing changes of what was asked for";
  EXPECT_NEAR(static_cast<double>(reader.to_ns(1000 + 4 * kSecond)), 2e9 + 50'000, 2);
  EXPECT_NEAR(static_cast<double>(reader.to_ns(1000 + 400 * kSecond)), 200e9 + 50'000, 20) << "it goes on no faster than that";
  EXPECT_EQ(reader.to_ns(3000), 1000u);
}

TEST(TraceClock, NeverGoesBackwards) {
  TraceClock clock({0, 0, 1.0});
  correct(clock, kSecond, kSecond / 4, 1.0);  // as far ahead as a clock can be that is read by two
  TraceClockReader reader(clock);
  std::uint64_t last = 0;
  for (std::uint64_t t = 0; t < 4 * kSecond; t += kSecond / 1000) {
    const std::uint64_t ns = reader.to_ns(t);
    EXPECT_GE(ns, last);
    EXPECT_GE(ns - last, t == 0 ? 0 : kSecond / 1000 / 2 - 1) << "it goes on at half its pace at least";
    last = ns;
  }
}

TEST(TraceClock, IsLeftAsItIsWhereThatIsTooLateOrWouldChangeNothing) {
  TraceClock clock({0, 0, 1.0});
  clock.correct({kSecond, 2 * kSecond, 1.0}, kSecond + kAhead, [] { return kSecond + kAhead; });
  clock.correct({kSecond, 2 * kSecond, 1.0}, kSecond, [] { return std::uint64_t{0}; });
  correct(clock, kSecond, 2 * kSecond, 0.0);
  correct(clock, kSecond, kSecond + 10, 1.0);
  EXPECT_EQ(TraceClockReader(clock).to_ns(9 * kSecond), 9 * kSecond);
}

TEST(TraceClock, WhatWasReadBeforeTheLastCorrectionIsTooOld) {
  TraceClock clock({0, 0, 1.0});
  correct(clock, 2 * kSecond, 2 * kSecond + 1000, 1.0);
  clock.correct({kSecond, 3 * kSecond, 1.0}, 4 * kSecond, [] { return 2 * kSecond; });
  EXPECT_NEAR(static_cast<double>(TraceClockReader(clock).to_ns(9 * kSecond)), 9e9 + 1000, 2);
}

TEST(TraceClock, HasRoomForSoManyCorrections) {
  TraceClock clock({0, 0, 1.0});
  for (std::uint64_t s = 1; s < 2 * TraceClock::kCorrections; ++s) correct(clock, s * kSecond, s * kSecond + s * 1000, 1.0);
  TraceClockReader reader(clock);
  EXPECT_NEAR(static_cast<double>(reader.to_ns(TraceClock::kCorrections * kSecond)), (1e9 + 1000) * TraceClock::kCorrections, 1100);
  EXPECT_EQ(reader.to_ns(0), 0u);
}

/// Threads that ask while it is corrected have the same times as one that asks afterwards.
TEST(TraceClock, IsTheSameForAllThreads) {
  TraceClock clock({0, 0, 1.001});
  std::atomic<std::uint64_t> now{1};
  std::atomic<bool> over{false};
  struct Asked {
    std::uint64_t ticks, ns;
  };
  std::vector<std::vector<Asked>> asked(3);
  std::vector<std::thread> threads;
  for (auto& own : asked) {
    threads.emplace_back([&] {
      TraceClockReader reader(clock);
      while (!over && own.size() < 200'000) {
        const std::uint64_t ticks = now.fetch_add(200'000);
        reader.refresh();
        own.push_back({ticks, reader.to_ns(ticks)});
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t read = now.load();
    clock.correct({read, read, 1.0 + 1e-6 * i}, read + kAhead, [&] { return now.load(); });
    std::this_thread::yield();
  }
  over = true;
  for (auto& t : threads) t.join();
  TraceClockReader reader(clock);
  for (const auto& own : asked) {
    for (const Asked& a : own) ASSERT_EQ(reader.to_ns(a.ticks), a.ns) << a.ticks;
  }
  EXPECT_NE(clock.first()->next.load(), nullptr);
}

}  // namespace
}  // namespace fallow::trace
