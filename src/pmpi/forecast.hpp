// What the rank will do next: the adaptive predictor, fed with the rank's calls, says how long the gap after a call will
// last and which kind of wait a call is. Part of the runtime's auto mode.
//
// The call path has no time for a predictor, whose memory is cold when a call comes after a computation. So calls are learnt
// later, while the rank waits anyway, see foresee.hpp; only after calls that long gaps have followed lately, something is
// said at once, if anybody asks, and that is rationed to 1/1024 of the run time. What is too much to be caught up with goes by unseen.
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

/// One per process; about the thread that it belongs to.
class Forecast {
 public:
  /// Sets it up; until then it belongs to nobody and costs a comparison a call. `budget`: delay that rests may cause,
  /// as a share of time. `owner`: names the thread. May throw.
  void open(const TickClock& clock, NodeSlot& slot, double budget, const void* owner);
  void close() noexcept { owner_ = nullptr; }

  bool belongs_to(const void* thread) const noexcept { return owner_ == thread; }

  /// A call from here has ended: whether promise() is to be asked, or an earlier promise to be withdrawn.
  bool matters_after(const void* caller) const noexcept { return promised_ || (long_after_ >> mark_of(caller) & 1) != 0; }
  /// Whether learning `calls` calls at this tick, when nobody waits, fits into the ration; then it is taken from it.
  bool affords(std::uint64_t calls, std::uint64_t tick) noexcept;

  /// The next call that has ended; `wait`: the ticks that it waited.
  void learn(const CallNow& call, std::uint64_t exit_tick, std::uint64_t wait) noexcept;
  /// The calls since the last one learnt go by unseen.
  void pass_over() noexcept;
  /// Tells the node until when the rank will not need the network, by the last call learnt, which has ended just now.
  void promise() noexcept;
  void withdraw() noexcept { publish(0); }

  /// The call under way, the next after the last one learnt, has begun to wait. Returns the key that its waits are told apart
  /// by, 0 if nothing is known.
  std::uint64_t enter(const CallNow& call) noexcept;
  /// A wait is predicted to last until this tick: nothing is expected to come in for the rank before.
  void wait_until(std::uint64_t tick) noexcept { publish(tick); }

 private:
  static unsigned mark_of(const void* caller) noexcept {
    return static_cast<unsigned>((reinterpret_cast<std::uint64_t>(caller) * 0x9e3779b97f4a7c15u) >> 58);
  }
  void note_gap(std::uint64_t ticks) noexcept;
  void publish(std::uint64_t tick) noexcept;
  predict::Call to_call(const CallNow& call) const noexcept;
  /// Negative before the start: the first call, which sets this up, has begun earlier.
  Nanoseconds time_of(std::uint64_t tick) const noexcept {
    return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(tick - start_)) * ns_per_tick_));
  }
  Nanoseconds length_of(std::uint64_t ticks) const noexcept {
    return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_));
  }

  // --- read after every call
  const void* owner_ = nullptr;
  std::uint64_t long_after_ = 0;  // a bit for each place, by mark_of(): long gaps have followed lately
  bool promised_ = false;         // the slot says how long we rest
  bool entered_ = false;          // the predictor knows of the call under way

  // One rate for the whole run: a clock that is set right in between would make gaps longer or shorter.
  double ns_per_tick_ = 1.0;
  std::uint64_t start_ = 0;
  NodeSlot* slot_ = nullptr;
  std::uint64_t savings_ = 0, most_saved_ = 0, saved_until_ = 0, price_ = 0, long_gap_ = 0;  // ticks
  std::uint64_t last_exit_ = 0;  // of the last call learnt; 0: calls went by since
  unsigned last_mark_ = 0;
  Nanoseconds rest_{0};          // after the last call learnt
  std::uint8_t lately_[64] = {};  // by mark_of(): how many more short gaps until its bit is cleared
  std::optional<predict::AdaptivePredictor> predictor_;
  alignas(64) std::byte arena_[kForecastBytes];
};

}  // namespace fallow::pmpi
