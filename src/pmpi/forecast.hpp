// What the rank will do next: the adaptive predictor, fed with the rank's calls, says how long the gap after a call will
// last and which kind of wait a call is. Part of the runtime's auto mode.
//
// The call path has no time for a predictor, so its time is rationed: it may spend 1/128 of the run time, saved up for
// bursts. A call that comes when nothing is saved goes by unseen, as do the calls of dense loops, which have no gap to
// predict. What a call of the idle hook asks for is done in time that is waited anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "pmpi/node_page.hpp"
#include "predict/adaptive.hpp"

namespace fallow::pmpi {

inline constexpr std::size_t kForecastBytes = 256 * 1024;  ///< about 1200 contexts

/// The call under way, as far as it is known before it ends.
struct CallNow {
  std::uint64_t enter;  ///< tick
  const void* caller;
  std::uint16_t op;
};

/// One per process; fed by the thread that it belongs to.
class Forecast {
 public:
  /// Sets it up; until then it belongs to nobody and costs a comparison a call. `budget`: delay that rests may cause,
  /// as a share of time. `owner`: names the thread. May throw.
  void open(const TickClock& clock, NodeSlot& slot, double budget, const void* owner);
  void close() noexcept { owner_ = nullptr; }

  bool belongs_to(const void* thread) const noexcept { return owner_ == thread; }

  /// The call under way has begun to wait. Returns the key that its waits are told apart by, 0 if nothing is known.
  std::uint64_t enter(const CallNow& call) noexcept;
  /// The wait of the call under way, ticks, when it is over.
  void waited(std::uint64_t ticks) noexcept { wait_ = ticks; }
  /// A wait is predicted to last until this tick: nothing is expected to come in for the rank before.
  void wait_until(std::uint64_t tick) noexcept { publish(tick); }

  /// The call under way has ended.
  void exit(const CallNow& call, std::uint64_t exit_tick) noexcept {
    savings_ += (exit_tick - last_exit_) >> kShareShift;
    savings_ = savings_ < most_saved_ ? savings_ : most_saved_;
    last_exit_ = exit_tick;
    if (savings_ >= price_ || entered_) {
      savings_ -= savings_ < price_ ? savings_ : price_;
      feed(call, exit_tick);
    } else {
      go_by();
    }
  }

 private:
  static constexpr unsigned kShareShift = 7;

  void feed(const CallNow& call, std::uint64_t exit_tick) noexcept;
  void go_by() noexcept;
  void publish(std::uint64_t tick) noexcept;
  predict::Call to_call(const CallNow& call) const noexcept;
  Nanoseconds time_of(std::uint64_t tick) const noexcept { return length_of(tick - start_); }
  Nanoseconds length_of(std::uint64_t ticks) const noexcept {
    return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_));
  }

  const void* owner_ = nullptr;
  // One rate for the whole run: a clock that is set right in between would make gaps longer or shorter.
  double ns_per_tick_ = 1.0;
  std::uint64_t start_ = 0;
  NodeSlot* slot_ = nullptr;
  std::uint64_t last_exit_ = 0, savings_ = 0, most_saved_ = 0, price_ = 0;  // ticks
  std::uint64_t wait_ = 0;
  bool entered_ = false;    // the predictor knows of the call under way
  bool published_ = false;  // the slot says how long we rest
  std::optional<predict::AdaptivePredictor> predictor_;
  alignas(64) std::byte arena_[kForecastBytes];
};

}  // namespace fallow::pmpi
