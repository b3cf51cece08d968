#include "predict/wait_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "predict/log_code.hpp"

namespace fallow::predict {
namespace {

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kMs = 1000 * kUs;
constexpr std::uint64_t kKey = 42;
constexpr double kPrice = 20.0;
constexpr WaitCosts kTimer{Nanoseconds(20 * kUs), Nanoseconds(40 * kUs), false, Nanoseconds(0)};
constexpr WaitCosts kPeer{Nanoseconds(20 * kUs), Nanoseconds(40 * kUs), true, Nanoseconds(55 * kUs)};

struct Outcome {
  double waited = 0, asleep = 0, delay = 0, sleeps = 0;  // ns, ns, ns, number
  double told = 0;                                       // of the delay, what the model knows, ns
  double asleep_share() const { return asleep / waited; }
  double delay_share() const { return delay / waited; }
};

/// A wait mode in miniature: lives through one wait as the runtime would, time being simulated.
void live_through(WaitModel& model, std::int64_t wait, WaitCosts costs, double price, Outcome& sum) {
  std::int64_t now = 0;
  std::int64_t hidden = 0;
  sum.waited += static_cast<double>(wait);
  for (;;) {
    const WaitPlan plan = model.plan(kKey, Nanoseconds(now), costs, price);
    if (plan.sleep_for.value > 0) {
      costs.delay_after = Nanoseconds(0);  // it has been paid
      std::int64_t wake = now + plan.sleep_for.value + costs.wake_delay.value;
      if (costs.peer_can_wake) wake = std::min(wake, std::max(now, wait) + costs.peer_wake_delay.value);
      sum.asleep += static_cast<double>(std::min(wake, wait) - now);
      sum.sleeps += 1;
      if (wake >= wait) {
        sum.delay += static_cast<double>(wake - wait);
        hidden = costs.peer_can_wake ? 0 : wake - now;
        now = costs.peer_can_wake ? wait : wake;
        break;
      }
      now = wake;
    }
    now += plan.spin.value;
    if (now >= wait) {
      now = wait;  // found by polling
      break;
    }
  }
  sum.told += static_cast<double>(now - model.observe(kKey, Nanoseconds(now), Nanoseconds(hidden)).value);
}

class WaitModelTest : public testing::Test {
 protected:
  Outcome run(int waits, const std::function<double()>& wait_ns, const WaitCosts& costs, double price = kPrice) {
    Outcome sum;
    for (int i = 0; i < waits; ++i)
      live_through(model, std::max<std::int64_t>(1, std::llround(wait_ns())), costs, price, sum);
    return sum;
  }
  double around(double center, double spread) {
    return center * (1.0 + spread * std::uniform_real_distribution<double>(-1.0, 1.0)(random));
  }

  std::vector<std::byte> arena = std::vector<std::byte>(WaitModel::kBytesPerKey * 64 + 64);
  WaitModel model{arena};
  std::mt19937_64 random{1};
};

TEST(LogCode, KeepsRelativeResolutionAndOrder) {
  std::uint16_t last = 0;
  for (std::int64_t ns = kCodeMinNs; ns < kCodeMaxNs / 2; ns += 1 + ns / 3000) {
    const std::uint16_t code = encode_ns(ns);
    EXPECT_GE(code, last);
    EXPECT_LE(decode_ns(code), ns);
    EXPECT_LT(static_cast<double>(ns - decode_ns(code)), 1.0 + static_cast<double>(ns) / 2048.0);
    EXPECT_NEAR(decode_double(code), static_cast<double>(decode_ns(code)), 1.0);
    last = code;
  }
  EXPECT_EQ(encode_ns(-5), 0);
  EXPECT_EQ(encode_ns(std::numeric_limits<std::int64_t>::max()), 65535);
  EXPECT_EQ(encode_ns(decode_ns(40000)), 40000);
}

TEST_F(WaitModelTest, PeriodicWaitIsSleptThroughUntilJustBeforeItsEnd) {
  const auto wait = [this] { return around(1.0 * kMs, 0.02); };
  run(200, wait, kTimer);
  const WaitPlan plan = model.plan(kKey, Nanoseconds(0), kTimer, kPrice);
  const std::int64_t wake = plan.sleep_for.value + kTimer.wake_delay.value;
  EXPECT_GT(wake, 950 * kUs);
  EXPECT_LE(wake, 990 * kUs);
  const Outcome settled = run(2000, wait, kTimer);
  EXPECT_GT(settled.asleep_share(), 0.95);
  EXPECT_LT(settled.delay_share(), 0.003);
  EXPECT_LT(settled.sleeps / 2000, 1.5);  // an end slept over may split the sleep for a while
}

TEST_F(WaitModelTest, AnEndThatWasSleptOverIsPutWhereTheWaitsBeforeEnded) {
  run(200, [this] { return around(1.0 * kMs, 0.002); }, kTimer);
  EXPECT_EQ(model.observe(kKey, Nanoseconds(999 * kUs)).value, 999 * kUs);  // seen
  const std::int64_t put = model.observe(kKey, Nanoseconds(1003 * kUs), Nanoseconds(990 * kUs)).value;
  EXPECT_GE(put, 960 * kUs);
  EXPECT_LE(put, 1003 * kUs);
  for (int i = 0; i < 20; ++i) model.observe(kKey, Nanoseconds(1003 * kUs), Nanoseconds(990 * kUs));
  EXPECT_LT(model.observe(kKey, Nanoseconds(1003 * kUs), Nanoseconds(990 * kUs)).value, 500 * kUs);  // it is doubted
  WaitModel nothing{{}};
  EXPECT_EQ(nothing.observe(kKey, Nanoseconds(100), Nanoseconds(60)).value, 70);
}

TEST_F(WaitModelTest, AnUnseenEndIsTakenToBeNearTheKnownOnes) {
  run(200, [this] { return around(10.0 * kMs, 0.002); }, kTimer);
  for (int i = 0; i < 2; ++i) {
    const Nanoseconds lasted = model.observe(kKey, Nanoseconds(9 * kMs), Nanoseconds(6 * kMs));
    EXPECT_GT(lasted.value, 9 * kMs * 98 / 100) << i;  // the window knows of no end during the sleep
  }
}

TEST_F(WaitModelTest, EndsUnseenInARowAreDoubtedMoreAndMore) {
  run(200, [this] { return around(10.0 * kMs, 0.002); }, kTimer);
  std::int64_t before = 10 * kMs;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t lasted = model.observe(kKey, Nanoseconds(9 * kMs), Nanoseconds(8 * kMs)).value;
    EXPECT_LE(lasted, before) << i;
    before = lasted;
  }
  EXPECT_LT(before, 2 * kMs);
}

TEST_F(WaitModelTest, LearnsAPeriodicWaitWithinTwentyOfThem) {
  const auto wait = [this] { return around(1.0 * kMs, 0.02); };
  run(20, wait, kTimer);
  EXPECT_GT(run(20, wait, kTimer).asleep_share(), 0.8);
}

TEST_F(WaitModelTest, UnknownWaitIsSpunThenSleptInSlicesThatGrow) {
  EXPECT_EQ(model.plan(kKey, Nanoseconds(0), kTimer, kPrice).sleep_for.value, 0);
  EXPECT_EQ(model.plan(kKey, Nanoseconds(100 * kUs), kTimer, kPrice).sleep_for.value, 0);
  std::int64_t last = 0;
  for (const std::int64_t waited : {5 * kMs, 20 * kMs, 100 * kMs}) {
    const std::int64_t slice = model.plan(kKey, Nanoseconds(waited), kTimer, kPrice).sleep_for.value;
    EXPECT_GT(slice, last);
    EXPECT_LE(slice, waited / static_cast<std::int64_t>(kPrice));  // the slice bounds the delay by 1 / price
    last = slice;
  }
}

TEST_F(WaitModelTest, UnknownLongWaitIsSleptUntilThePeerWakes) {
  EXPECT_EQ(model.plan(kKey, Nanoseconds(50 * kUs), kPeer, kPrice).sleep_for.value, 0);
  EXPECT_GE(model.plan(kKey, Nanoseconds(10 * kMs), kPeer, kPrice).sleep_for.value, 10 * kMs);
}

TEST_F(WaitModelTest, ShortWaitsAreNeverSlept) {
  const Outcome all = run(5000, [this] { return around(25.0 * kUs, 0.5); }, kTimer);
  EXPECT_EQ(all.sleeps, 0);
}

TEST_F(WaitModelTest, ASleepThatCostsDelayEvenInTimeMustBeWorthIt) {
  WaitCosts cold = kPeer;
  cold.delay_after = Nanoseconds(10 * kUs);  // 200 us at this price
  const auto sleeps = [&](double wait_us, const WaitCosts& costs) {
    model = WaitModel{arena};
    return run(500, [&] { return around(wait_us * kUs, 0.02); }, costs).sleeps / 500;
  };
  EXPECT_GT(sleeps(180, kPeer), 0.9);
  EXPECT_EQ(sleeps(180, cold), 0);
  EXPECT_GT(sleeps(1000, cold), 0.9);
}

TEST_F(WaitModelTest, IrregularWaitsStayWithinThePriceOfDelay) {
  std::exponential_distribution<double> exponential(1.0 / (1.0 * kMs));
  for (const WaitCosts& costs : {kTimer, kPeer}) {
    const Outcome all = run(5000, [&] { return exponential(random); }, costs);
    EXPECT_LE(kPrice * all.delay, all.asleep * 1.05) << "peer " << costs.peer_can_wake;
  }
}

TEST_F(WaitModelTest, WaitsThatMayEndAtAnyTimeAreSleptInSlices) {  // one long sleep would not be worth its delay
  WaitCosts cold = kTimer;
  cold.delay_after = Nanoseconds(10 * kUs);
  const auto wait = [this] { return around(10.0 * kMs, 0.9); };
  run(100, wait, cold, 2 * kPrice);
  const Outcome all = run(2000, wait, cold, 2 * kPrice);
  EXPECT_GT(all.asleep_share(), 0.75);
  EXPECT_LT(all.delay_share(), 0.02);
}

TEST_F(WaitModelTest, NoSleepIsLongerThanItsDelayMayBeUnlessTheWaitIsKnownToLast) {
  WaitCosts limited = kTimer;
  limited.longest = Nanoseconds(kMs);
  const auto slept = [&](std::int64_t waited, const WaitCosts& costs) {
    return model.plan(kKey, Nanoseconds(waited), costs, 1.5).sleep_for.value;
  };
  EXPECT_GT(slept(50 * kMs, kTimer), kMs);  // of an unknown wait
  EXPECT_EQ(slept(50 * kMs, limited), kMs);
  for (int i = 0; i < 40; ++i) model.observe(kKey, Nanoseconds((i % 2 == 0 ? 20 : 90) * kMs));
  EXPECT_GT(slept(0, limited), 5 * kMs);        // every wait so far lasted so long
  EXPECT_GT(slept(25 * kMs, kTimer), 10 * kMs); // the rest of them lasted longer, but one may end at any time
  EXPECT_EQ(slept(25 * kMs, limited), kMs);
  WaitCosts woken = kPeer;
  woken.longest = Nanoseconds(kMs);
  EXPECT_GT(slept(25 * kMs, woken), 60 * kMs);  // late by a wake-up at most
}

/// Waits of 100 ms that vary by 90 %, in an account that earns 0.5 % of the time and holds what two seconds earn. Without a limit one late
/// end cost as much as seconds earn, and nothing slept for as long.
TEST_F(WaitModelTest, AnAccountBearsLongIrregularWaits) {
  constexpr double kRate = 0.005, kCap = kRate * 2e9;
  double balance = kCap / 4;
  Outcome all;
  for (int i = 0; i < 1000; ++i) {
    WaitCosts costs = kTimer;
    costs.longest = Nanoseconds(std::llround(std::max(balance, kCap / 16) / 8));
    const Outcome before = all;
    const double price = balance < -kCap / 8 ? 1e12 : balance <= kCap * 1e-3 ? 1e3 : std::max(1.0, kCap / balance);
    live_through(model, std::llround(around(100.0 * kMs, 0.9)), costs, price, all);
    balance = std::min(kCap, balance + kRate * (all.waited - before.waited) - (all.told - before.told));
  }
  EXPECT_GT(all.asleep_share(), 0.9);
  EXPECT_LT(all.delay_share(), 1.2 * kRate);
}

TEST_F(WaitModelTest, DelaysThatNobodySawAreToldOnTheMean) {
  for (const double price : {5.0, 20.0}) {
    for (const double spread : {0.02, 0.2, 0.9}) {
      model = WaitModel{arena};
      const auto wait = [&] { return around(10.0 * kMs, spread); };
      run(100, wait, kTimer, price);
      const Outcome all = run(4000, wait, kTimer, price);
      EXPECT_NEAR(all.told, all.delay, 0.4 * all.delay + 5e-4 * all.waited) << price << " " << spread;
    }
  }
}

TEST_F(WaitModelTest, WaitOfTwoModesIsSleptToTheFirstAndAskedAgain) {
  std::bernoulli_distribution is_long(0.3);
  const Outcome all =
      run(3000, [&] { return is_long(random) ? around(10.0 * kMs, 0.02) : around(0.5 * kMs, 0.02); }, kTimer);
  EXPECT_GT(all.asleep_share(), 0.85);
  EXPECT_LT(all.delay_share(), 0.01);
}

TEST_F(WaitModelTest, ShorterPhaseIsLearnedThoughItsEndsAreSleptOver) {
  run(500, [this] { return around(2.0 * kMs, 0.02); }, kTimer);
  const Outcome change = run(300, [this] { return around(0.4 * kMs, 0.02); }, kTimer);
  EXPECT_LT(change.delay, 20 * 1.6 * kMs);  // a handful of waits are overslept by 1.6 ms
  const Outcome settled = run(500, [this] { return around(0.4 * kMs, 0.02); }, kTimer);
  EXPECT_GT(settled.asleep_share(), 0.8);
  EXPECT_LT(settled.delay_share(), 0.01);
}

TEST_F(WaitModelTest, PeerWakeSleepsThroughWhateverIsLongEnough) {
  std::lognormal_distribution<double> spread(std::log(10.0 * kMs), 0.8);
  const Outcome all = run(3000, [&] { return spread(random); }, kPeer);
  EXPECT_GT(all.asleep_share(), 0.9);
  EXPECT_LT(all.delay_share(), 0.01);
}

TEST_F(WaitModelTest, HigherPriceNeverSleepsLonger) {
  run(200, [this] { return around(1.0 * kMs, 0.2); }, kTimer);
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const double price : {1.0, 3.0, 10.0, 30.0, 100.0, 1e6}) {
    const std::int64_t now = model.plan(kKey, Nanoseconds(0), kTimer, price).sleep_for.value;
    EXPECT_LE(now, last) << price;
    last = now;
  }
  EXPECT_EQ(last, 0);
}

TEST_F(WaitModelTest, SummaryGivesQuantiles) {
  EXPECT_EQ(model.summary(kKey).samples, 0U);
  for (int i = 1; i <= 64; ++i) model.observe(kKey, Nanoseconds(i * kMs));
  const WaitSummary s = model.summary(kKey);
  EXPECT_EQ(s.samples, 64U);
  EXPECT_NEAR(static_cast<double>(s.median.value), 32.0 * kMs, 0.1 * kMs);
  EXPECT_NEAR(static_cast<double>(s.p10.value), 7.0 * kMs, 0.1 * kMs);
  EXPECT_NEAR(static_cast<double>(s.p90.value), 57.0 * kMs, 0.1 * kMs);
}

TEST(WaitModel, LeastRecentlyUsedKeysGiveWay) {
  std::vector<std::byte> arena(WaitModel::kBytesPerKey * 8 + 16);
  WaitModel model(arena);
  EXPECT_EQ(model.capacity(), 8U);
  for (std::uint64_t key = 0; key < 10000; ++key) {
    model.observe(key, Nanoseconds(kMs));
    model.observe(7, Nanoseconds(kMs));  // stays in use, so stays known
  }
  EXPECT_EQ(model.summary(7).samples, WaitModel::kWindow);
  EXPECT_EQ(model.summary(1).samples, 0U);
}

TEST(WaitModel, WorksWithoutMemory) {
  WaitModel model({});
  model.observe(1, Nanoseconds(kMs));
  EXPECT_EQ(model.capacity(), 0U);
  EXPECT_EQ(model.summary(1).samples, 0U);
  EXPECT_GT(model.plan(1, Nanoseconds(100 * kMs), kTimer, kPrice).sleep_for.value, 0);
}

TEST(WaitModel, AnyInputGivesALegalPlan) {
  std::vector<std::byte> arena(WaitModel::kBytesPerKey * 16);
  WaitModel model(arena);
  std::mt19937_64 random(7);
  const auto any = [&random] {
    const auto bits = static_cast<std::int64_t>(random());
    return Nanoseconds(bits >> (random() % 64));
  };
  for (int i = 0; i < 100000; ++i) {
    model.observe(random() % 40, any(), any());
    const double price = random() % 50 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                            : std::exp(static_cast<double>(random() % 60) - 5.0);
    const WaitPlan plan = model.plan(random() % 40, any(), {any(), any(), random() % 2 == 0, any()}, price);
    ASSERT_GE(plan.sleep_for.value, 0);
    ASSERT_GT(plan.spin.value, 0);
    ASSERT_LE(plan.spin.value, 50 * kUs);
  }
}

TEST_F(WaitModelTest, AKindOfWaitTellsMoreWhereItsWaitsAreUnlikeTheOthers) {
  constexpr std::uint64_t kKinds = 100;
  const auto wait = [this](std::uint64_t kind, double center, double spread) {
    const Nanoseconds lasted(std::llround(around(center, spread)));
    model.observe(kKey, lasted);
    model.observe(kind, lasted);
  };
  EXPECT_EQ(model.more_telling(kKinds, kKey), kKey);  // nothing is known yet
  EXPECT_EQ(model.more_telling(0, kKey), kKey);
  for (int i = 0; i < 64; ++i) wait(kKinds + 1 + i % 2, 1e6, 0.2);  // two kinds alike
  EXPECT_EQ(model.more_telling(kKinds + 1, kKey), kKey);
  EXPECT_EQ(model.more_telling(kKinds + 2, kKey), kKey);
  for (int i = 0; i < 64; ++i) wait(kKinds + 3 + i % 2, i % 2 == 0 ? 1e6 : 5e4, 0.2);  // one long, one short
  EXPECT_EQ(model.more_telling(kKinds + 3, kKey), kKinds + 3);
  EXPECT_EQ(model.more_telling(kKinds + 4, kKey), kKinds + 4);
  for (int i = 0; i < 160; ++i) wait(kKinds + (i % 20 == 0 ? 6 : 5), i % 20 == 0 ? 1e6 : 5e4, 0.02);  // one in twenty is long
  EXPECT_EQ(model.more_telling(kKinds + 6, kKey), kKinds + 6);
  EXPECT_EQ(model.more_telling(kKinds + 5, kKey), kKey);
  for (int i = 0; i < 7; ++i) wait(kKinds + 7, 8e6, 0.02);
  EXPECT_EQ(model.more_telling(kKinds + 7, kKey), kKey);  // too few
  EXPECT_EQ(model.more_telling(kKinds + 3, 999), kKinds + 3);  // of that place nothing is known
}

}  // namespace
}  // namespace fallow::predict
