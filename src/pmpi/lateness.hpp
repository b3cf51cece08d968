// What became of late ends of waits: made good by the rank's next wait, which is then as much shorter, or not.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fallow::pmpi {

/// Follows the sleeper's delays one by one. Times are ticks.
///
/// A delay is opened when a wait has ended late. The next wait answers it: the rank would have waited so much longer. It is
/// judged at the start of the wait after, when it can be seen whether somebody stopped waiting in the time from the late
/// wake-up until half of the answering wait: that one may have waited for this rank.
class Lateness {
 public:
  struct Delay {
    std::uint64_t from = 0, to = 0;  ///< when whoever waited for this rank stopped waiting
    std::uint64_t ticks = 0;         ///< 0: there is none
    std::uint64_t good = 0;          ///< of it, what the next wait made good if nobody waited for this rank
    std::uint64_t paid = 0;          ///< for it
    bool clearly = false;            ///< the next wait was clearly longer
  };

  /// What becomes of a delay.
  struct Verdict {
    std::uint64_t good = 0;  ///< ticks of it that cost nobody anything
    std::uint64_t back = 0;  ///< of what was paid for it, what is paid back
  };

  /// `somebody_waited`: somebody stopped waiting from `d.from` to `d.to`.
  static Verdict verdict(const Delay& d, bool somebody_waited) noexcept {
    if (somebody_waited) return {};
    return {d.good, d.good != 0 && d.clearly ? d.paid : 0};
  }

  /// A wait has ended `ticks` too late, for which `paid` was paid; the rank was awake from `from` on, in which time it may
  /// still have answered others before its own wait was over.
  void open(std::uint64_t from, std::uint64_t ticks, std::uint64_t paid) noexcept {
    open_ = {.from = from, .ticks = ticks, .paid = paid};
  }

  /// The next wait, in a call that began at `enter`, has lasted `wait`; from `long_wait` on it counts as long.
  void answer(std::uint64_t enter, std::uint64_t wait, std::uint64_t long_wait) noexcept {
    answered_ = open_;
    open_ = {};
    answered_.to = enter + wait / 2;
    answered_.good = std::min(answered_.ticks, wait);
    answered_.clearly = wait >= answered_.ticks && (wait / kClearlyLonger >= answered_.ticks || wait >= long_wait);
  }

  /// The delay to judge now, with ticks = 0 if there is none. Forgets it.
  [[nodiscard]] Delay take() noexcept {
    const Delay taken = answered_;
    answered_ = {};
    return taken;
  }

  /// Of `ticks` of delay, `good` cost nobody anything.
  void learn(std::uint64_t ticks, std::uint64_t good) noexcept {
    lasted_ = lasted_ * kMemory + static_cast<double>(ticks - good);
    total_ = total_ * kMemory + static_cast<double>(ticks);
  }

  /// Share of the latest delays that lasted; half until something is known.
  [[nodiscard]] double lasting_share() const noexcept { return lasted_ / total_; }

 private:
  static constexpr std::uint64_t kClearlyLonger = 8;  // a wait this many times as long as a delay
  static constexpr double kMemory = 1.0 - 1.0 / 32;   // weighs what came before by this, delay by delay
  static constexpr double kFirst = 1e-3;              // a first guess that the first delay outweighs

  Delay open_, answered_;
  double lasted_ = kFirst / 2, total_ = kFirst;
};

}  // namespace fallow::pmpi
