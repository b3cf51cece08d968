// A light LZ77 of bytes, after the block format of LZ4 (token, literals, 16-bit offset, match length): small,
// fast, and in the runtime without any library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fallow::trace {

inline constexpr std::size_t kLzHashBits = 12;

/// Where matches were seen; 16 KiB, kept by the caller so that nothing is allocated.
using LzTable = std::array<std::uint32_t, std::size_t{1} << kLzHashBits>;

/// Packs `in` into `out`. Returns the bytes used, or 0 if they would be as many as `in` has or `out` is too small.
std::size_t lz_pack(std::span<const std::byte> in, std::span<std::byte> out, LzTable& table) noexcept;

/// Unpacks into exactly `out`. False if `in` is damaged: nothing outside of `out` is touched.
bool lz_unpack(std::span<const std::byte> in, std::span<std::byte> out) noexcept;

}  // namespace fallow::trace
