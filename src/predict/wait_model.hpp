// What each kind of blocking call usually waits, and how long to sleep in it: the runtime's wait mode asks
// this model at the start of a wait and after each sleep or spin phase that did not end it.
//
// Per key (a hash of call site, communicator, peer, whatever the caller tells waits apart by) it keeps the
// last kWindow waits. A plan maximizes, over that sample and a heavy-tailed prior for what was never seen,
//
//     CPU time saved - CPU cost of sleeping - price_of_delay x (expected delay + delay after any sleep)
//
// so it sleeps through a periodic wait until just before its end, sleeps to the first mode of a wait with
// several and asks again there, and of an unknown wait sleeps only a small part of what it has already lasted.
//
// Memory: what the caller hands over, kBytesPerKey for each key; the least recently used of kWays keys gives
// way. No allocation, no system call, no lock; noexcept. One thread at a time; not for signal handlers that
// may interrupt an observe().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"

namespace fallow::predict {

/// What a sleep costs here, measured by the caller.
struct WaitCosts {
  Nanoseconds sleep_cost;          ///< CPU time of going to sleep and coming back
  Nanoseconds wake_delay;          ///< by how much a timed sleep overshoots
  bool peer_can_wake = false;      ///< true: whoever ends the wait also ends the sleep
  Nanoseconds peer_wake_delay{0};  ///< lateness of such a wake; 0: as wake_delay
  Nanoseconds delay_after{0};      ///< delay that any sleep causes, also one that ends in time: caches are cold
  Nanoseconds longest{0};          ///< longest sleep at whose end the wait may be over, where only timers wake; 0: any
};

/// What to do now. After `sleep_for` (if any) and `spin` without the wait having ended, ask again.
struct WaitPlan {
  Nanoseconds sleep_for;  ///< length of the timed sleep to request; 0: do not sleep yet
  Nanoseconds spin;       ///< then poll for this long
};

/// What is known of a key's waits; all zero when nothing is.
struct WaitSummary {
  std::uint32_t samples = 0;
  Nanoseconds p10, median, p90;
};

class WaitModel {
 public:
  static constexpr std::size_t kWindow = 64;        ///< waits remembered per key
  static constexpr std::size_t kWays = 4;           ///< keys that compete for the same slots
  static constexpr std::size_t kBytesPerKey = 288;

  /// Uses as many whole sets of slots as fit into `arena` (a power of two of them), which must outlive the
  /// model. An arena too small for one set is legal: every key is then unknown.
  explicit WaitModel(std::span<std::byte> arena) noexcept;

  /// A wait of this key has ended after `wait`. Where it was found ended only on waking from a sleep, it ended
  /// at some time within the last `uncertain` of `wait`: pass that sleep's length (0: the end was seen). Returns how long
  /// the wait is taken to have lasted: where its end was not seen, what the waits before say of that time.
  Nanoseconds observe(std::uint64_t key, Nanoseconds wait, Nanoseconds uncertain = Nanoseconds(0)) noexcept;

  /// `waited`: time since the wait began. `price_of_delay`: CPU time that may be burnt to avoid one unit of
  /// delay (dimensionless, clamped to >= 1); the caller raises it as its slowdown budget runs out.
  [[nodiscard]] WaitPlan plan(std::uint64_t key, Nanoseconds waited, const WaitCosts& costs,
                              double price_of_delay) const noexcept;

  [[nodiscard]] WaitSummary summary(std::uint64_t key) const noexcept;
  /// The key to plan a wait by: `kind`, which is of some of the waits of `place`, if enough of it is known and its waits are
  /// unlike the others: clearly less spread, or others than are usual there. Else `place`, which learns faster. A kind of 0
  /// is none.
  [[nodiscard]] std::uint64_t more_telling(std::uint64_t kind, std::uint64_t place) const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return sets_ * kWays; }  ///< keys

 private:
  struct Slot {
    std::uint64_t key;
    std::uint32_t used;           ///< time stamp of the last observation; 0: empty
    std::uint16_t seen;           ///< observations behind `novel`, capped: both halve there
    std::uint16_t novel;          ///< of these, how many were like nothing in the window
    std::uint8_t count;           ///< samples in the window
    std::uint8_t head;            ///< oldest sample in `ring`
    std::uint8_t suspicion;       ///< how little ends that were not seen fit the window, in quarters of a bit; 0 once one is
    std::uint8_t unused[13];
    std::uint16_t ring[kWindow];    ///< log codes in order of arrival
    std::uint16_t sorted[kWindow];  ///< the same, ascending
  };
  static_assert(sizeof(Slot) == kBytesPerKey);

  [[nodiscard]] Slot* find(std::uint64_t key) const noexcept;
  Slot& claim(std::uint64_t key) noexcept;
  static void insert(Slot& slot, std::uint16_t code) noexcept;
  static void suspect(Slot& slot, std::uint16_t code) noexcept;
  static unsigned spread_below(const Slot& slot, const std::uint16_t* sample) noexcept;
  static std::uint16_t impute(const Slot& slot, std::int64_t low_ns, std::int64_t high_ns,
                              std::uint32_t draw) noexcept;

  Slot* slots_ = nullptr;
  std::size_t sets_ = 0;
  std::uint32_t clock_ = 0;
};

}  // namespace fallow::predict
