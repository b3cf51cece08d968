// MPI's matching: a rank's posted receives and its unexpected messages, each in the order of their coming. A
// receive takes the first message that fits, a message the first receive that does; sources and tags of receives
// may be wildcards. Short queues are searched one by one; beyond kLinear a queue gets a hash index over (key, tag)
// beside its order, in which receives with wildcards stand apart.
#pragma once

#include <memory>
#include <vector>

#include "sim/node_pool.hpp"

namespace fallow::sim {

/// One queue of one rank.
struct MatchQueue {
  std::uint32_t head = kNone, tail = kNone;
  std::uint32_t count = 0;
  std::uint32_t index = kNone;  ///< of its hash index
};

class Matcher {
 public:
  explicit Matcher(NodePool& pool) : pool_(pool) {}
  static constexpr std::uint32_t kLinear = 16;

  void append(MatchQueue& queue, std::uint32_t node);
  void remove(MatchQueue& queue, std::uint32_t node);

  /// The first receive in `posted` that takes a message of this key and tag; kNone if there is none.
  std::uint32_t find_receive(const MatchQueue& posted, std::uint64_t key, std::int32_t tag) const;
  /// The first message in `unexpected` that a receive of this key and tag takes; kNone if there is none.
  std::uint32_t find_message(const MatchQueue& unexpected, std::uint64_t key, std::int32_t tag) const;

  std::size_t memory_bytes() const noexcept;

 private:
  struct Chain {
    std::uint32_t head = kNone, tail = kNone;
  };
  struct Index {
    std::vector<Chain> chains;  ///< of exact keys, by hash
    Chain wild;
    std::uint32_t entries = 0;
  };

  static bool is_wild(const Node& node) noexcept {
    return static_cast<std::uint32_t>(node.key) == kAnySource || node.tag == kAnyTag;
  }
  static bool accepts(std::uint64_t want, std::int32_t want_tag, std::uint64_t key, std::int32_t tag) noexcept {
    const bool source = want == key || (static_cast<std::uint32_t>(want) == kAnySource && want >> 32 == key >> 32);
    return source && (want_tag == tag || want_tag == kAnyTag);
  }
  Chain& chain_of(Index& index, const Node& node) noexcept;
  std::uint32_t find_exact(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept;
  void build(MatchQueue& queue);
  void drop(MatchQueue& queue);
  void grow(Index& index, const MatchQueue& queue);
  void link(Index& index, std::uint32_t node);
  void unlink(Index& index, std::uint32_t node);

  NodePool& pool_;
  std::vector<std::unique_ptr<Index>> indices_;
  std::vector<std::uint32_t> free_;
};

}  // namespace fallow::sim
