// The clock of a rank's trace, which all its threads share: what one of them does before another one has times before it. It is
// corrected while the program runs, and never goes backwards; reading takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace fallow::trace {

/// From ticks to nanoseconds of the trace.
struct ClockScale {
  std::uint64_t ticks = 0;   ///< this instant ...
  std::uint64_t ns = 0;      ///< ... on the trace's clock
  double ns_per_tick = 1.0;
};

/// `ticks` in nanoseconds, rounded down, at so many of these in 2^32 ticks.
inline std::uint64_t scaled_ticks(std::uint64_t ticks, std::uint64_t rate) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{ticks} * rate) >> 32);
}

class TraceClock {
 public:
  /// In which it goes at one rate.
  struct Stretch {
    std::uint64_t ticks = 0, ns = 0;  ///< where it begins
    std::uint64_t rate = 0;           ///< nanoseconds per 2^32 ticks: 2^-33 at most of a time is lost by rounding it
    const Stretch* before = nullptr;
    std::atomic<const Stretch*> next{nullptr};

    std::uint64_t scaled(std::uint64_t t) const noexcept { return scaled_ticks(t, rate); }
  };

  static constexpr std::uint32_t kCorrections = 640;  ///< no more than so many: one a second, and rarer later, last for years

  /// Throws std::bad_alloc if there is no memory.
  explicit TraceClock(const ClockScale& first);

  /// The clock was read again: it should be `read.ns` at `read.ticks`, and go at that rate. It moves over to it within a second from
  /// `from` on, later than `read` and than any tick that was asked for; not at all if now(), which it asks last, is not before that.
  /// Any thread; a second one returns at once.
  template <class Now>
  void correct(const ClockScale& read, std::uint64_t from, Now now) noexcept {
    if (busy_.exchange(true, std::memory_order_acquire)) return;
    Stretch& last = stretches_[used_ - 1];
    if (corrects(last, read, from) && now() < from) {
      last.next.store(&stretches_[used_], std::memory_order_release);
      used_ += 2;
    }
    busy_.store(false, std::memory_order_release);
  }

  const Stretch* first() const noexcept { return &stretches_[0]; }

 private:
  bool corrects(const Stretch& last, const ClockScale& read, std::uint64_t from) noexcept;

  std::unique_ptr<Stretch[]> stretches_;
  std::uint32_t used_ = 1;
  std::atomic<bool> busy_{false};
};

/// One thread's place on the clock.
class TraceClockReader {
 public:
  explicit TraceClockReader(const TraceClock& clock) noexcept { go_to(clock.first()); }

  /// Looks for corrections: to be called after the last tick that is asked for next was taken.
  void refresh() noexcept { go_to(at_); }
  std::uint64_t to_ns(std::uint64_t ticks) noexcept {
    if (ticks - from_ >= length_) [[unlikely]] return find(ticks);
    return ns_ + scaled(ticks - from_);
  }
  /// A duration in nanoseconds, at the rate of the last time that was asked for.
  std::uint64_t scaled(std::uint64_t ticks) const noexcept { return scaled_ticks(ticks, rate_); }

 private:
  void go_to(const TraceClock::Stretch* stretch) noexcept {
    at_ = stretch;
    from_ = at_->ticks, ns_ = at_->ns, rate_ = at_->rate;
    const auto* const next = at_->next.load(std::memory_order_acquire);
    length_ = next != nullptr ? next->ticks - from_ : std::uint64_t{1} << 63;
  }
  std::uint64_t find(std::uint64_t ticks) noexcept;

  const TraceClock::Stretch* at_ = nullptr;
  std::uint64_t from_ = 0, ns_ = 0, rate_ = 0, length_ = 0;  ///< of `at_`, near at hand
};

}  // namespace fallow::trace
