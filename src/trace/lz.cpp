#include "trace/lz.hpp"

#include <algorithm>
#include <cstring>

namespace fallow::trace {
namespace {

constexpr std::size_t kMinMatch = 4;
constexpr std::size_t kMaxOffset = 0xffff;
constexpr std::size_t kNibble = 15;   // lengths from here on go on in further bytes
constexpr std::uint32_t kHashFactor = 2654435761u;  // Knuth's multiplicative hash, 2^32 / golden ratio

std::uint32_t load4(const std::byte* p) noexcept {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

struct Out {
  std::span<std::byte> to;
  std::size_t n = 0;
  bool fits = true;

  void put(std::size_t v) noexcept {
    if (n < to.size()) {
      to[n++] = static_cast<std::byte>(v);
    } else {
      fits = false;
    }
  }
  void length(std::size_t rest) noexcept {
    for (; rest >= 255; rest -= 255) put(255);
    put(rest);
  }
  /// One token: literals, then a match (`match` 0: the last token, which has none).
  void sequence(std::span<const std::byte> literals, std::size_t offset, std::size_t match) noexcept {
    const std::size_t extra = match == 0 ? 0 : match - kMinMatch;
    put(std::min(literals.size(), kNibble) << 4 | std::min(extra, kNibble));
    if (literals.size() >= kNibble) length(literals.size() - kNibble);
    if (literals.size() > to.size() - n) {
      fits = false;
      return;
    }
    std::copy(literals.begin(), literals.end(), to.begin() + static_cast<std::ptrdiff_t>(n));
    n += literals.size();
    if (match == 0) return;
    put(offset & 0xff);
    put(offset >> 8);
    if (extra >= kNibble) length(extra - kNibble);
  }
};

struct In {
  std::span<const std::byte> from;
  std::size_t at = 0;
  bool ok = true;

  std::size_t get() noexcept {
    if (at < from.size()) return static_cast<std::size_t>(from[at++]);
    ok = false;
    return 0;
  }
  std::size_t length(std::size_t nibble, std::size_t limit) noexcept {
    std::size_t n = nibble;
    if (nibble == kNibble) {
      std::size_t b = 255;
      while (ok && b == 255 && n <= limit) n += b = get();
    }
    ok = ok && n <= limit;
    return n;
  }
};

}  // namespace

std::size_t lz_pack(std::span<const std::byte> in, std::span<std::byte> out, LzTable& table) noexcept {
  table.fill(0);
  Out o{out.first(std::min(out.size(), in.size()))};
  std::size_t literal = 0, at = 0;
  while (at + kMinMatch <= in.size() && o.fits) {
    const std::uint32_t word = load4(in.data() + at);
    std::uint32_t& slot = table[(word * kHashFactor) >> (32 - kLzHashBits)];
    const std::size_t candidate = slot;  // position + 1; 0: none
    slot = static_cast<std::uint32_t>(at + 1);
    if (candidate == 0 || at + 1 - candidate > kMaxOffset || load4(in.data() + candidate - 1) != word) {
      at += 1 + ((at - literal) >> 6);  // skip ahead where nothing matches
      continue;
    }
    const std::size_t offset = at + 1 - candidate;
    std::size_t match = kMinMatch;
    while (at + match < in.size() && in[at + match] == in[at + match - offset]) ++match;
    o.sequence(in.subspan(literal, at - literal), offset, match);
    at += match;
    literal = at;
  }
  o.sequence(in.subspan(literal), 0, 0);
  return o.fits && o.n < in.size() ? o.n : 0;
}

bool lz_unpack(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  In i{in};
  std::size_t n = 0;
  while (true) {
    const std::size_t token = i.get();
    const std::size_t literals = i.length(token >> 4, out.size() - n);
    if (!i.ok || literals > in.size() - i.at) return false;
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(i.at), literals, out.begin() + static_cast<std::ptrdiff_t>(n));
    i.at += literals;
    n += literals;
    if (i.at == in.size()) return n == out.size() && (token & kNibble) == 0;
    const std::size_t low = i.get(), offset = low | i.get() << 8;
    if (out.size() - n < kMinMatch) return false;
    const std::size_t match = i.length(token & kNibble, out.size() - n - kMinMatch) + kMinMatch;
    if (!i.ok || offset == 0 || offset > n) return false;
    for (std::size_t k = 0; k < match; ++k, ++n) out[n] = out[n - offset];
  }
}

}  // namespace fallow::trace
