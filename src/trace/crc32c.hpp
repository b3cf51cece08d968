// CRC-32C (Castagnoli; RFC 3720 appendix B.4): reflected polynomial 0x82f63b78.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fallow::trace {

/// `seed` is the result over the bytes before, to continue; about 1.5 bytes a cycle.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept;

}  // namespace fallow::trace
