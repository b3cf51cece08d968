// MPI's matching: a rank's posted receives and its unexpected messages, each in the order of their coming. A
// receive takes the first message that fits, a message the first receive that does; sources and tags of receives
// may be wildcards. Short queues are lists that are searched one by one; a queue that grows beyond kLinear is kept by a
// hash index over (key, tag) until it is empty, in which receives with wildcards stand apart.
#pragma once

#include <memory>
#include <vector>

#include "sim/node_pool.hpp"

namespace fallow::sim {

/// One queue of one rank.
struct MatchQueue {
  std::uint32_t head = kNone, tail = kNone;  ///< linked by the records' `next`. With an index: its number, kNone
  std::uint32_t count : 31 = 0;
  std::uint32_t indexed : 1 = 0;
  /// The first record, if the queue is a list and has one.
  std::uint32_t front() const noexcept { return indexed != 0 ? kNone : head; }
};
static_assert(sizeof(MatchQueue) == 12);

/// Queues of Node (messages) or of Request (receives).
template <class Record>
class Matcher {
 public:
  explicit Matcher(Pool<Record>& pool) : pool_(pool) {}
  static constexpr std::uint32_t kLinear = 16;

  void append(MatchQueue& queue, std::uint32_t record);
  void remove(MatchQueue& queue, std::uint32_t record);

  /// The first receive in `posted` that takes a message of this key and tag; kNone if there is none.
  std::uint32_t find_receive(const MatchQueue& posted, std::uint64_t key, std::int32_t tag) const;
  /// The first message in `unexpected` that a receive of this key and tag takes; kNone if there is none.
  std::uint32_t find_message(const MatchQueue& unexpected, std::uint64_t key, std::int32_t tag) const;
  /// The same, and takes it out.
  std::uint32_t take_receive(MatchQueue& posted, std::uint64_t key, std::int32_t tag);
  std::uint32_t take_message(MatchQueue& unexpected, std::uint64_t key, std::int32_t tag);

  /// In the order of their coming.
  std::vector<std::uint32_t> in_order(const MatchQueue& queue) const;
  std::size_t memory_bytes() const noexcept;

 private:
  struct Chain {
    std::uint32_t head = kNone, tail = kNone;
  };
  /// A record in an index, where its `next` says which entry is its own. Of those that are free `next` is the next one.
  struct Entry {
    std::uint32_t record = kNone, prev = kNone, next = kNone;  ///< neighbours in the queue: entries
    std::uint32_t chain = kNone;                               ///< next of the same hash: entry
    std::uint32_t order = 0;                                   ///< place in the queue's history
  };
  struct Index {
    std::vector<Chain> chains;  ///< of exact keys, by hash
    Chain wild;
    std::vector<Entry> entries;
    std::uint32_t head = kNone, tail = kNone, free = kNone;
  };

  static bool is_wild(const Record& record) noexcept {
    return static_cast<std::uint32_t>(record.key) == kAnySource || record.tag == kAnyTag;
  }
  static bool accepts(std::uint64_t want, std::int32_t want_tag, std::uint64_t key, std::int32_t tag) noexcept {
    const bool source = want == key || (static_cast<std::uint32_t>(want) == kAnySource && want >> 32 == key >> 32);
    return source && (want_tag == tag || want_tag == kAnyTag);
  }
  template <class Fits>
  std::uint32_t take_linear(MatchQueue& queue, Fits&& fits);
  void unlink(MatchQueue& queue, std::uint32_t before, std::uint32_t record) noexcept;
  Chain& chain_of(Index& index, const Record& record) noexcept;
  std::uint32_t entry_of_receive(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept;
  std::uint32_t entry_of_message(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept;
  std::uint32_t find_exact(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept;
  std::uint32_t take_entry(MatchQueue& queue, std::uint32_t entry);
  void build(MatchQueue& queue);
  void add(Index& index, std::uint32_t record);
  void chain_up(Index& index, std::uint32_t entry) noexcept;
  void unchain(Index& index, std::uint32_t entry) noexcept;

  Pool<Record>& pool_;
  std::vector<std::unique_ptr<Index>> indices_;
  std::vector<std::uint32_t> free_;
};

extern template class Matcher<Node>;
extern template class Matcher<Request>;

}  // namespace fallow::sim
