// How long a rank that tests in vain keeps its core, where ranks share cores, before it gives way to others. If it waits in a
// loop of tests, others should have the core at once; if it tests after each small piece of work, giving way each time makes it
// many times slower. The calls do not tell one from the other, so it is tried: all ranks of the node keep their cores longer for
// some milliseconds, and they go on doing so if together they get on faster then.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fallow::pmpi {

/// The trials of one node. Plain state, all zero at first: every rank gives way at once.
///
/// What the ranks get done is counted in calls other than tests in vain. Three windows of time of the same length are compared:
/// as it is, as it might be, and as it is again; so neither a steady change nor a burst looks like a gain. Between them is time
/// to settle, as who waits has others go first for a while. As long as all that does not tell, the windows become longer. Where the
/// ranks all at once get on at less than half of the pace, they may wait now that worked, or work that waited: then a trial is made
/// without delay.
class GivingWayTrials {
 public:
  static constexpr std::array<std::uint64_t, 4> kHoldNs = {0, 4'000, 64'000, 1'000'000};
  static constexpr std::uint64_t kWindowNs = 5'000'000;

  /// To be called once due_ns() has come, with the number of such calls that all `ranks` have made so far.
  void step(std::uint64_t now_ns, std::uint64_t calls, std::uint64_t ranks) noexcept;

  std::uint64_t due_ns() const noexcept { return due_; }
  /// How long cores are kept now, trial or not.
  std::uint64_t hold_ns() const noexcept { return kHoldNs[is_tried(window_) ? tried_ : level_]; }
  /// The same where no trial is under way.
  std::uint64_t usual_hold_ns() const noexcept { return kHoldNs[level_]; }

 private:
  enum class Window : std::uint8_t { none, between, before, going, trial, returning, after };
  enum class Outcome : std::uint8_t { few, unclear, worse, even, better };

  static constexpr bool is_tried(Window window) noexcept { return window == Window::going || window == Window::trial; }
  void begin_window(Window window, std::uint64_t now_ns, std::uint64_t calls) noexcept;
  void begin_trial(bool down, std::uint64_t now_ns, std::uint64_t calls) noexcept;
  Outcome outcome(std::uint64_t ranks) const noexcept;
  void conclude(std::uint64_t now_ns, std::uint64_t calls, std::uint64_t ranks) noexcept;
  void compare_again(std::uint64_t now_ns, std::uint64_t calls) noexcept;
  void pause(std::uint64_t now_ns, std::uint64_t calls) noexcept;
  void watch(std::uint64_t now_ns, std::uint64_t calls) noexcept;

  std::uint64_t due_ = 0, began_ = 0, calls_ = 0;
  std::uint64_t before_ = 0, trial_ = 0, after_ = 0;  ///< calls by window, brought to the same length
  std::uint64_t longer_ = 0;           ///< windows are 2^this times kWindowNs long
  std::uint64_t tried_for_ = 0;        ///< what the windows of this trial have been long together
  std::uint64_t until_ = 0;            ///< when the pause between trials is over
  std::uint64_t again_ = 0;            ///< when another sudden change is looked into
  std::uint64_t usual_ = 0;            ///< calls in 20 ms of such a pause; 0: not known
  std::uint64_t random_ = 0;           ///< comparisons are not to be in step with what the program does
  std::uint64_t failed_ = 0;           ///< trials since the level changed
  std::size_t level_ = 0, tried_ = 0;  ///< of kHoldNs
  std::uint8_t won_ = 0;               ///< comparisons in this trial that were
  bool down_ = false;                  ///< the last trial was of a lower level
  Window window_ = Window::none;
};

/// The same in memory that the ranks share: whoever is there when a step is due makes it.
class GivingWay {
 public:
  bool is_due(std::uint64_t now_ticks) const noexcept { return now_ticks >= due_ticks_.load(std::memory_order_relaxed); }
  std::uint64_t hold_ticks() const noexcept { return hold_ticks_.load(std::memory_order_relaxed); }

  /// Nothing if another rank is at it, unless it has been for so long that it must have been killed there, or have jumped out.
  /// `calls()`: what all `ranks` have done so far.
  template <class Calls>
  void step(std::uint64_t now_ticks, std::uint64_t ticks_per_us, std::uint64_t ranks, const Calls& calls) noexcept {
    std::uint64_t since = busy_since_.load(std::memory_order_relaxed);
    if (since != 0 && now_ticks < since + kLostUs * ticks_per_us) return;
    if (!busy_since_.compare_exchange_strong(since, now_ticks, std::memory_order_acquire)) return;
    if (began_ == 0) began_ = now_ticks;
    if (is_due(now_ticks) && now_ticks >= began_) {
      trials_.step((now_ticks - began_) / ticks_per_us * 1000, calls(), ranks);
      due_ticks_.store(began_ + trials_.due_ns() / 1000 * ticks_per_us, std::memory_order_relaxed);
      hold_ticks_.store(trials_.hold_ns() / 1000 * ticks_per_us, std::memory_order_relaxed);
    }
    busy_since_.store(0, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kLostUs = 1'000'000;
  alignas(64) std::atomic<std::uint64_t> due_ticks_{0};
  std::atomic<std::uint64_t> hold_ticks_{0};
  alignas(64) std::atomic<std::uint64_t> busy_since_{0};  ///< tick; 0: nobody is at it
  std::uint64_t began_ = 0;
  GivingWayTrials trials_;
};

}  // namespace fallow::pmpi
