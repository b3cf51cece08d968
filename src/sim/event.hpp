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
