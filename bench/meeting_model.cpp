// What the rules of waits come to in a barrier of many ranks, where no machine of so many processors is at hand: the account, the
// model of waits and the prices are the runtime's own, ranks and delays are made up. Not a measurement: real delays are less tame.
//
// usage: meeting_model RANKS WAIT_US JITTER_PERCENT STEPS [learn-calls]
// Rank 0 comes WAIT_US later than the others to each of STEPS barriers. learn-calls: waits are learnt as long as their calls last, not
// until the last rank has come, and who is woken late is late from its waker's stamp on.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "pmpi/budget.hpp"
#include "pmpi/meeting.hpp"
#include "pmpi/sleep_plan.hpp"
#include "predict/wait_model.hpp"

namespace {

using namespace fallow;
using namespace fallow::pmpi;

// Nanoseconds; delays as they were seen on a virtual machine with 16 processors.
constexpr double kCommon = 20e3, kFirstLook = 7e3, kArming = 1e3, kWaking = 2.2e3, kWoken = 9e3, kOvershoot = 5.5e3, kBarrier = 3e3;
constexpr double kRareDelay = 30e3;  // at most, in one wake-up of a hundred
constexpr double kSlowdown = 0.01;
constexpr std::uint64_t kPlace = 1;

struct Rank {
  std::vector<std::byte> arena = std::vector<std::byte>(64 * predict::WaitModel::kBytesPerKey);
  predict::WaitModel waits{arena};
  MeasuredCosts costs;
  double enter = 0, exit = 0;
  // In the barrier under way:
  double timer = 0;  ///< at which the sleep ends that is under way when the last one comes; 0: it is awake then
  double woken = 0, awake = 0;
  bool slept = false;
};

class Model {
 public:
  Model(int ranks, double wait, double jitter, bool learns_calls)
      : ranks_(static_cast<std::size_t>(ranks)), wait_(wait), jitter_(jitter), learns_calls_(learns_calls) {
    account_.open(kSlowdown, 1e9, 1);
  }

  void step() {
    const double late = wait_ * (1.0 + jitter_ * (2.0 * uniform() - 1.0));
    const double came = ranks_[0].exit + kCommon + late;
    bare_ += kCommon + late + kBarrier;
    std::size_t asleep = 0;
    for (std::size_t i = 1; i < ranks_.size(); ++i) wait(ranks_[i], came, asleep);
    wake_all(came);
    double over = came;
    for (const Rank& r : ranks_) over = std::max(over, r.awake);
    over += kBarrier;
    for (std::size_t i = 1; i < ranks_.size(); ++i) settle(ranks_[i], came, over + 1e3 * uniform());
    ranks_[0].exit = over;
  }

  void print() const {
    std::printf("%zu ranks, %.0f us late, give or take %.0f %%: %.1f %% of the waits asleep, %.4f of the time, woken by others in %.0f %%\n",
                ranks_.size(), wait_ / 1e3, 100 * jitter_, 100 * asleep_ / waited_, ranks_[0].exit / bare_, 100 * woken_ / waits_);
  }

 private:
  double uniform() { return std::uniform_real_distribution<>(0.0, 1.0)(random_); }
  double normal() { return std::normal_distribution<>(0.0, 1.0)(random_); }
  double rare() { return uniform() < 0.01 ? kRareDelay * uniform() : 0.0; }

  /// Until the last rank comes, or sleeping into that.
  void wait(Rank& r, double came, std::size_t& asleep) {
    r.enter = r.exit + kCommon;
    r.timer = r.woken = r.awake = 0;
    r.slept = false;
    for (double now = r.enter + kFirstLook; now < came;) {
      account_.earn(static_cast<std::uint64_t>(now));
      const double held_up = held_up_by(static_cast<std::uint32_t>(ranks_.size()));
      const Weighed weighed{.price = price_of_delay(account_.price(asleep != 0), 1.0, held_up),
                            .held_up = held_up,
                            .after_sleep_ns = kAfterSleepNs,
                            .longest_ns = account_.bearable(),
                            .end_wakes = true,
                            .slept = r.slept,
                            .many_steps = true};
      const predict::WaitPlan plan =
          r.waits.plan(kPlace, to_nanoseconds(now - r.enter), costs_of_sleep(r.costs, weighed), weighed.price);
      const double spin = std::max(static_cast<double>(plan.spin.value), 1e3);
      if (plan.sleep_for.value <= 0) {
        now += spin;
        continue;
      }
      if (!r.slept) ++asleep;
      r.slept = true;
      const double overshoot = kOvershoot + 1.5e3 * std::abs(normal()) + rare();
      const double begin = now + kArming, end = begin + static_cast<double>(plan.sleep_for.value) + overshoot;
      asleep_ += std::max(0.0, std::min(end, came) - begin);
      if (end >= came) {
        r.timer = end;
        return;
      }
      r.costs.overshoot_ns += (overshoot - r.costs.overshoot_ns) / 8;
      now = end + spin;
    }
  }

  /// As the last one to come does it: by halves.
  void wake_all(double came) {
    ranks_[0].awake = came;
    struct Part {
      std::int32_t from, to;
      std::size_t waker;
    };
    std::vector<Part> parts{{1, static_cast<std::int32_t>(ranks_.size()), 0}};
    while (!parts.empty()) {
      const Part part = parts.back();
      parts.pop_back();
      wake_by_halves(part.from, part.to, [&](std::int32_t rank, std::int32_t end) {
        Rank& r = ranks_[static_cast<std::size_t>(rank)];
        if (r.timer == 0) return false;
        double& now = ranks_[part.waker].awake;
        r.woken = now;
        now += kWaking;
        r.awake = std::max(r.woken, std::min(r.timer, now + kWoken * std::exp(0.35 * normal()) + rare()));
        parts.push_back({rank + 1, end, static_cast<std::size_t>(rank)});
        r.timer = 0;
        return true;
      });
    }
  }

  void settle(Rank& r, double came, double exit) {
    r.exit = exit + (r.slept ? 2e3 * uniform() : 0.0);
    const double lasted = (learns_calls_ ? exit : came) - r.enter;
    r.waits.observe(kPlace, to_nanoseconds(lasted));
    waited_ += std::max(0.0, exit - r.enter);
    ++waits_;
    double delay = r.slept ? kAfterSleepNs : 0.0;
    if (r.woken != 0) {
      ++woken_;
      delay += r.awake - (learns_calls_ ? r.woken : came);
      r.costs.peer_wake_ns += (r.awake - r.woken - r.costs.peer_wake_ns) / 8;
      r.costs.waking_ns += (kWaking - r.costs.waking_ns) / 8;
    }
    account_.pay(static_cast<std::uint64_t>(exit - delay), static_cast<std::uint64_t>(exit));
    if (r.woken != 0) account_.pay(static_cast<std::uint64_t>(r.woken), static_cast<std::uint64_t>(r.woken + kWaking));
  }

  std::vector<Rank> ranks_;
  Budget account_;
  std::mt19937_64 random_{1};
  double wait_, jitter_;
  bool learns_calls_;
  double bare_ = 0, asleep_ = 0, waited_ = 0, waits_ = 0, woken_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bool learns_calls = argc == 6 && std::strcmp(argv[5], "learn-calls") == 0;
  if (argc != 5 && !learns_calls) {
    std::fprintf(stderr, "usage: meeting_model RANKS WAIT_US JITTER_PERCENT STEPS [learn-calls]\n");
    return 2;
  }
  const int ranks = std::atoi(argv[1]), steps = std::atoi(argv[4]);
  const double wait_us = std::atof(argv[2]), jitter = std::atof(argv[3]);
  if (ranks < 2 || ranks > 4096 || steps < 1 || !(wait_us > 0) || !(jitter >= 0 && jitter <= 100)) {
    std::fprintf(stderr, "meeting_model: 2 to 4096 ranks, a wait above 0, a jitter of 0 to 100 %%, and at least a step\n");
    return 2;
  }
  Model model(ranks, wait_us * 1e3, jitter / 100, learns_calls);
  for (int i = 0; i < steps; ++i) model.step();
  model.print();
}
