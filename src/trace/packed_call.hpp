// Calls less their times in as few bytes as they take: readers keep hundreds of them for each of thousands of ranks.
#pragma once

#include <cstdint>

#include "trace/event.hpp"

namespace fallow::trace {

/// What is left of a call whose shape is known (CallShapes).
struct PackedCall {
  static constexpr std::uint32_t kOwnPeers = 1u << 31;  ///< in a number: the shape does not tell peers

  std::uint32_t number = 0;  ///< of its shape, without kOwnPeers; 0: it has none
  bool own_peers = false;
  std::int32_t peer = kNoPeer, recv_peer = kNoPeer;  ///< with `own_peers`
  std::uint64_t compute_ns = 0;

  static constexpr std::uint32_t kMostPlaces = 6;  ///< of four bytes

  /// Packs a call with the shape `number`, which may have kOwnPeers. Returns the place after it. There is room for kMostPlaces.
  static std::uint32_t* pack(std::uint32_t* at, std::uint32_t number, std::int32_t peer, std::int32_t recv_peer, std::uint64_t compute_ns) noexcept {
    if (number >> kNumberBits == 0 && compute_ns >> (kShort + 32) == 0) [[likely]] {
      const auto high = static_cast<std::uint32_t>(compute_ns >> kShort);
      const std::uint32_t is_long = high != 0 ? 1 : 0;
      at[0] = number | is_long << kNumberBits | static_cast<std::uint32_t>(compute_ns) << (32 - kShort);
      at[1] = high;  // or, if it is none, what the next call is written over
      return at + 1 + is_long;
    }
    at[0] = kWide;
    at[1] = number;
    at[2] = static_cast<std::uint32_t>(peer);
    at[3] = static_cast<std::uint32_t>(recv_peer);
    at[4] = static_cast<std::uint32_t>(compute_ns);
    at[5] = static_cast<std::uint32_t>(compute_ns >> 32);
    return at + kMostPlaces;
  }
  static std::uint32_t places(const std::uint32_t* at) noexcept {
    const std::uint32_t flags = at[0] >> kNumberBits & 3;
    return flags == 0 ? 1 : flags == 1 ? 2 : kMostPlaces;
  }
  static PackedCall unpack(const std::uint32_t* at) noexcept {
    PackedCall c;
    const std::uint32_t first = at[0];
    c.number = first & ((1u << kNumberBits) - 1);
    c.compute_ns = first >> (32 - kShort);
    if ((first & (kLong | kWide)) == 0) [[likely]] return c;
    if ((first & kWide) == 0) {
      c.compute_ns |= std::uint64_t{at[1]} << kShort;
      return c;
    }
    c.number = at[1] & ~kOwnPeers;
    c.own_peers = (at[1] & kOwnPeers) != 0;
    c.peer = static_cast<std::int32_t>(at[2]);
    c.recv_peer = static_cast<std::int32_t>(at[3]);
    c.compute_ns = std::uint64_t{at[5]} << 32 | at[4];
    return c;
  }

 private:
  static constexpr unsigned kNumberBits = 14, kShort = 16;  ///< of a number, and of nanoseconds, in one place
  static constexpr std::uint32_t kLong = 1u << kNumberBits;        ///< the next place has more of the nanoseconds
  static constexpr std::uint32_t kWide = 1u << (kNumberBits + 1);  ///< five more places have it all
  static_assert(kNumberBits + 2 + kShort == 32);
};

}  // namespace fallow::trace
