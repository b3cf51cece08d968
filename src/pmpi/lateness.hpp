// What became of late ends of waits: made good by the rank's next wait, which is then as much shorter, or not.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fallow::pmpi {

/// Follows the sleeper's delays one by one. Times are ticks.
class Lateness {
 public:
  /// A wait that was due at `due` ended `ticks` later, for which `paid` was paid. Forgets what was open.
  void open(std::uint64_t due, std::uint64_t ticks, std::uint64_t paid) noexcept { due_ = due, ticks_ = ticks, paid_ = paid; }

  [[nodiscard]] bool is_open() const noexcept { return ticks_ != 0; }
  [[nodiscard]] std::uint64_t due() const noexcept { return due_; }
  [[nodiscard]] std::uint64_t ticks() const noexcept { return ticks_; }
  /// What was paid for the delay that is open.
  [[nodiscard]] std::uint64_t paid() const noexcept { return is_open() ? paid_ : 0; }

  /// Others have waited meanwhile, perhaps for this rank: the delay lasts.
  void lasts() noexcept { close(0); }

  /// The next wait has lasted `wait`. Returns how much of the delay it made good.
  std::uint64_t made_good_by(std::uint64_t wait) noexcept {
    const std::uint64_t good = std::min(ticks_, wait);
    if (is_open()) close(good);
    return good;
  }

  /// Share of the latest delays that lasted; half until something is known.
  [[nodiscard]] double lasting_share() const noexcept { return lasted_ / total_; }

 private:
  static constexpr double kMemory = 1.0 - 1.0 / 32;  // weighs what came before by this, delay by delay
  static constexpr double kFirst = 1e-3;             // a first guess that the first delay outweighs

  void close(std::uint64_t good) noexcept {
    lasted_ = lasted_ * kMemory + static_cast<double>(ticks_ - good);
    total_ = total_ * kMemory + static_cast<double>(ticks_);
    ticks_ = 0;
  }

  std::uint64_t due_ = 0, ticks_ = 0, paid_ = 0;  // ticks_ 0: nothing is open
  double lasted_ = kFirst / 2, total_ = kFirst;
};

}  // namespace fallow::pmpi
