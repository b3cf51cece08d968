#include "pmpi/contention.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace fallow::pmpi {
namespace {

constexpr double kMs = 1e6;
constexpr Crowd kMany{4, 2}, kFew{3, 2}, kNone{2, 2}, kNotTold{0, 2};

TEST(Contention, OthersAreToBlameForWhatWasWaitedForACore) {
  Contention c;
  c.begin(1000);
  EXPECT_EQ(c.judge(4 * kMs, 10 * kMs, {1000 + 3'900'000}, kMany), Interruption::others);
  EXPECT_EQ(c.judge(4 * kMs, 20 * kMs, {1000 + 3'900'000 + 10'000}, kMany), Interruption::elsewhere);
  EXPECT_EQ(c.judge(0.5 * kMs, 30 * kMs, {1000 + 9'000'000}, kMany), Interruption::none);
  EXPECT_EQ(c.judge(4 * kMs, 40 * kMs, {1000 + 9'000'000}, kMany), Interruption::elsewhere);  // what was queued before is not counted again
}

TEST(Contention, OneInterruptionMayBeAnything) {
  Contention c;
  c.begin(0);
  EXPECT_EQ(c.judge(4 * kMs, 10 * kMs, {4'000'000}, kMany), Interruption::others);
  EXPECT_FALSE(c.contended(10 * kMs));
  EXPECT_EQ(c.judge(4 * kMs, 200 * kMs, {8'000'000}, kMany), Interruption::others);
  EXPECT_FALSE(c.contended(200 * kMs));
  EXPECT_EQ(c.judge(4 * kMs, 250 * kMs, {12'000'000}, kMany), Interruption::others);
  EXPECT_TRUE(c.contended(250 * kMs));
  EXPECT_TRUE(c.contended(749 * kMs));
  EXPECT_FALSE(c.contended(751 * kMs));
}

TEST(Contention, WhatTheMachineDoesIsNoContention) {
  Contention c;
  c.begin(0);
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(c.judge(5 * kMs, i * 10 * kMs, {1000}, kMany), Interruption::elsewhere);
    EXPECT_FALSE(c.contended(i * 10 * kMs));
  }
}

TEST(Contention, OthersAreToBlameWhereTheKernelDoesNotTell) {
  Contention c;
  EXPECT_EQ(c.judge(2 * kMs, 10 * kMs, {Contention::kUnknown}, kMany), Interruption::others);
  EXPECT_EQ(c.judge(2 * kMs, 20 * kMs, {Contention::kUnknown}, kMany), Interruption::others);
  EXPECT_TRUE(c.contended(20 * kMs));
  EXPECT_EQ(c.judge(2 * kMs, 30 * kMs, {5}, kMany), Interruption::others);  // the first reading has nothing to be compared with
}

TEST(Contention, FewAreNotToBlame) {
  Contention c;
  c.begin(0);
  for (int i = 1; i <= 20; ++i) {  // or a hypervisor runs the processor late: the thread is queued meanwhile, too
    EXPECT_EQ(c.judge(5 * kMs, i * 10 * kMs, {static_cast<std::uint64_t>(i) * 5'000'000}, kFew), Interruption::elsewhere);
    EXPECT_FALSE(c.contended(i * 10 * kMs));
  }
}

TEST(Contention, WhatCanRunForAMomentDoesNotMakeMany) {
  Contention few, many;
  std::uint64_t queued = 0;
  few.begin(queued);
  many.begin(queued);
  for (int i = 1; i <= 40; ++i) {
    queued += 5'000'000;
    EXPECT_EQ(few.judge(5 * kMs, i * 10 * kMs, {queued}, i % 4 == 0 ? kMany : kFew), Interruption::elsewhere) << i;
    EXPECT_EQ(many.judge(5 * kMs, i * 10 * kMs, {queued}, i % 4 == 3 ? kFew : kMany), Interruption::others) << i;
  }
}

TEST(Contention, ThoseThatCameAndWentAreForgotten) {
  Contention c;
  std::uint64_t queued = 0;
  const auto judge = [&c, &queued](double runnable) { return c.judge(5 * kMs, 0, {queued += 5'000'000}, {runnable, 2}); };
  c.begin(queued);
  EXPECT_EQ(judge(8), Interruption::others);
  for (int i = 0; i < 30; ++i) judge(2);
  EXPECT_EQ(judge(2), Interruption::elsewhere);
  for (int i = 0; i < 30; ++i) judge(8);
  EXPECT_EQ(judge(8), Interruption::others);
}

TEST(Contention, WhatCannotBeCountedMayBeMany) {
  Contention c;
  c.begin(0);
  EXPECT_EQ(c.judge(5 * kMs, 0, {5'000'000}, kFew), Interruption::elsewhere);
  EXPECT_EQ(c.judge(5 * kMs, 0, {10'000'000}, kNotTold), Interruption::others);
}

/// What becomes of rivals_until_ns() when such a crowd has the core for 5 ms each `every_ms`, of which the thread is queued for `queued_ms`.
double rivals_until(const Crowd& crowd, double every_ms, double queued_ms) {
  Contention c;
  double queued = 0;
  c.begin(0);
  for (int i = 1; i <= 10; ++i) c.judge(5 * kMs, i * every_ms * kMs, {static_cast<std::uint64_t>(queued += queued_ms * kMs)}, crowd);
  return c.rivals_until_ns();
}

TEST(Contention, AFewThatComeAgainSoonAreRivalsForHalfASecond) {
  EXPECT_EQ(rivals_until(kFew, 50, 4.5), 1000 * kMs);
  EXPECT_LT(rivals_until(kFew, 110, 4.5), 0) << "each may be anything";
  EXPECT_LT(rivals_until(kFew, 50, 1), 0) << "the machine had it";
  EXPECT_LT(rivals_until(kNone, 50, 4.5), 0) << "a hypervisor had it";
  EXPECT_LT(rivals_until(kMany, 50, 4.5), 0) << "these are many";
  EXPECT_EQ(rivals_until({17, 16}, 50, 4.5), 1000 * kMs);
  EXPECT_LT(rivals_until({16.4, 16}, 50, 4.5), 0) << "now and then one";
}

/// The kernel's counts of a thread that is queued for `queued_ms` in all, of a process whose groups were throttled for `throttled_ms`.
KernelCounts counts(double queued_ms, double throttled_ms) {
  return {static_cast<std::uint64_t>(queued_ms * kMs), static_cast<std::uint64_t>(throttled_ms * kMs)};
}

TEST(Contention, ALimitIsToBlameForWhatTheProcessStoodStill) {
  Contention c;
  c.begin(0);
  c.begin_throttled(70'000'000);
  EXPECT_EQ(c.judge(40 * kMs, 1000 * kMs, counts(0, 109), kNone), Interruption::others);
  EXPECT_TRUE(c.limited(1000 * kMs)) << "once is enough: who else would have been throttled?";
  EXPECT_TRUE(c.limited(5999 * kMs));
  EXPECT_FALSE(c.limited(6001 * kMs));
  EXPECT_FALSE(c.contended(1000 * kMs)) << "nobody wants this core";
  EXPECT_EQ(c.judge(40 * kMs, 1100 * kMs, counts(39, 109), kFew), Interruption::elsewhere) << "what was throttled before is not counted again";
  EXPECT_EQ(c.judge(0.9 * kMs, 7000 * kMs, counts(39, 149), kNone), Interruption::none);
  EXPECT_FALSE(c.limited(7000 * kMs)) << "for less than an interruption";
  EXPECT_EQ(c.judge(40 * kMs, 7100 * kMs, counts(39, 168), kNone), Interruption::elsewhere);
  EXPECT_FALSE(c.limited(7100 * kMs)) << "for less than half of it";
}

TEST(Contention, WhoStoppedTheProcessIsToBlameAndWantsNoCore) {
  Contention c;
  c.begin(0);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(c.judge(200 * kMs, i * 250 * kMs, {0}, kNone), Interruption::others);
  EXPECT_EQ(c.judge(10'000 * kMs, 20'000 * kMs, {9'900'000'000}, kFew), Interruption::others);
  EXPECT_EQ(c.judge(199 * kMs, 20'200 * kMs, {9'900'000'000}, kNone), Interruption::elsewhere);
  EXPECT_FALSE(c.contended(20'200 * kMs));
  EXPECT_FALSE(c.limited(20'200 * kMs));
  EXPECT_LT(c.rivals_until_ns(), 0);
}

TEST(Contention, WithoutALimitNothingIsLimited) {
  Contention c;
  c.begin(0);
  c.begin_throttled(Contention::kUnknown);
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(c.judge(40 * kMs, i * 50 * kMs, {0}, kNone), Interruption::elsewhere);
  EXPECT_FALSE(c.limited(500 * kMs));
  EXPECT_EQ(c.judge(40 * kMs, 550 * kMs, counts(0, 1000), kNone), Interruption::elsewhere) << "the first reading has nothing to be compared with";
  EXPECT_FALSE(c.limited(550 * kMs));
}

TEST(Contention, ReadsHowManyThreadsCanRun) {
  EXPECT_EQ(runnable_threads("0.43 1.51 2.03 3/211 12345\n"), 3u);
  EXPECT_EQ(runnable_threads("0.43 1.51 2.03 412/2110 12345\n"), 412u);
  EXPECT_EQ(runnable_threads(""), 0u);
  EXPECT_EQ(runnable_threads("0.43 1.51 2.03 "), 0u);
  EXPECT_EQ(runnable_threads("0.43 1.51 2.03 x/2"), 0u);
  EXPECT_EQ(runnable_threads("/"), 0u);
  EXPECT_EQ(runnable_threads("0.43 1.51 2.03 12345\n"), 0u);
}

TEST(Contention, CountsThisThread) {
  const Crowd crowd = crowd_now();
  EXPECT_EQ(crowd.processors, static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(crowd.runnable >= 1, access("/proc/loadavg", R_OK) == 0);
}

TEST(Contention, AskingLeavesNothingOpen) {
  const auto lowest_free = [] {
    const int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
  };
  const int before = lowest_free();
  queued_ns();
  crowd_now();
  EXPECT_EQ(lowest_free(), before);
}

/// Two processes on one core: each waits for it about as long as the other computes.
TEST(Contention, TheKernelTellsHowLongAnotherHadTheCore) {
  const std::uint64_t before = queued_ns();
  if (before == Contention::kUnknown) {  // then only because this kernel does not say it
    EXPECT_NE(access("/proc/thread-self/schedstat", R_OK), 0);
    return;
  }
  cpu_set_t old{}, one{};
  ASSERT_EQ(sched_getaffinity(0, sizeof old, &old), 0);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &old)) {
      CPU_SET(i, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) asm volatile("");
  }
  ASSERT_GT(child, 0);
  constexpr std::uint64_t kTells = 10'000'000;  // 200 ms suffice, unless something else has the core all the while
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::uint64_t after = before;
  while (after <= before + kTells && std::chrono::steady_clock::now() < end) after = queued_ns();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  sched_setaffinity(0, sizeof old, &old);
  EXPECT_GT(after, before + kTells);
}

TEST(Holding, GoesOnWhileWaitsEndInTimeAndIsTriedNowAndThenWhenTheyDoNot) {
  Holding h;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(h.pays());
    h.tell(i % 2 == 0);
  }
  for (int i = 0; i < 20; ++i) {
    if (h.pays()) h.tell(false);
  }
  int tried = 0;
  for (int i = 0; i < 160; ++i) tried += h.pays() ? 1 : 0;
  EXPECT_EQ(tried, 10);
  for (int i = 0; i < 160; ++i) {
    if (h.pays()) h.tell(true);
  }
  EXPECT_TRUE(h.pays());
  EXPECT_TRUE(h.pays());
}

}  // namespace
}  // namespace fallow::pmpi
