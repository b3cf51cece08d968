// What happens in a replay, and in what order (docs/adr/0031).
#pragma once

#include <cstdint>

#include "sim/time.hpp"

namespace fallow::sim {

enum class EventKind : std::uint32_t {
  resume,  ///< a rank goes on
  hop,     ///< a message reaches a link that could not be taken ahead
  arrive,  ///< a message is there
  sent,    ///< the data of a sender's request is at the receiver
  access,  ///< a request's file access is over
  pass,    ///< a Held reaches a link that could not be taken ahead
  deliver, ///< a short message is there that is no record: `tie` has its ranks, `index` its envelope
};

struct Event {
  Time time = 0;
  std::uint64_t tie = 0;     ///< see tie_of
  std::uint32_t index = 0;   ///< of a rank or of a node
  EventKind kind = EventKind::resume;

  friend bool operator<(const Event& a, const Event& b) noexcept {
    return a.time != b.time ? a.time < b.time : a.tie < b.tie;
  }
  friend bool operator>(const Event& a, const Event& b) noexcept { return b < a; }
};
static_assert(sizeof(Event) == 24);

/// An event among others that come soon: its time counts from what they all share.
class ShortEvent {
 public:
  static constexpr int kTimeBits = 29;
  ShortEvent() = default;
  ShortEvent(std::uint32_t time, std::uint64_t tie, std::uint32_t index, EventKind kind) noexcept
      : tie_(tie), rest_(std::uint64_t{index} << 32 | (time << kKindBits | static_cast<std::uint32_t>(kind))) {}
  std::uint32_t time() const noexcept { return static_cast<std::uint32_t>(rest_) >> kKindBits; }
  std::uint64_t tie() const noexcept { return tie_; }
  std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(rest_ >> 32); }
  EventKind kind() const noexcept { return static_cast<EventKind>(rest_ & ((1u << kKindBits) - 1)); }
  Event after(Time base) const noexcept { return {base + time(), tie_, index(), kind()}; }
  /// The same later.
  ShortEvent later(std::uint32_t by) const noexcept {
    ShortEvent e = *this;
    e.rest_ += std::uint64_t{by} << kKindBits;
    return e;
  }
  friend bool operator<(const ShortEvent& a, const ShortEvent& b) noexcept {
    return a.time() != b.time() ? a.time() < b.time() : a.tie_ < b.tie_;
  }

 private:
  static constexpr int kKindBits = 32 - kTimeBits;
  static_assert(static_cast<std::uint32_t>(EventKind::deliver) < 1u << kKindBits);
  std::uint64_t tie_ = 0;
  std::uint64_t rest_ = 0;  // index, time, kind: not in the order of an Event, of which they would be read as one before it is written
};
static_assert(sizeof(ShortEvent) == 16);

constexpr std::uint64_t tie_of(std::uint32_t target, std::uint32_t origin, std::uint32_t count) noexcept {
  return std::uint64_t{target} << 44 | std::uint64_t{origin} << 24 | (count & 0x7fffffu);
}
constexpr std::uint32_t target_of(std::uint64_t tie) noexcept { return static_cast<std::uint32_t>(tie >> 44); }
constexpr std::uint32_t origin_of(std::uint64_t tie) noexcept { return static_cast<std::uint32_t>(tie >> 24) & (kMaxRanks - 1); }
/// Of what goes back to the origin of a message when it arrives.
constexpr std::uint64_t tie_back(std::uint64_t tie) noexcept {
  return (tie >> 24 & 0xfffffu) << 44 | (tie >> 44) << 24 | (tie & 0xffffffu) | 0x800000u;
}

}  // namespace fallow::sim
