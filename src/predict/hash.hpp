// Mixing of identifiers into hashes. Not for hostile input: what is hashed here is a program's own behaviour.
#pragma once

#include <cstdint>

namespace fallow::predict {

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;  ///< 2^64 / golden ratio, odd

/// Bijective scrambling of 64 bits (the finalizer of MurmurHash3, cut to one multiplication).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x ^= x >> 32;
  x *= kGolden;
  return x ^ (x >> 29);
}

/// The hash of a sequence, grown by one element.
constexpr std::uint64_t extend_hash(std::uint64_t hash, std::uint64_t element) noexcept {
  return (hash + kGolden) * 0xD6E8FEB86659FD93ULL ^ mix(element + 1);
}

}  // namespace fallow::predict
