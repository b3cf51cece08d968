// Numbers as bytes and bits: variable-length integers, zigzag, and Rice codes. Writers work in memory that is
// theirs already and never allocate; readers check every bound and report the end by `ok()`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fallow::trace {

constexpr std::uint64_t zigzag(std::int64_t v) noexcept {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t v) noexcept {
  return static_cast<std::int64_t>((v >> 1) ^ (0 - (v & 1)));
}

inline constexpr std::size_t kMaxVarint = 10;  ///< bytes of the longest 64-bit number, 7 bits a byte

class ByteWriter {
 public:
  ByteWriter() = default;
  explicit ByteWriter(std::span<std::byte> memory) noexcept : memory_(memory) {}
  std::size_t size() const noexcept { return size_; }
  std::size_t room() const noexcept { return memory_.size() - size_; }
  std::span<const std::byte> bytes() const noexcept { return memory_.first(size_); }
  void clear() noexcept { size_ = 0; }

  /// The caller has made sure of kMaxVarint bytes of room.
  void varint(std::uint64_t v) noexcept {
    while (v >= 0x80) {
      memory_[size_++] = static_cast<std::byte>(v | 0x80);
      v >>= 7;
    }
    memory_[size_++] = static_cast<std::byte>(v);
  }
  void zigzag_varint(std::int64_t v) noexcept { varint(zigzag(v)); }

 private:
  std::span<std::byte> memory_;
  std::size_t size_ = 0;
};

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return at_ == bytes_.size(); }
  std::size_t position() const noexcept { return at_; }
  std::size_t left() const noexcept { return bytes_.size() - at_; }

  /// 0 once the bytes are used up or a number is longer than 64 bits; ok() tells.
  std::uint64_t varint() noexcept {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && at_ < bytes_.size(); shift += 7) {
      const auto b = static_cast<std::uint64_t>(bytes_[at_++]);
      if (shift == 63 && b > 1) break;
      v |= (b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t zigzag_varint() noexcept { return unzigzag(varint()); }
  std::span<const std::byte> take(std::size_t n) noexcept {
    if (n > left()) {
      ok_ = false;
      return {};
    }
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

/// Bits to be written at once.
struct Bits {
  std::uint64_t value = 0;
  unsigned count = 0;
};

/// Bits, least significant first.
class BitWriter {
 public:
  BitWriter() = default;
  explicit BitWriter(std::span<std::byte> memory) noexcept : memory_(memory), next_(memory.data()) {}
  /// Whole bytes of room, less what is under way.
  std::size_t room() const noexcept { return memory_.size() - size() - 2 * sizeof(held_); }
  void clear() noexcept { next_ = memory_.data(), held_ = 0, count_ = 0; }

  /// Up to kMostAtOnce bits of `v`, which has none above them. Whole bytes leave at once, without a branch: what lies
  /// behind them in the memory is written again by the next.
  static constexpr unsigned kMostAtOnce = 56;
  void bits(std::uint64_t v, unsigned n) noexcept {
    const std::uint64_t held = held_ | v << count_;
    const unsigned count = count_ + n;
    std::byte* const next = next_;
    count_ = count & 7;
    held_ = held >> (count & ~7u);
    next_ = next + (count >> 3);
    std::memcpy(next, &held, sizeof held);  // last: it might be anything, for all that compilers know
  }
  void bits(const Bits& b) noexcept { bits(b.value, b.count); }
  void long_bits(std::uint64_t v, unsigned n) noexcept {
    if (n > 32) {
      bits(v & 0xffffffffu, 32);
      bits(v >> 32, n - 32);
    } else {
      bits(v, n);
    }
  }
  std::span<const std::byte> finish() noexcept {
    if (count_ > 0) *next_++ = static_cast<std::byte>(held_ & 0xff);
    held_ = 0, count_ = 0;
    return memory_.first(size());
  }

 private:
  std::size_t size() const noexcept { return static_cast<std::size_t>(next_ - memory_.data()); }

  std::span<std::byte> memory_;
  std::byte* next_ = nullptr;
  std::uint64_t held_ = 0;  // fewer than 8 bits between two calls
  unsigned count_ = 0;
};

class BitReader {
 public:
  BitReader() = default;
  explicit BitReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  /// False once more bits were taken than there are.
  bool ok() const noexcept { return 8 * at_ - count_ <= 8 * bytes_.size(); }

  /// Up to 32 bits; zeros beyond the end, and ok() is false from there on.
  std::uint64_t bits(unsigned n) noexcept {
    if (count_ < n) refill();
    const std::uint64_t v = held_ & ((std::uint64_t{1} << n) - 1);
    held_ >>= n;
    count_ -= n;
    return v;
  }
  /// Number of ones before the next zero, which is taken too; at most `limit` (below 32) ones, then no zero.
  unsigned ones(unsigned limit) noexcept {
    if (count_ <= limit) refill();
    const auto n = static_cast<unsigned>(std::countr_one(held_));
    const unsigned taken = n < limit ? n + 1 : limit;
    held_ >>= taken;
    count_ -= taken;
    return n < limit ? n : limit;
  }
  std::uint64_t long_bits(unsigned n) noexcept {
    if (n <= 32) return bits(n);
    const std::uint64_t low = bits(32);
    return low | bits(n - 32) << 32;
  }
  void prefetch() const noexcept { __builtin_prefetch(bytes_.data() + at_); }
  /// The next bits, at least 56 of them (zeros beyond the end), left where they are.
  std::uint64_t peek() noexcept {
    if (count_ < 56) refill();
    return held_;
  }
  /// Takes up to 56 bits that peek() has just shown.
  void drop(unsigned n) noexcept {
    held_ >>= n;
    count_ -= n;
  }

 private:
  /// Leaves at least 56 bits, zeros beyond the end.
  void refill() noexcept {
    if (at_ + 8 <= bytes_.size()) [[likely]] {
      std::uint64_t word;
      std::memcpy(&word, bytes_.data() + at_, sizeof word);
      held_ |= word << count_;
      at_ += (63 - count_) >> 3;
      count_ |= 56;
      return;
    }
    while (count_ < 56) {
      if (at_ < bytes_.size()) {
        held_ |= static_cast<std::uint64_t>(bytes_[at_]) << count_;
      }
      ++at_;
      count_ += 8;
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
};

/// Rice code with parameter k: the quotient in unary, the rest in k bits. From kRiceEscape on, 6 bits of width
/// and the number as it is.
inline constexpr unsigned kRiceEscape = 20;
inline constexpr unsigned kMaxRiceBits = kRiceEscape + 6 + 64;

/// Any code, and `n` further bits `low` behind it.
inline void write_long_rice(BitWriter& out, std::uint64_t v, unsigned k, std::uint64_t low, unsigned n) noexcept {
  const std::uint64_t quotient = v >> k;
  if (quotient < kRiceEscape) {
    out.bits((std::uint64_t{1} << quotient) - 1, static_cast<unsigned>(quotient) + 1);
    out.long_bits(v & ((std::uint64_t{1} << k) - 1), k);
  } else {
    const auto width = static_cast<unsigned>(std::bit_width(v));
    out.bits((std::uint64_t{1} << kRiceEscape) - 1, kRiceEscape);
    out.bits(width - 1, 6);
    out.long_bits(v, width);
  }
  out.long_bits(low, n);
}

inline std::uint64_t read_rice(BitReader& in, unsigned k) noexcept {
  if (const std::uint64_t held = in.peek(); k <= 56 - kRiceEscape) [[likely]] {
    const auto n = static_cast<unsigned>(std::countr_one(held));
    if (n < kRiceEscape) [[likely]] {
      in.drop(n + 1 + k);
      return (std::uint64_t{n} << k) | ((held >> (n + 1)) & ((std::uint64_t{1} << k) - 1));
    }
  }
  const std::uint64_t quotient = in.ones(kRiceEscape);
  if (quotient < kRiceEscape) return (quotient << k) | in.long_bits(k);
  return in.long_bits(static_cast<unsigned>(in.bits(6)) + 1);
}

/// A duration as a number with `bits` significant bits: equal steps below 2^bits, then relative steps of at most
/// 2^(1-bits). Codes are in the order of the durations.
struct TimeCode {
  std::uint64_t code = 0;
  unsigned dropped = 0;  ///< low bits that the code does not hold
};

/// Cuts the low bits off.
constexpr TimeCode time_code_floor(std::uint64_t d, unsigned bits) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(d | 1));
  const unsigned e = width > bits ? width - bits : 0;
  return {(static_cast<std::uint64_t>(e) << (bits - 1)) + (d >> e), e};
}

/// Rounds to the nearest. `d` is below 2^63.
constexpr std::uint64_t time_code_round(std::uint64_t d, unsigned bits) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(d));
  if (width <= bits) return d;
  return time_code_floor(d + (std::uint64_t{1} << (width - bits - 1)), bits).code;
}

/// The smallest duration with this code; its `dropped` bits are zero. Codes out of range give e > 63: checked
/// by the caller.
constexpr unsigned time_code_dropped(std::uint64_t code, unsigned bits) noexcept {
  return (code >> bits) == 0 ? 0 : static_cast<unsigned>((code >> (bits - 1)) - 1);
}
constexpr std::uint64_t time_code_value(std::uint64_t code, unsigned bits) noexcept {
  const unsigned e = time_code_dropped(code, bits);
  return (code - (static_cast<std::uint64_t>(e) << (bits - 1))) << e;
}
/// Codes above this are no durations (they would not fit 63 bits).
constexpr std::uint64_t time_code_max(unsigned bits) noexcept {
  return time_code_floor((std::uint64_t{1} << 62) - 1, bits).code;
}

}  // namespace fallow::trace
