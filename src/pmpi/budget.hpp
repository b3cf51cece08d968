// The slowdown budget: what sleeping may cost, and what it has cost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace fallow::pmpi {

/// An account in ticks. Run time earns `slowdown` x time; a delay caused by sleeping is paid from it. It never
/// holds more than what `kHorizon` earns, so that a quiet hour does not pay for a slow minute.
class Budget {
 public:
  void open(double slowdown, double ticks_per_second, std::uint64_t now) noexcept {
    slowdown_ = slowdown;
    cap_ = std::max(slowdown * kHorizonSeconds, kLeastSeconds) * ticks_per_second;
    balance_ = cap_ / 4;  // the first waits are sleepable before anything was earned
    last_ = now;
  }

  void earn(std::uint64_t now) noexcept {
    if (now <= last_) return;
    const double earned = slowdown_ * static_cast<double>(now - last_);
    const double before = balance_.fetch_add(earned, std::memory_order_relaxed);
    if (before + earned > cap_) balance_.fetch_sub(before + earned - cap_, std::memory_order_relaxed);
    last_ = now;
  }

  /// May be called by several threads.
  void pay(std::uint64_t ticks) noexcept { balance_.fetch_sub(static_cast<double>(ticks), std::memory_order_relaxed); }

  /// Gives back what was paid for a delay that turned out to cost nobody anything.
  void pay_back(std::uint64_t ticks) noexcept { balance_.fetch_add(static_cast<double>(ticks), std::memory_order_relaxed); }

  double balance() const noexcept { return balance_.load(std::memory_order_relaxed); }

  /// What a tick of delay costs against a tick of sleep saved: 1 with a full account, without bound as it runs out.
  double price() const noexcept { return balance() <= cap_ * 1e-3 ? 1e3 : std::max(1.0, cap_ / balance()); }

 private:
  static constexpr double kHorizonSeconds = 2.0;
  static constexpr double kLeastSeconds = 0.001;

  double slowdown_ = 0.01, cap_ = 0;
  std::atomic<double> balance_{0};
  std::uint64_t last_ = 0;
};

}  // namespace fallow::pmpi
