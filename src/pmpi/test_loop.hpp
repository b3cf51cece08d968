// Loops of tests: a program that tests again and again, with nothing in between, waits. Which loops do, and may rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace fallow::pmpi {

/// In ticks. As they are, no test belongs to a loop.
struct TestLoopLimits {
  std::uint64_t gap = ~std::uint64_t{0};        ///< between two tests with nothing in between, readings of the clock included
  std::uint64_t between = 0;                    ///< of it, what the program may take
  std::uint64_t own_gap = 0;                    ///< the same where this runtime did something in between
  std::uint64_t interrupt = 0;                  ///< the longest that an interrupt may take
  std::uint64_t small = 0;                      ///< by what gaps differ without one: caches, the core's frequency
  std::uint64_t held_up = 0;                    ///< the same where interrupts take long: on a virtual machine whose host is busy
  std::uint64_t slack = 0;                      ///< that such gaps may take together at first
  std::uint64_t remembered = 0;                 ///< of the time in loops, as far as it tells what part of it such gaps take
  std::uint64_t long_enough = ~std::uint64_t{0};  ///< a loop that is a wait worth resting in
  std::uint64_t after_short = ~std::uint64_t{0};  ///< the same if the one before was shorter than this
  std::uint64_t noticed = ~std::uint64_t{0};      ///< tests in vain, with or without work in between, whose end others are told of
  std::uint64_t unseen = 0;                       ///< for so long after a loop was left the rank may wait for what nobody sees

  /// `gap`, which any thread may have measured anew meanwhile.
  std::uint64_t longest_gap() const noexcept { return __atomic_load_n(&gap, __ATOMIC_RELAXED); }
  void measured(std::uint64_t ticks) noexcept { __atomic_store_n(&gap, ticks, __ATOMIC_RELAXED); }
};

/// The loop of tests that a thread is in, and what became of those before. All zero is a thread that has not tested.
///
/// A loop may be left for another reason than that something was found: its program counts its tests, looks at the time, or at what
/// another thread does. Each that was costs the trust that four finds have earned; with less, none is rested in.
class TestLoop {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// A test has found nothing. `events`: changes where this runtime did something since the one before. `place`: where the program
  /// makes the test. True if a loop was left before, for something else.
  bool in_vain(const TestLoopLimits& l, std::uint64_t enter, std::uint64_t exit, std::uint64_t events, const void* place) noexcept {
    bool left = false;
    if (const std::uint64_t usual = l.longest_gap(); enter - last_ > usual) [[unlikely]] {
      if (last_ == 0) vain_since_ = enter;
      left = after_long_gap(l, usual, enter, events);
    }
    last_ = exit;
    places_ |= mark(place);
    return left;
  }

  /// Whether a test that began at `enter` and has found nothing is surely one of the loop; if not, in_vain() tells which it belongs to.
  bool goes_on(const TestLoopLimits& l, std::uint64_t enter, std::uint64_t events) const noexcept {
    return last_ != 0 && enter - last_ <= (events == events_ ? l.longest_gap() + l.small : l.own_gap);
  }

  /// Whether a test that ended at `exit` and found something ends a long loop.
  bool ends_wait(const TestLoopLimits& l, std::uint64_t exit) const noexcept { return last_ != 0 && exit - since_ >= enough(l); }

  /// Whether the thread has tested in vain for so long before something was found at `exit` that others are to know: it may have waited.
  bool tells_end(const TestLoopLimits& l, std::uint64_t exit) const noexcept { return last_ != 0 && exit - vain_since_ >= l.noticed; }

  /// Whether loops are left for something else as a rule: then the thread waits for what nobody sees.
  bool waits_unseen() const noexcept { return trust_ < kTrusted; }

  /// Whether they have been left so often, beside those that ended with something found, that they are part of a program's work.
  bool works() const noexcept { return left_for_work_ >= kWorks; }

  /// Since the last test, which ended at `exit`, this runtime has done something, until `now`.
  void resume(std::uint64_t exit, std::uint64_t now) noexcept {
    if (last_ == exit) last_ = now;
  }

  /// Tests were made that this is not told of: the next one begins another loop.
  void break_off() noexcept { last_ = 0; }
  /// They took `ticks`, and something else `unexplained` in between. Whether the loop that they are was left for it.
  bool left_unseen(const TestLoopLimits& l, std::uint64_t ticks, std::uint64_t unexplained) noexcept {
    remember(l, ticks);
    return unexplained > l.interrupt && !is_held_up(l, unexplained);
  }
  /// So were those of a whole loop that was long enough, and ended as something was found or was left for something else.
  void ended_unseen(bool found) noexcept {
    if (found) {
      earn_trust();
    } else {
      lose_trust(kLeft);
    }
  }

  /// Something was found.
  void found() noexcept {
    short_ = short_ || last_ != 0;
    last_ = 0;
  }

  /// The same by a test that began at `enter`, long after the loop did. Where that was not one of the loop, as it came too late or is
  /// made elsewhere, the loop was left for something else, and did no more than look for messages meanwhile. Returns whether it was a wait.
  bool found_after(const TestLoopLimits& l, std::uint64_t enter, std::uint64_t exit, std::uint64_t events, const void* place) noexcept {
    const std::uint64_t since = since_;
    if (const std::uint64_t usual = l.longest_gap(); enter - last_ > usual) after_long_gap(l, usual, enter, events);
    last_ = 0;
    short_ = exit - since_ < l.after_short;
    if (since_ != since) return false;
    remember_until(l, exit);
    if ((places_ & mark(place)) == 0) {
      lose_trust(kLeft);
      return false;
    }
    earn_trust();
    longest_ = std::max(longest_ - longest_ / 8, exit - since_);
    return true;
  }

  /// When a test that began after this tick is to rest, or to think of it again.
  std::uint64_t due() const noexcept { return last_ != 0 ? due_ : kNever; }
  void set_due(std::uint64_t tick) noexcept { due_ = tick; }
  /// Since when the loop has lasted.
  std::uint64_t since() const noexcept { return since_; }

  /// In a loop that lasts many times as long as any before, rests end: its program may have counted on so many tests in some time.
  bool may_rest() const noexcept { return trust_ >= kTrusted && rested_ < kTimesLongest * longest_; }
  void rested(std::uint64_t ticks) noexcept {
    rested_ += ticks;
    remembered_until_ += ticks;
  }
  /// The thread takes the loop up as a wait. True the first time.
  bool takes_up() noexcept { return !std::exchange(taken_up_, true); }

 private:
  static constexpr std::uint32_t kTrusted = 4, kMostTrust = 16, kLeft = 4;
  static constexpr std::uint32_t kWorks = 16, kMostWorks = 32;
  static constexpr std::uint64_t kTimesLongest = 8;
  static constexpr std::uint64_t kOddPart = 20;  // of loops may go into gaps that are too long: interrupts, misses of caches
  static constexpr std::uint64_t kOddPartOfYoung = 32;  // of one that is not long enough yet

  std::uint64_t enough(const TestLoopLimits& l) const noexcept { return short_ ? l.after_short : l.long_enough; }
  static std::uint64_t mark(const void* place) noexcept { return std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(place) >> 1 & 63); }

  void earn_trust() noexcept {
    trust_ = std::min(trust_ + 1, kMostTrust);
    left_for_work_ -= std::min(left_for_work_, 1u);
  }
  /// A loop was left: what took no longer than an interrupt may have been one.
  void lose_trust(std::uint32_t by) noexcept {
    trust_ -= std::min(trust_, by);
    if (by == kLeft) left_for_work_ = std::min(left_for_work_ + by, kMostWorks);
  }

  void begin(const TestLoopLimits& l, std::uint64_t enter) noexcept {
    since_ = remembered_until_ = enter;
    places_ = odd_ = rested_ = 0;
    taken_up_ = false;
    due_ = trust_ >= kTrusted ? enter + enough(l) : kNever;
  }

  /// The test that began at `enter`, after a gap longer than `usual`, is one of the loop or begins another. True if one that was long
  /// enough was left.
  bool after_long_gap(const TestLoopLimits& l, std::uint64_t usual, std::uint64_t enter, std::uint64_t events) noexcept {
    if (events != events_ || last_ - since_ >= l.long_enough) return after_gap(l, usual, enter, events);
    after_young_gap(l, usual, enter);
    return false;
  }

  /// The same in one that is not long enough: some gaps are always a little longer, by other threads of the core or its caches.
  void after_young_gap(const TestLoopLimits& l, std::uint64_t usual, std::uint64_t enter) noexcept {
    const std::uint64_t odd = odd_ + (enter - last_ - usual);
    if (odd > (enter - since_) / kOddPartOfYoung) return begin(l, enter);
    odd_ = odd;
  }

  bool after_gap(const TestLoopLimits& l, std::uint64_t usual, std::uint64_t enter, std::uint64_t events) noexcept {
    const std::uint64_t gap = enter - last_;
    bool left = false;
    if (last_ != 0) {
      if (events != events_ && gap <= l.own_gap) {
        events_ = events;
        return false;
      }
      remember_until(l, enter);
      if (is_held_up(l, gap - usual)) return false;
      left = last_ - since_ >= l.long_enough;
      if (left) lose_trust(gap <= l.interrupt ? 1 : kLeft);
    }
    events_ = events;
    begin(l, enter);
    return left;
  }

  void remember(const TestLoopLimits& l, std::uint64_t ticks) noexcept {
    in_loops_ += ticks;
    for (; in_loops_ > l.remembered; in_loops_ /= 2) {
      odd_in_loops_ /= 2;
      short_in_loops_ /= 2;
      small_in_loops_ /= 2;
    }
  }
  void remember_until(const TestLoopLimits& l, std::uint64_t tick) noexcept {
    remember(l, tick - std::min(tick, remembered_until_));
    remembered_until_ = tick;
  }

  /// Whether a gap that is too long by `ticks` is no work: if such gaps take a small part of all loops. Interrupts come now and then
  /// whatever the program does, some longer than many works. Of the short ones only what they take themselves counts, and of the small
  /// ones again: there are always some that are a little longer, and a few long interrupts would make each of them work.
  bool is_held_up(const TestLoopLimits& l, std::uint64_t ticks) noexcept {
    if (ticks > l.held_up) return false;
    const std::uint64_t most = l.slack + in_loops_ / kOddPart;
    odd_in_loops_ += ticks;
    if (ticks > l.interrupt) return odd_in_loops_ <= most;
    short_in_loops_ += ticks;
    if (ticks > l.small) return short_in_loops_ <= most;
    small_in_loops_ += ticks;
    return small_in_loops_ <= most;
  }

  std::uint64_t last_ = 0;   ///< tick at the end of the last test that was in vain; 0: the last one was not
  std::uint64_t since_ = 0;
  std::uint64_t vain_since_ = 0;  ///< the first test since something was found
  std::uint64_t due_ = 0;
  std::uint64_t places_ = 0;   ///< where it tests: a bit each
  std::uint64_t events_ = 0;
  std::uint64_t odd_ = 0;      ///< gaps in the loop, while it was young, as far as they were too long
  std::uint64_t in_loops_ = 0, odd_in_loops_ = 0;  ///< time in loops that were long enough, and what of it such gaps took; forgotten slowly
  std::uint64_t short_in_loops_ = 0, small_in_loops_ = 0;  ///< of the latter, those no longer than an interrupt may be, and the small ones
  std::uint64_t remembered_until_ = 0;  ///< what of the loop is among it; later by as much as was rested
  std::uint64_t rested_ = 0;   ///< in the loop
  std::uint64_t longest_ = 0;  ///< loop in which something was found; forgotten slowly
  std::uint32_t trust_ = 0, left_for_work_ = 0;
  bool taken_up_ = false;
  bool short_ = false;         ///< the last loop in which something was found
};

}  // namespace fallow::pmpi
