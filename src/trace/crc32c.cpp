#include "trace/crc32c.hpp"

#include <array>
#include <cstring>

namespace fallow::trace {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;
constexpr std::size_t kSlices = 8;

constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, kSlices> t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? kPolynomial : 0);
    t[0][i] = c;
  }
  for (std::size_t s = 1; s < kSlices; ++s) {
    for (std::uint32_t i = 0; i < 256; ++i) t[s][i] = (t[s - 1][i] >> 8) ^ t[0][t[s - 1][i] & 0xff];
  }
  return t;
}
constexpr auto kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
  std::uint32_t c = ~seed;
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  for (; n >= kSlices; n -= kSlices, p += kSlices) {
    std::uint64_t w;
    std::memcpy(&w, p, sizeof w);
    w ^= c;
    c = 0;
    for (std::size_t s = 0; s < kSlices; ++s) c ^= kTables[kSlices - 1 - s][(w >> (8 * s)) & 0xff];
  }
  for (; n != 0; --n, ++p) c = (c >> 8) ^ kTables[0][(c ^ static_cast<std::uint32_t>(*p)) & 0xff];
  return ~c;
}

}  // namespace fallow::trace
