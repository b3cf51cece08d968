#include "pmpi/giving_way.hpp"

#include <algorithm>

namespace fallow::pmpi {
namespace {

constexpr std::uint8_t kWinsToKeep = 3, kWins = 2;  // in a row, to keep cores at all and for other changes
constexpr std::uint64_t kPauseNs = 50'000'000, kLongestPauseNs = 3'200'000'000;
constexpr std::uint64_t kPauseToTrial = 50, kPauseToTrialDown = 100;  // of what was tried; going down has done harm before
constexpr std::uint64_t kWatchNs = 20'000'000, kAgainNs = 1'000'000'000;
constexpr std::uint64_t kTooLate = 4;        // windows: then the ranks have done other things than tests meanwhile
constexpr std::uint64_t kFewCalls = 16;      // of each rank in a window: nothing can be said
constexpr std::uint64_t kManyCalls = 400;    // differ by chance by less than what would count
constexpr std::uint64_t kLongest = 6;        // window, as a power of two of the shortest

/// Whether `a` is more than `tenths` of `b`, and by twice what two counts differ by chance.
constexpr bool clearly_more(std::uint64_t a, std::uint64_t b, std::uint64_t tenths) noexcept {
  return a > b && a * 10 > b * tenths && (a - b) * (a - b) > 4 * (a + b);
}

}  // namespace

void GivingWayTrials::begin_window(Window window, std::uint64_t now_ns, std::uint64_t calls) noexcept {
  window_ = window;
  began_ = now_ns;
  calls_ = calls;
  due_ = now_ns + (kWindowNs << longer_);
  if (is_tried(window)) tried_for_ += kWindowNs << longer_;
}

void GivingWayTrials::begin_trial(bool down, std::uint64_t now_ns, std::uint64_t calls) noexcept {
  down_ = level_ != 0 && (level_ + 1 == kHoldNs.size() || down);
  tried_ = down_ ? level_ - 1 : level_ + 1;
  won_ = 0;
  longer_ = tried_for_ = 0;
  begin_window(Window::before, now_ns, calls);
}

void GivingWayTrials::compare_again(std::uint64_t now_ns, std::uint64_t calls) noexcept {
  begin_window(Window::between, now_ns, calls);
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
  due_ = now_ns + random_ % (2 * (kWindowNs << longer_));
}

void GivingWayTrials::watch(std::uint64_t now_ns, std::uint64_t calls) noexcept {
  began_ = now_ns;
  calls_ = calls;
  due_ = std::min(until_, now_ns + kWatchNs);
}

void GivingWayTrials::pause(std::uint64_t now_ns, std::uint64_t calls) noexcept {
  window_ = Window::none;
  const std::uint64_t again = std::min(kPauseNs << std::min<std::uint64_t>(failed_, 16), kLongestPauseNs);
  until_ = now_ns + std::max(again, tried_for_ * (down_ ? kPauseToTrialDown : kPauseToTrial));
  usual_ = 0;
  watch(now_ns, calls);
}

GivingWayTrials::Outcome GivingWayTrials::outcome(std::uint64_t ranks) const noexcept {
  const std::uint64_t more = std::max(before_, after_), less = std::min(before_, after_);
  if (std::max(more, trial_) < kFewCalls * std::max<std::uint64_t>(ranks, 2)) return Outcome::few;
  // Who keeps the core at all takes it from others: that is to gain a lot.
  const bool from_nothing = std::min(level_, tried_) == 0;
  if (clearly_more(trial_, more, from_nothing && !down_ ? 15 : 11)) return Outcome::better;
  if (clearly_more(less, trial_, from_nothing && down_ ? 13 : 11)) return Outcome::worse;
  const bool even = trial_ * 20 >= more * 19 && less * 20 >= trial_ * 19;
  if (even && trial_ >= kManyCalls) return Outcome::even;
  const bool hopeful = down_ ? trial_ * 10 > less * 9 : trial_ > more || level_ != 0;
  return hopeful ? Outcome::unclear : Outcome::worse;
}

void GivingWayTrials::conclude(std::uint64_t now_ns, std::uint64_t calls, std::uint64_t ranks) noexcept {
  const Outcome found = outcome(ranks);
  const bool undecided = found == Outcome::few || found == Outcome::unclear;
  if (undecided && longer_ < kLongest) {
    ++longer_;
    return compare_again(now_ns, calls);
  }
  // The shorter one is kept where more gains nothing: others have the core the sooner.
  if (found != Outcome::better && (!down_ || found == Outcome::worse)) {
    ++failed_;
    return pause(now_ns, calls);
  }
  if (++won_ < (level_ == 0 ? kWinsToKeep : kWins) && !undecided) return compare_again(now_ns, calls);
  failed_ = again_ = 0;
  level_ = tried_;
  begin_trial(down_, now_ns, calls);  // on in the same direction
}

void GivingWayTrials::step(std::uint64_t now_ns, std::uint64_t calls, std::uint64_t ranks) noexcept {
  if (window_ == Window::none && now_ns >= until_) return begin_trial(!down_, now_ns, calls);
  const std::uint64_t length = window_ == Window::none ? kWatchNs : kWindowNs << longer_;
  const std::uint64_t elapsed = std::max(now_ns - began_, std::uint64_t{1});
  const bool some_have_ended = calls < calls_;
  const bool stale = elapsed > kTooLate * length || some_have_ended;
  if (stale) return window_ == Window::none ? watch(now_ns, calls) : pause(now_ns, calls);
  const std::uint64_t done = (calls - calls_) * length / elapsed;
  switch (window_) {
    case Window::between: return begin_window(Window::before, now_ns, calls);
    case Window::before: before_ = done; return begin_window(Window::going, now_ns, calls);
    case Window::going: return begin_window(Window::trial, now_ns, calls);
    case Window::trial: trial_ = done; return begin_window(Window::returning, now_ns, calls);
    case Window::returning: return begin_window(Window::after, now_ns, calls);
    case Window::after: after_ = done; return conclude(now_ns, calls, ranks);
    case Window::none: break;
  }
  const bool slower = usual_ != 0 && done * 2 < usual_;
  if (slower && now_ns >= again_) {
    again_ = now_ns + (kAgainNs << std::min<std::uint64_t>(failed_, 6));
    return begin_trial(level_ != 0, now_ns, calls);
  }
  usual_ = usual_ == 0 ? done : (3 * usual_ + done) / 4;
  watch(now_ns, calls);
}

}  // namespace fallow::pmpi
