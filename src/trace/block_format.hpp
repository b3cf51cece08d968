// What a block of events looks like inside; shared by encoder and decoder. See docs/reference/trace-format.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/op.hpp"

namespace fallow::trace {

inline constexpr std::uint32_t kBlockEvents = 1u << 14;  ///< at most, in one block
inline constexpr std::uint32_t kTemplates = 4096;        ///< distinct templates in one block
inline constexpr std::uint32_t kLists = 8192;            ///< distinct lists in one block; 0 is the empty list
inline constexpr std::uint32_t kMaxListWords = 1u << 22; ///< numbers in all lists of a block
inline constexpr unsigned kMinContextBits = 6, kMaxContextBits = 12;
inline constexpr unsigned kMinTimeBits = 4, kMaxTimeBits = 24;
inline constexpr std::uint64_t kLatestNs = std::uint64_t{1} << 62;  ///< 146 years: later is damage

enum BlockFlags : std::uint32_t {
  kBlockExactTimes = 1u << 0,  ///< the low bits of each duration follow its code
  kBlockWaits = 1u << 1,       ///< each event has a wait
  kBlockOutcomes = 1u << 2,    ///< some event says what became of requests
};

/// First bytes of a block, little endian. The sections follow: structure (packed or not), then bits.
struct BlockHead {
  std::uint32_t rank;             ///< world rank
  std::uint16_t thread;
  std::uint8_t time_bits;         ///< significant bits of durations
  std::uint8_t context_bits;      ///< size of the table of contexts
  std::uint32_t events;
  std::uint32_t flags;            ///< BlockFlags
  std::uint64_t first_event;      ///< number of the first event within its thread's stream
  std::uint64_t base_ns;          ///< exit of the event before; the first gap counts from here
  std::uint64_t first_ns;         ///< enter of the first event
  std::uint64_t last_ns;          ///< exit of the last event
  std::uint32_t dropped;          ///< events lost right before this block
  std::uint32_t structure_bytes;  ///< control, literals and definitions, unpacked
  std::uint32_t packed_bytes;     ///< the same as stored; equal to structure_bytes: not packed
  std::uint32_t control_bytes;    ///< first part of the structure
  std::uint32_t literal_bytes;    ///< second part; definitions are the rest
  std::uint32_t bit_bytes;
};
static_assert(sizeof(BlockHead) == 72);

/// What of an event repeats as a whole.
struct Template {
  std::uint16_t op = 0;
  std::uint16_t flags = 0;
  std::uint32_t comm = 0, site = 0;
  std::int32_t peer = 0, recv_peer = 0, root = 0;
  /// Without a branch for each member.
  bool operator==(const Template& o) const noexcept {
    const auto differ = [](std::int32_t a, std::int32_t b) { return static_cast<std::uint32_t>(a ^ b); };
    return ((op ^ o.op) | (flags ^ o.flags) | (comm ^ o.comm) | (site ^ o.site) | differ(peer, o.peer) | differ(recv_peer, o.recv_peer) |
            differ(root, o.root)) == 0;
  }
};

/// What of an event varies from time to time.
struct Values {
  std::uint64_t bytes = 0, recv_bytes = 0;
  std::int32_t tag = -1, recv_tag = -1;
  std::uint16_t requests = 0, completed = 0, counts = 0, recv_counts = 0;  ///< numbers of lists
  bool operator==(const Values& o) const noexcept {
    const std::uint64_t wide = (bytes ^ o.bytes) | (recv_bytes ^ o.recv_bytes);
    const std::int32_t narrow = (tag ^ o.tag) | (recv_tag ^ o.recv_tag) | (requests ^ o.requests) | (completed ^ o.completed) |
                                (counts ^ o.counts) | (recv_counts ^ o.recv_counts);
    return (wide | static_cast<std::uint32_t>(narrow)) == 0;
  }
};
static_assert(kLists <= 1u << 16);

/// Which predictions failed; one control word per event that has any, after the number of events that had none.
enum Miss : std::uint32_t {
  kMissTemplate = 1u << 0,
  kMissBytes = 1u << 1,
  kMissRecvBytes = 1u << 2,
  kMissRequests = 1u << 3,
  kMissCompleted = 1u << 4,
  kMissTag = 1u << 5,
  kMissRecvTag = 1u << 6,
  kMissCounts = 1u << 7,
  kMissRecvCounts = 1u << 8,
  kMissEnd = 1u << 9,  ///< first number that is no set of these
};

}  // namespace fallow::trace
