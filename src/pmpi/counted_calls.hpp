// Calls that are counted only. Programs that test for messages after each small piece of work, as HPC Challenge's RandomAccess does,
// read and write the memory of others in small pieces, as NWChem does, or send short messages, make so many calls that to
// record each takes a part of their time (docs/adr/0008).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace fallow::pmpi {

/// In ticks. As they are, every call is recorded.
struct CountLimits {
  std::uint64_t slow = 0;       ///< from a call to the next, on average: where it is more, to record them costs little
  std::uint64_t closest = 0;    ///< the same: it is never less
  std::uint64_t nothing = 0;    ///< the same between two tests that are counted, of a loop that may be a wait to rest in; 0: none is
  std::uint64_t long_enough = ~std::uint64_t{0};  ///< such a loop
  std::uint64_t work = 0, work_of_waiters = 0;    ///< between two tests that were recorded, beside what such loops have; where these rest
};

inline constexpr std::size_t kMostGiven = 7;  ///< arguments of a call that tell whether it is as the last one

/// What the last call of a place was about: one that is given the same again is counted with nothing looked up.
struct LastCall {
  const void* bindings = nullptr;    ///< where the Fortran bindings were called from, which made the call; null: the program did
  std::array<std::uint64_t, kMostGiven> given{};  ///< handles and numbers, in the order in which the wrapper has them
  void* returns_to = nullptr;        ///< the call; null: none is known
  std::uint32_t handles = 0;         ///< the generation that they are of
  std::int32_t peer = -1;            ///< below 0: none
  std::uint32_t wanted_calls = 0;    ///< see Thread
  std::uint64_t where = 0;           ///< communicator or window that this is a rank of
  std::uint64_t bytes = 0, received = 0;  ///< see CallPlace
};

/// An argument as LastCall has it.
template <class Argument>
std::uint64_t as_given(Argument argument) noexcept {
  if constexpr (std::is_pointer_v<Argument>) {
    return reinterpret_cast<std::uint64_t>(argument);
  } else if constexpr (sizeof argument == sizeof(std::uint64_t)) {
    return static_cast<std::uint64_t>(argument);
  } else {
    return static_cast<std::uint32_t>(argument);
  }
}

template <class Argument>
bool is_given(const std::uint64_t& given, Argument argument) noexcept {
  if constexpr (sizeof argument == sizeof given) return given == as_given(argument);
  return static_cast<std::uint32_t>(given) == static_cast<std::uint32_t>(as_given(argument));
}

/// Where a program makes calls, and on which communicator; 0: on none.
struct CallPlace {
  const void* caller = nullptr;
  CallPlace* next = nullptr; ///< where the call after one here was made the last time
  std::uint64_t lasts = 0;   ///< ticks of such a call, as those that were recorded
  std::uint64_t bytes = 0;   ///< of those that were counted
  std::uint64_t received = 0;///< by these, beside `bytes`, which are sent
  std::uint32_t count = 0;   ///< calls that were counted and are not in the totals yet
  std::uint32_t repeats = 0; ///< the same of those like `last`, which neither `count` nor `bytes` has yet
  std::uint16_t op = 0, comm = 0;
  bool tests = false;        ///< else they are messages, or one-sided
  LastCall last;
};

/// How the time since the last call that was recorded is divided among the calls that were counted since.
struct CountedTime {
  std::uint64_t gap = 0;           ///< before each of them
  std::uint64_t calls = 0, of = 1; ///< each takes `calls` / `of` of what such calls take
};

/// Counts a thread's calls at a few places. It reads no clock: that is done at each call that is recorded, one of kAtATime, and says how
/// long those took that were counted before it. All zero is a thread whose calls are all recorded.
class CountedCalls {
 public:
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::uint32_t kAtATime = 127;

  bool on() const noexcept { return on_; }

  /// From now on calls at these places are counted. `gap`: what was between those recorded, on average. `by_trust`: by their gaps they
  /// may be loops that wait, but such loops have been left for work as a rule.
  void begin(std::span<const CallPlace> places, std::uint64_t gap, bool by_trust) noexcept {
    const std::uint32_t patience = !looked_like_wait_ || by_trust ? patience_ : std::min(2 * patience_, kMostPatience);
    *this = {};
    patience_ = patience;
    on_ = !places.empty() && places.size() <= kPlaces;
    by_trust_ = by_trust;
    gap_ = gap;
    left_ = kAtATime;
    used_ = on_ ? static_cast<std::uint32_t>(places.size()) : 0;
    std::copy_n(places.begin(), used_, places_.begin());
    for (std::uint32_t n = 0; n < used_; ++n) places_[n].next = &places_[(n + 1) % used_];  // they come in turns, as a rule
    now_ = used_ == 0 ? nullptr : &places_[used_ - 1];
  }
  void stop() noexcept { on_ = false; }
  /// What looked like a wait was one, as far as those tell that were recorded since; else it takes more to end counting the next time.
  void was_wait() noexcept {
    looked_like_wait_ = false;
    patience_ = 1;
  }

  /// Whether the call that is about to be made may be counted only, at the place whose turn it is.
  bool takes_next(std::uint16_t op, const void* caller) const noexcept {
    return left_ != 0 && now_->next->caller == caller && now_->next->op == op;
  }
  /// The same at any of them, whose turn it is then.
  bool takes(std::uint16_t op, const void* caller) noexcept {
    if (left_ == 0) return false;
    const auto here = [&](const CallPlace& p) { return p.caller == caller && p.op == op; };
    CallPlace* const end = places_.data() + used_;
    CallPlace* const place = here(*now_->next) ? now_->next : std::find_if(places_.data(), end, here);
    if (place == end) return false;
    now_->next = place;
    return true;
  }
  /// It is counted.
  void take() noexcept {
    now_ = now_->next;
    --left_;
    ++now_->count;
    ++open_;
    run_ = now_->tests ? run_ + 1 : 0;
  }
  /// The same of one that was like the last at this place, whose turn it was. False where it is to be taken: it was the last one.
  bool repeat(CallPlace& place, bool tests) noexcept {
    if (--left_ == 0) [[unlikely]] {
      left_ = 1;
      return false;
    }
    ++place.repeats;
    now_ = &place;
    run_ = tests ? run_ + 1 : 0;
    return true;
  }
  /// Of the call that was counted last, to be filled.
  LastCall& last() noexcept {
    take_repeats(*now_);
    return now_->last;
  }
  /// Whose turn it is; null: the next call is to be recorded.
  CallPlace* turn() const noexcept { return on_ && left_ != 0 ? now_->next : nullptr; }
  /// The place of the call that was counted last.
  CallPlace& now() noexcept { return *now_; }
  const CallPlace& now() const noexcept { return *now_; }
  /// It was on another communicator, or is to be recorded after all.
  void untake() noexcept {
    --now_->count;
    --open_;
  }
  void move(std::uint16_t comm) noexcept {
    now_->comm = comm;
    now_->count = open_ = 1;
    if (++moves_ == kMoves) left_ = 0;
  }

  /// Whether many times as many calls as `recorded` were counted since this was last asked: else most are made elsewhere now.
  bool pays(std::uint32_t recorded) noexcept { return std::exchange(taken_, 0u) + open() >= kWorthwhile * recorded; }

  /// The test that was counted last has found something.
  void found() noexcept { ++found_; }
  /// Calls that were counted and are not in the totals yet, without tests in vain.
  std::uint32_t useful() const noexcept {
    std::uint32_t calls = found_;
    for (const CallPlace& p : places_) calls += p.tests ? 0 : p.count + p.repeats;
    return calls;
  }
  /// Calls that were counted and are not in the totals yet.
  std::uint32_t open() const noexcept {
    std::uint32_t calls = open_;
    for (const CallPlace& p : places_) calls += p.repeats;
    return calls;
  }
  std::span<CallPlace> places() noexcept { return places_; }

  /// Something was found, or a call of another kind is made: ticks that the tests took that were made at once before, at least.
  std::uint64_t end_run() noexcept {
    const std::uint64_t lasted = run_lasted();
    run_ = 0;
    return lasted;
  }
  /// Tests in a row that were counted and found nothing, with no call of another kind in between.
  std::uint64_t run() const noexcept { return run_; }
  std::uint64_t run_lasted() const noexcept { return now_ == nullptr ? 0 : run_ * now_->lasts; }
  bool by_trust() const noexcept { return by_trust_; }

  /// `ticks` after the last call that was recorded another one is to be. Says how that time is divided; then close() it.
  CountedTime divide(const CountLimits& l, std::uint64_t ticks) noexcept {
    for (CallPlace& p : places_) take_repeats(p);
    std::uint64_t calls = 0;
    for (const CallPlace& p : places_) calls += p.count * p.lasts;
    judge(l, ticks, calls);
    if (calls >= ticks) return {0, ticks, std::max<std::uint64_t>(calls, 1)};
    const std::uint64_t gap = (ticks - calls) / (open_ + 1);
    if (gap > kOddTimes * gap_ + l.nothing) return {gap_, 1, 1};  // a computation was between two of them
    gap_ = gap;
    return {gap, 1, 1};
  }
  /// Of the time that was divided last, ticks that these calls took with what is usual between them, and what neither took.
  std::uint64_t explained() const noexcept { return explained_; }
  std::uint64_t unexplained() const noexcept { return unexplained_; }
  void close() noexcept {
    taken_ += open_;
    for (CallPlace& p : places_) p.bytes = p.received = p.count = 0;
    open_ = found_ = 0;
    left_ = on_ ? kAtATime : 0;
  }

 private:
  static constexpr std::uint64_t kOddTimes = 2;
  static constexpr std::uint32_t kFew = 16, kMostFew = 8, kMostOdd = 2, kMoves = 4, kWorthwhile = 16;
  static constexpr std::uint32_t kMostPatience = 16;
  static constexpr std::uint32_t kSpans = 256;  ///< after which many are recorded again, to see how long they last now

  void take_repeats(CallPlace& p) noexcept {
    const std::uint32_t repeats = std::exchange(p.repeats, 0u);
    open_ += repeats;
    p.count += repeats;
    p.bytes += repeats * p.last.bytes;
    p.received += repeats * p.last.received;
  }
  bool only_tests() const noexcept {
    return std::all_of(places_.begin(), places_.end(), [](const CallPlace& p) { return p.tests || p.count == 0; });
  }

  void judge(const CountLimits& l, std::uint64_t ticks, std::uint64_t calls) noexcept {
    few_ = open_ < kFew ? few_ + 1 : 0;
    const bool whole = open_ == kAtATime, at_leisure = ticks > open_ * l.slow;
    explained_ = std::min(ticks, calls + gap_ * (open_ + 1));
    unexplained_ = ticks - explained_;
    const bool odd = ticks > calls + (kOddTimes * gap_ + l.nothing) * (open_ + 1);
    odd_ = odd && (at_leisure || only_tests()) ? odd_ + 1 : 0;  // others may come in bursts, with computations between
    const bool waits = whole && run_ >= open_ && !by_trust_ && ticks <= calls + open_ * l.nothing;
    waits_ = waits ? waits_ + 1 : 0;
    looked_like_wait_ = waits_ >= patience_;
    const bool slow = whole && !odd && at_leisure;
    if (looked_like_wait_ || slow || few_ >= kMostFew || odd_ >= kMostOdd || moves_ >= kMoves || ++spans_ >= kSpans) stop();
  }

  std::array<CallPlace, kPlaces> places_{};
  CallPlace* now_ = nullptr;
  std::uint32_t used_ = 0;     ///< of the places
  std::uint64_t gap_ = 0;   ///< ticks between two calls, of late
  std::uint64_t explained_ = 0, unexplained_ = 0;
  std::uint64_t run_ = 0;
  std::uint32_t left_ = 0;  ///< to be counted until one is recorded
  std::uint32_t taken_ = 0; ///< counted since it was last asked whether that pays
  std::uint32_t open_ = 0, found_ = 0, few_ = 0, odd_ = 0, moves_ = 0, spans_ = 0, waits_ = 0;
  std::uint32_t patience_ = 1;  ///< times in a row that it looks like a wait until counting ends
  bool on_ = false, by_trust_ = false, looked_like_wait_ = false;
};

}  // namespace fallow::pmpi
