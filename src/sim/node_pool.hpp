// Messages, a cache line each, and requests, of which a rank has many at a time, in half a line each. Freed records are
// used again first: what is hot stays hot.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/huge.hpp"
#include "sim/time.hpp"

namespace fallow::sim {

inline constexpr std::uint32_t kAnySource = 0xffffffff;  ///< low half of a key
inline constexpr std::int32_t kAnyTag = -2;

constexpr std::uint64_t key_of(std::uint32_t comm, std::uint32_t source) noexcept {
  return std::uint64_t{comm} << 32 | source;
}

/// A message's communicator and tag in the 32 bits that an event has for them. Not all fit: those with large numbers stay
/// records until they have been received.
struct Envelope {
  static constexpr std::uint32_t kTagBits = 22, kCommBits = 9;
  static constexpr bool fits(std::uint64_t key, std::int32_t tag) noexcept {
    return (key >> 32 & 0x7fffffffu) >> kCommBits == 0 && static_cast<std::uint32_t>(tag) >> kTagBits == 0;
  }
  /// The leading bit tells messages of collectives apart, as it does in a key.
  static constexpr std::uint32_t pack(std::uint64_t key, std::int32_t tag) noexcept {
    const auto comm = static_cast<std::uint32_t>(key >> 32);
    return (comm & 1u << 31) | comm << kTagBits | static_cast<std::uint32_t>(tag);
  }
  static constexpr std::uint64_t key(std::uint32_t envelope, std::uint32_t source) noexcept {
    return key_of((envelope & 1u << 31) | (envelope >> kTagBits & ((1u << kCommBits) - 1)), source);
  }
  static constexpr std::int32_t tag(std::uint32_t envelope) noexcept { return static_cast<std::int32_t>(envelope & ((1u << kTagBits) - 1)); }
};

/// Tags of collectives: the rank's how manyth on its communicator, which one, and the last bits of its root. A persistent one keeps
/// the tag that it got when it was made: ranks may start several in different orders.
struct CollectiveTag {
  static constexpr std::uint32_t kKindBits = 8, kRootBits = 4, kCountBits = Envelope::kTagBits - kKindBits;
  static constexpr std::uint32_t kPersistent = 1u << (kRootBits - 1);
  static constexpr std::uint32_t kPlanned = 15u << kRootBits;  ///< along neighbours, or between two groups
  static constexpr std::uint32_t kind(std::uint32_t operation, std::uint32_t root) noexcept {
    return operation << kRootBits | (root & (kPersistent - 1));
  }
  /// `kind` may be a whole tag.
  static constexpr std::uint32_t of(std::uint32_t count, std::uint32_t kind) noexcept {
    return (count & ((1u << kCountBits) - 1)) << kKindBits | (kind & 0xffu);
  }
  static constexpr std::uint32_t count(std::uint32_t tag) noexcept { return tag >> kKindBits; }
  static constexpr std::uint32_t operation(std::uint32_t tag) noexcept { return tag >> kRootBits & 15u; }
  /// Whether the collective numbered `count` comes after the tag's, which is not thousands of them away.
  static constexpr bool before(std::uint32_t tag, std::uint32_t count) noexcept {
    const std::uint32_t ahead = (count - (tag >> kKindBits)) & ((1u << kCountBits) - 1);
    return ahead != 0 && ahead < 1u << (kCountBits - 1);
  }
};

inline constexpr std::uint64_t kCollectiveKey = std::uint64_t{1} << 63;  ///< of messages that make up a collective

enum NodeFlags : std::uint16_t {
  kRendezvous = 1u << 0,   ///< message: an announcement; its data follows once a receive is there
  kClear = 1u << 1,        ///< message: the answer to an announcement
  kData = 1u << 2,         ///< message: the data of a rendezvous
  kTrain = 1u << 3,        ///< a part of a message under way; dropped on arrival
  kWaited = 1u << 4,       ///< request: its rank is blocked until this is done
  kDone = 1u << 5,         ///< request: complete at `time`
  kOfCollective = 1u << 6, ///< request: `owner` is a collective under way, not a number of the program
  kPersistent = 1u << 7,   ///< request: stays when complete
  kSends = 1u << 8,        ///< request: sends
  kActive = 1u << 9,       ///< persistent request: started
  kQueued = 1u << 10,      ///< request: stands in the queue of posted receives
  kSynchronous = 1u << 11, ///< send: announced whatever its size
  kOneSided = 1u << 12,    ///< message: needs no receive
  kFreed = 1u << 13,       ///< request: goes away when complete
  kBuffered = 1u << 14,    ///< send: complete at once whatever its size
  kTemplate = 1u << 15,    ///< persistent request of a collective, kept as `owner`
};

/// What a receive, or a send that is not complete at once, is kept by. Its rank is that of its row.
struct alignas(32) Request {
  std::uint64_t key = 0;        ///< communicator and source (world rank, or any)
  std::int32_t tag = 0;
  std::uint32_t next = kNone;   ///< in its queue, or of those that are free
  Time time = 0;                ///< posted, then done
  std::uint32_t owner = kNone;  ///< collective; of a persistent one, what it was made for
  std::uint16_t flags = 0;
};
static_assert(sizeof(Request) == 32);

/// A message.
struct alignas(64) Node {
  std::uint64_t key = 0;        ///< communicator and source, a world rank
  std::int32_t tag = 0;
  // While `left` is not 0, `chain` and the next five are the links that a message has before it.
  std::uint32_t order = 0;      ///< answer: half of how long the data is
  std::uint32_t spare = kNone;
  std::uint32_t next = kNone;   ///< in its queue
  std::uint32_t owner = kNone;  ///< the sender's request. Answer, data: both requests
  std::uint32_t other = kNone;  ///< answer, data: the receiver's request
  std::uint32_t chain = kNone;  ///< under way: the link it is held before
  std::uint32_t rank = 0;       ///< destination, world rank
  std::uint64_t bytes = 0;
  Time time = 0;                ///< when its tail left the last link; then, when it came
  std::uint32_t peer = kNone;   ///< sender, world rank
  std::uint16_t flags = 0;
  std::uint8_t hop : 7 = 0;       ///< links passed
  std::uint8_t squeezed : 1 = 0;  ///< message under way: it is compressed
  std::uint8_t left = 0;          ///< message held before a link: so many links, that one included, are kept here

  static constexpr std::uint32_t kKept = 5;
  /// Keeps what follows `chain` of a plain message's way, if it fits, so that it need not be found again. Copies as much
  /// whatever there is of it: how long ways are is hard to foresee for the processor.
  void keep_way(const std::uint32_t* links, std::uint32_t count) noexcept {
    if (flags != 0 || count > kKept) return;
    for (std::uint32_t i = 0; i < kKept; ++i) std::memcpy(place(i), &links[i < count ? count - 1 - i : 0], sizeof links[0]);
    left = static_cast<std::uint8_t>(count + 1);
  }
  /// The link after `chain`, or any number.
  std::uint32_t second() const noexcept { return kept(left > 1 ? left - 2u : 0); }
  /// The link with `after` more behind it (< left - 1).
  std::uint32_t kept(std::uint32_t after) const noexcept {
    std::uint32_t link;
    std::memcpy(&link, const_cast<Node*>(this)->place(after), sizeof link);
    return link;
  }

 private:
  char* place(std::uint32_t i) noexcept { return reinterpret_cast<char*>(this) + offsetof(Node, order) + i * sizeof(std::uint32_t); }
};
static_assert(offsetof(Node, other) == offsetof(Node, order) + (Node::kKept - 1) * sizeof(std::uint32_t));
static_assert(sizeof(Node) == 64);

/// What is left to know of a plain message that is held before a link, where nothing but links and a border between
/// domains has a say: its event has its ranks and when its head reaches that link.
struct alignas(8) Held {
  static constexpr std::uint32_t kKept = 4;
  static constexpr std::uint32_t kMostLinks = kKept + 2;  ///< the first is its sender's card, the last that of its receiver's node
  static constexpr std::uint32_t kNumberBits = 24;        ///< of a link; networks with more of them keep messages as records
  static constexpr std::uint32_t kLengthBits = 24, kLinkBits = 4;

  std::array<std::byte, kKept * kNumberBits / 8> way{};
  std::uint32_t envelope = 0;
  std::uint32_t bytes : kLengthBits = 0;
  std::uint32_t left : kLinkBits = 0;    ///< links before it
  std::uint32_t border : kLinkBits = 0;  ///< of these on this side of a border; 0: there is none any more
  std::uint32_t behind = 0;  ///< how long after its head its tail has left the last link, if that can matter; ps

  /// Keeps those between the first and the last link, the last first. Copies as many whatever there are: how
  /// long ways are is hard to foresee for the processor. Goes before setting the rest, which it touches.
  void keep_way(const std::uint32_t* links, std::uint32_t count) noexcept {
    const std::uint32_t inner = count - 2;
    for (std::uint32_t i = 0; i < kKept; ++i) std::memcpy(place(i), &links[inner > i ? inner - i : 0], sizeof links[0]);
  }
  /// The link with `after` more behind it, of which there are fewer than kMostLinks - 1; `last` has none.
  std::uint32_t next(std::uint32_t after, std::uint32_t last) const noexcept {
    std::uint32_t inner;
    const std::uint32_t none = after == 0 ? 1 : 0, mask = none - 1;  // `?` between links becomes a branch
    std::memcpy(&inner, const_cast<Held*>(this)->place(after + none - 1), sizeof inner);
    return (last & ~mask) | (inner & ((1u << kNumberBits) - 1) & mask);
  }

 private:
  static_assert(std::endian::native == std::endian::little);
  char* place(std::uint32_t i) noexcept { return reinterpret_cast<char*>(this) + i * (kNumberBits / 8); }
};
static_assert(sizeof(Held) == 24 && offsetof(Held, way) == 0);

/// What a message has on the wire: an announcement nothing but itself.
constexpr std::uint64_t wire_bytes(const Node& n) noexcept {
  return (n.flags & (kRendezvous | kOneSided)) == kRendezvous ? 0 : n.bytes;
}

/// Records by index, in blocks that never move: references stay valid, growing does not double what is resident.
template <class Record>
class Pool {
 public:
  std::uint32_t take() {
    if (free_.empty() && !refill()) {
      if (made_left_ == 0) {
        made_ = static_cast<std::uint32_t>(blocks_.size()) * kBlock;
        made_left_ = kBlock;
        blocks_.push_back(fresh_block());
      }
      --made_left_;
      new (&(*this)[made_]) Record{};
      return made_++;
    }
    const std::uint32_t taken = free_.back();
    free_.pop_back();
    if (free_.size() >= kAhead) __builtin_prefetch(&(*this)[free_[free_.size() - kAhead]], 1);
    (*this)[taken] = Record{};
    return taken;
  }
  /// `count` fresh records side by side (at most a block), the first a multiple of that; they are never given back.
  std::uint32_t take_row(std::uint32_t count) {
    if (row_left_ < count) {
      const auto block = static_cast<std::uint32_t>(blocks_.size()) * kBlock;
      row_ = (block + count - 1) / count * count;
      row_left_ = block + kBlock - row_;
      blocks_.push_back(fresh_block());
    }
    row_left_ -= count;
    row_ += count;
    for (std::uint32_t i = row_ - count; i < row_; ++i) new (&(*this)[i]) Record{};
    return row_ - count;
  }
  void give(std::uint32_t index) {
    if (free_.size() == kMostFree) [[unlikely]] stow();
    free_.push_back(index);
  }
  Record& operator[](std::uint32_t index) noexcept { return blocks_[index / kBlock][index % kBlock]; }
  const Record& operator[](std::uint32_t index) const noexcept { return blocks_[index / kBlock][index % kBlock]; }
  void prefetch(std::uint32_t index) const noexcept {
    const auto* at = reinterpret_cast<const char*>(&(*this)[index]);
    __builtin_prefetch(at, 1);
    if constexpr (sizeof(Record) > 64 || 64 % sizeof(Record) != 0) __builtin_prefetch(at + sizeof(Record) - 1, 1);
  }
  /// The whole row of `count` that `index` is one of.
  void prefetch_row(std::uint32_t index, std::uint32_t count) const noexcept {
    const auto* row = reinterpret_cast<const char*>(&(*this)[index - index % count]);
    for (std::size_t i = 0; i < count * sizeof(Record); i += 64) __builtin_prefetch(row + i, 1);
  }
  std::size_t memory_bytes() const noexcept {
    return (blocks_.size() * kBlock - made_left_ - row_left_) * sizeof(Record) + free_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::uint32_t kBlock = std::max(1u << 15, static_cast<std::uint32_t>(std::bit_floor(kHugePage / sizeof(Record))));  ///< a large page
  static constexpr std::size_t kMostFree = 1024;
  static constexpr std::size_t kAhead = 4;  ///< records that are about to be taken are fetched so far ahead
  struct Free {
    void operator()(Record* block) const noexcept { HugeAllocator<Record>().deallocate(block, kBlock); }
  };
  using Block = std::unique_ptr<Record[], Free>;
  static_assert(std::is_trivially_destructible_v<Record>);
  /// Untouched memory: records are made when they are first taken.
  static Block fresh_block() { return Block(HugeAllocator<Record>().allocate(kBlock)); }

  /// Numbers of free records, in one that is free itself, and what was stowed before it.
  struct Stowed {
    static constexpr std::uint32_t kNumbers = sizeof(Record) / sizeof(std::uint32_t) - 1;
    std::uint32_t before = kNone;
    std::array<std::uint32_t, kNumbers> numbers{};
  };
  static_assert(sizeof(Stowed) <= sizeof(Record) && std::is_trivially_copyable_v<Record>);

  /// Half of the free records go into each other.
  void stow() {
    std::size_t at = 0;
    for (; at + 1 + Stowed::kNumbers <= kMostFree / 2; at += 1 + Stowed::kNumbers) {
      Stowed s;
      s.before = std::exchange(stowed_, free_[at]);
      std::copy_n(free_.begin() + static_cast<std::ptrdiff_t>(at) + 1, Stowed::kNumbers, s.numbers.begin());
      std::memcpy(static_cast<void*>(&(*this)[stowed_]), &s, sizeof s);
    }
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// Brings back what was stowed last; false if nothing was.
  bool refill() {
    if (stowed_ == kNone) return false;
    Stowed s;
    std::memcpy(&s, static_cast<const void*>(&(*this)[stowed_]), sizeof s);
    free_.push_back(std::exchange(stowed_, s.before));
    free_.insert(free_.end(), s.numbers.begin(), s.numbers.end());
    if (stowed_ != kNone) __builtin_prefetch(&(*this)[stowed_]);
    return true;
  }

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_;  ///< last freed, first used
  std::uint32_t stowed_ = kNone;     ///< more of them
  std::uint32_t made_ = 0, made_left_ = 0;  ///< the block that single records come from
  std::uint32_t row_ = 0, row_left_ = 0;    ///< and that of rows
};

using NodePool = Pool<Node>;
using HeldPool = Pool<Held>;
using RequestPool = Pool<Request>;

}  // namespace fallow::sim
