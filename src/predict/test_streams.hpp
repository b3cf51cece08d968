// Synthetic streams of calls, for tests and benchmarks only. Deterministic for a seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "predict/predictor.hpp"

namespace fallow::predict::streams {

inline constexpr double kUs = 1e3;
inline constexpr double kMs = 1e6;

/// Builds a stream call by call. Gaps and waits are given without noise; `noise` is its relative half width.
class Builder {
 public:
  explicit Builder(std::uint64_t seed, double noise = 0.0) : random_(seed), noise_(noise) {}

  /// `gap`: computation before the call, ns; `wait`: inside it.
  Builder& call(std::uint16_t op, std::uint32_t site, double gap, double wait = 0.0, std::int32_t peer = 1,
                std::uint64_t bytes = 1024) {
    Event e;
    now_ += noisy(gap);
    e.enter = Nanoseconds(now_);
    const std::int64_t waited = noisy(wait);
    now_ += 1500 + waited;
    e.exit = Nanoseconds(now_);
    e.wait = Nanoseconds(waited);
    e.op = op;
    e.site = site;
    e.peer = peer;
    e.bytes = bytes;
    events_.push_back(e);
    return *this;
  }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  bool chance(double p) { return uniform(0.0, 1.0) < p; }
  std::vector<Event> take() { return std::move(events_); }
  void set_noise(double noise) { noise_ = noise; }

 private:
  std::int64_t noisy(double mean) {
    return mean <= 0.0 ? 0 : std::llround(mean * (1.0 + noise_ * uniform(-1.0, 1.0)));
  }

  std::mt19937_64 random_;
  double noise_;
  std::int64_t now_ = 1'000'000;
  std::vector<Event> events_;
};

/// Figure 5.2: three sendrecv, all-reduce, all-reduce, in a loop.
inline std::vector<Event> alya(int iterations, double noise, std::uint64_t seed = 1) {
  Builder b(seed, noise);
  for (int i = 0; i < iterations; ++i) {
    b.call(41, 1, 2.0 * kMs).call(41, 2, 2 * kUs).call(41, 3, 2 * kUs);
    b.call(10, 4, 0.4 * kMs, 50 * kUs, -1, 8).call(10, 5, 0.9 * kMs, 20 * kUs, -1, 8);
  }
  return b.take();
}

/// Multi-partition sweeps after BT: six exchanges per direction, forward and back, then a long solve.
inline std::vector<Event> bt(int iterations, double noise, std::uint64_t seed = 2) {
  Builder b(seed, noise);
  for (int i = 0; i < iterations; ++i) {
    for (std::uint32_t d = 0; d < 3; ++d) {
      for (std::uint32_t s = 0; s < 6; ++s)
        b.call(1, 10 + d, s == 0 ? 1.5 * kMs : 0.6 * kMs, 0, int(d))
            .call(2, 20 + d, 3 * kUs, 80 * kUs, int(d))
            .call(3, 30 + d, kUs);
    }
    b.call(10, 40, 4.0 * kMs, 100 * kUs, -1, 40);
  }
  return b.take();
}

/// A V-cycle after MG: gaps and sizes shrink eightfold per level, the call sites are the same on all levels.
inline std::vector<Event> mg(int iterations, double noise, std::uint64_t seed = 3) {
  Builder b(seed, noise);
  const auto level = [&b](int l) {
    const double work = 8.0 * kMs / std::pow(8.0, l);
    const auto bytes = static_cast<std::uint64_t>(262144) >> (2 * l);
    for (int side = 0; side < 3; ++side)
      b.call(1, 1, side == 0 ? work : 4 * kUs, 0, side, bytes).call(2, 2, 2 * kUs, 10 * kUs, side, bytes);
  };
  for (int i = 0; i < iterations; ++i) {
    for (int l = 0; l < 6; ++l) level(l);
    for (int l = 5; l-- > 0;) level(l);
    b.call(10, 3, 1.0 * kMs, 30 * kUs, -1, 8);
  }
  return b.take();
}

/// An inner loop of `inner` equal calls after short gaps, then one long gap: only counting tells them apart.
inline std::vector<Event> nested(int outer, int inner, double noise, std::uint64_t seed = 4) {
  Builder b(seed, noise);
  for (int i = 0; i < outer; ++i) {
    for (int k = 0; k < inner; ++k) b.call(1, 1, k == 0 ? 5.0 * kMs : 0.2 * kMs).call(2, 2, 5 * kUs);
  }
  return b.take();
}

/// Three phases with other calls and gaps, twice each.
inline std::vector<Event> phases(int per_phase, double noise, std::uint64_t seed = 5) {
  Builder b(seed, noise);
  for (int p = 0; p < 6; ++p) {
    const auto site = static_cast<std::uint32_t>(10 * (p % 3));
    const double gap = (p % 3 == 0 ? 3.0 : p % 3 == 1 ? 0.5 : 1.2) * kMs;
    for (int i = 0; i < per_phase; ++i) b.call(1, 1 + site, gap).call(2, 2, 4 * kUs).call(10, 3, gap / 2);
  }
  return b.take();
}

/// After a common call the data decides between two ways, which another call betrays.
inline std::vector<Event> branches(int iterations, double noise, std::uint64_t seed = 6) {
  Builder b(seed, noise);
  for (int i = 0; i < iterations; ++i) {
    const bool left = b.chance(0.5);
    b.call(left ? 5 : 6, left ? 1 : 2, 0.3 * kMs).call(10, 3, 50 * kUs);
    b.call(10, 4, left ? 4.0 * kMs : 0.6 * kMs);
  }
  return b.take();
}

/// Gaps that grow and shrink steadily by 1 % an iteration.
inline std::vector<Event> drifting(int iterations, double noise, std::uint64_t seed = 7) {
  Builder b(seed, noise);
  double gap = 1.0 * kMs;
  for (int i = 0; i < iterations; ++i) {
    gap *= (i / 150) % 2 == 0 ? 1.01 : 1.0 / 1.01;
    b.call(1, 1, gap).call(2, 2, 3 * kUs).call(10, 3, 0.3 * gap);
  }
  return b.take();
}

/// Nothing repeats: calls, sites, sizes and gaps over five orders of magnitude at random.
inline std::vector<Event> chaos(int calls, std::uint64_t seed = 8) {
  Builder b(seed);
  for (int i = 0; i < calls; ++i) {
    const auto op = static_cast<std::uint16_t>(b.uniform(0, 12));
    b.call(op, static_cast<std::uint32_t>(b.uniform(0, 60)), std::exp(b.uniform(std::log(300.0), std::log(3e7))),
           b.chance(0.3) ? std::exp(b.uniform(5.0, 15.0)) : 0.0, static_cast<std::int32_t>(b.uniform(-1, 16)),
           static_cast<std::uint64_t>(std::exp(b.uniform(0.0, 15.0))));
  }
  return b.take();
}

/// Molecular dynamics: regular steps, every `every`-th with another calculation, now and then an interruption.
inline std::vector<Event> dynamics(int steps, int every, double noise, std::uint64_t seed = 9) {
  Builder b(seed, noise);
  for (int i = 0; i < steps; ++i) {
    const double late = b.chance(0.01) ? 5.0 : 1.0;
    for (std::uint32_t d = 0; d < 6; ++d)
      b.call(1, 1 + d, d == 0 ? 2.0 * kMs * late : 20 * kUs, 0, int(d),
             static_cast<std::uint64_t>(b.uniform(3000, 5000)));
    if (i % every == 0) b.call(11, 20, 3.0 * kMs).call(11, 21, 0.8 * kMs);
    b.call(10, 30, 0.7 * kMs, 40 * kUs, -1, 8);
  }
  return b.take();
}

struct Named {
  std::string name;
  bool regular;  ///< calls repeat and noise is at most 2 %
  std::vector<Event> events;
};

/// One of each, of some ten thousand calls.
inline std::vector<Named> all() {
  std::vector<Named> s;
  for (const int percent : {0, 1, 2, 5, 10, 30}) {
    const double noise = percent / 100.0;
    const std::string tail = " " + std::to_string(percent) + "%";
    s.push_back({"alya" + tail, percent <= 2, alya(2000, noise)});
    s.push_back({"bt" + tail, percent <= 2, bt(250, noise)});
    s.push_back({"mg" + tail, percent <= 2, mg(200, noise)});
  }
  s.push_back({"nested 1%", true, nested(600, 10, 0.01)});
  s.push_back({"phases 1%", true, phases(600, 0.01)});
  s.push_back({"branches 1%", true, branches(3000, 0.01)});
  s.push_back({"drift 1%", false, drifting(3000, 0.01)});
  s.push_back({"dynamics 3%", false, dynamics(1200, 10, 0.03)});
  s.push_back({"chaos", false, chaos(10000)});
  return s;
}

}  // namespace fallow::predict::streams
