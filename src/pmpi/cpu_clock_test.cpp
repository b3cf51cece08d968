#include "pmpi/cpu_clock.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace fallow::pmpi {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

std::uint64_t thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

void compute(std::uint64_t ns) {
  for (const std::uint64_t end = thread_ns() + ns; thread_ns() < end;) {
  }
}

void sleep(std::uint64_t ns) {
  const timespec t{0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

class OfAThread : public ::testing::Test {
 protected:
  void SetUp() override { cpu.start(clock); }
  const TickClock clock;
  CpuClock cpu;
};

TEST_F(OfAThread, ComputationCounts) {
  for (const std::uint64_t ns : {kMs, 20 * kMs}) {
    cpu.mark();
    const std::uint64_t before = thread_ns();
    compute(ns);
    const std::uint64_t read = cpu.since_mark(), after = thread_ns();
    EXPECT_GE(read, ns * 98 / 100);
    EXPECT_LE(read, (after - before) * 102 / 100 + 20'000);
  }
}

TEST_F(OfAThread, SleepDoesNot) {
  cpu.mark();
  sleep(30 * kMs);
  compute(5 * kMs);
  sleep(30 * kMs);
  const std::uint64_t read = cpu.since_mark();
  EXPECT_GE(read, 5 * kMs * 98 / 100);
  EXPECT_LT(read, 15 * kMs);
}

TEST_F(OfAThread, WhatOthersComputeDoesNot) {
  cpu.mark();
  std::thread([] { compute(30 * kMs); }).join();
  EXPECT_LT(cpu.since_mark(), 15 * kMs);
}

TEST_F(OfAThread, WhatAReadingCostsIsTakenOff) {
  const auto median = [](auto&& of) {
    std::vector<std::uint64_t> all(501);
    for (std::uint64_t& one : all) one = of();
    std::nth_element(all.begin(), all.begin() + 250, all.end());
    return all[250];
  };
  const std::uint64_t cost = median([] {
    const std::uint64_t before = thread_ns();
    return thread_ns() - before;
  });
  EXPECT_LE(median([this] { return cpu.mark(), cpu.since_mark(); }), cost / 2 + 20);
}

TEST_F(OfAThread, EachMarkBeginsAnew) {
  compute(5 * kMs);
  const std::uint64_t read = cpu.since_mark();
  EXPECT_GE(read, 4 * kMs) << "start() marks";
  EXPECT_LT(read, 15 * kMs) << "start() marks";
  cpu.mark();
  EXPECT_LT(cpu.since_mark(), 2 * kMs);
}

TEST(CpuClock, IsActiveBetweenStartAndStop) {
  const TickClock clock;
  CpuClock cpu;
  EXPECT_FALSE(cpu.active());
  for (int i = 0; i < 2; ++i) {
    cpu.start(clock);
    EXPECT_TRUE(cpu.active());
    cpu.stop();
    EXPECT_FALSE(cpu.active());
  }
}

}  // namespace
}  // namespace fallow::pmpi
