// Which computation, calls, messages and wake-ups the run time consists of: the chain that ends where the last rank
// ends and goes back, at every wait, to the sender of what ended it. It is kept while the replay goes on: every rank
// holds the end of the chain that led to it, and chains share their beginnings. What all chains that begin with the same
// message have in common is summed up and forgotten, so that memory does not grow with the length of the program. The
// parts add up to the run time exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/time.hpp"

namespace fallow::sim {

/// What a rank adds to the critical path.
struct PathShare {
  Time computing = 0;
  Time in_calls = 0;   ///< overheads of calls and messages, combining data
  Time transfer = 0;   ///< of messages that it waited for, from their sending on: latency, bandwidth, contention, matching
  Time link_wake = 0;  ///< of these messages: held up by links at rest
  Time core_wake = 0;  ///< until its core noticed or was awake again

  Time total() const noexcept { return computing + in_calls + transfer + link_wake + core_wake; }
  PathShare& operator+=(const PathShare& o) noexcept {
    computing += o.computing, in_calls += o.in_calls, transfer += o.transfer, link_wake += o.link_wake, core_wake += o.core_wake;
    return *this;
  }
  friend bool operator==(const PathShare&, const PathShare&) = default;
};

struct CriticalPathResult {
  std::vector<PathShare> ranks;
  PathShare unsplit;           ///< of ranks that are not known any more: where too many paths have beginnings of their own
  std::uint64_t messages = 0;  ///< on the path
};

/// The path that led to a rank, and what it did since.
struct PathHead {
  std::uint32_t link = kNone;
  Time since = 0, computing = 0, waking = 0;
};

/// A message under way, with the path of its sender.
struct alignas(64) PathMessage {
  PathHead head;
  std::uint32_t rank = kNone;
  Time at = 0, held = 0;
};

class CriticalPath {
 public:
  explicit CriticalPath(std::uint32_t ranks) : heads_(ranks) {}

  void computed(std::uint32_t rank, Time duration) { heads_[rank].computing += duration; }
  void woke(std::uint32_t rank, Time duration) { heads_[rank].waking += duration; }
  /// `rank` sends message `message` (a number that is used again later) at `at`. It may have been told to compute until
  /// `reached` already: what goes on beside that, as the parts of a non-blocking collective, is sent meanwhile.
  void sent(std::uint32_t message, std::uint32_t rank, Time at, Time reached);
  /// Another number for the same message.
  void copy(std::uint32_t message, std::uint32_t other);
  /// A link at rest held the message up.
  void held(std::uint32_t message, Time delay) {
    if (message < messages_.size()) messages_[message].held += delay;
  }
  /// The message has come; its number may be used again.
  PathMessage receive(std::uint32_t message) {
    PathMessage m;
    if (message < messages_.size()) {
      m = messages_[message];
      messages_[message].rank = kNone;
    }
    received_.push_back(m.rank != kNone ? m.head.link : kNone);
    return m;
  }
  /// `rank` waited for this message, which came at `at`; a later one may take its place.
  void adopt(const PathMessage& message, std::uint32_t rank, Time at);
  /// `rank`, which would have gone on at `since`, found the message when it came, and leaves it where it is.
  void probed(std::uint32_t message, std::uint32_t rank, Time at, Time since) {
    if (message < messages_.size() && at > since) adopt(messages_[message], rank, at);
  }
  /// What receive() gave last, of what is not forgotten yet, is of no more use.
  void forget() noexcept { received_.pop_back(); }

  /// What is kept of a message that comes soon, and what it will touch, is brought nearer.
  void prefetch_message(std::uint32_t message) const noexcept {
    if (message < messages_.size()) __builtin_prefetch(&messages_[message], 1);
  }
  void prefetch_head(std::uint32_t rank) const noexcept { __builtin_prefetch(&heads_[rank], 1); }

  /// The path that ends with `rank` at `end`. Once.
  CriticalPathResult result(std::uint32_t rank, Time end) const;

  std::size_t memory_bytes() const noexcept {
    return heads_.capacity() * sizeof(PathHead) + messages_.capacity() * sizeof(PathMessage) + links_.capacity() * sizeof(Link) +
           (parents_.capacity() + uses_.capacity() + users_.capacity() + free_.capacity() + received_.capacity()) * sizeof(std::uint32_t) +
           beginnings_.size() * sizeof(Beginning) + shares_ * sizeof(std::pair<std::uint32_t, PathShare>);
  }

 private:
  /// A rank's own part of a path, and the message that took it on to another.
  struct Link {
    std::uint32_t from = 0, to = 0;
    PathShare share;  // computing .. in_calls, core_wake of `from`; transfer, link_wake of `to`
  };
  std::uint32_t take() {
    if (free_.empty()) [[unlikely]] return make();
    const std::uint32_t link = free_.back();
    free_.pop_back();
    return link;
  }
  std::uint32_t make();
  void collect();
  void mark();
  void fold();
  static PathShare own(const PathHead& head, Time until) noexcept;

  std::vector<PathHead> heads_;
  std::vector<PathMessage> messages_;  // by number
  std::vector<std::uint32_t> received_;  // the paths of messages that are not forgotten yet
  /// What led to a link and is forgotten, by rank as long as that is kept.
  struct Beginning {
    PathShare unsplit;
    std::uint64_t messages = 0;
    std::unordered_map<std::uint32_t, PathShare> ranks;
  };
  static constexpr std::size_t kMostShares = 1u << 18;  ///< of ranks, in all beginnings
  void add(Beginning& beginning, const Link& link);
  void forget_ranks() noexcept;

  // Links are not counted as they come and go, which would touch one or two more for each message: those that no path goes
  // through are found once there is no other left.
  std::vector<Link> links_;
  std::vector<std::uint32_t> parents_;  // of links; kNone: a path begins with it
  std::vector<std::uint32_t> uses_, users_;  // of links, as of the last mark(): by heads, messages and links; the last link of these
  std::vector<std::uint32_t> free_;
  std::size_t room_ = 0;  ///< links that there may be before those are looked for that are of no more use
  std::unordered_map<std::uint32_t, Beginning> beginnings_;  // by the link that begins a path now
  std::size_t shares_ = 0;  ///< of ranks in these
  bool splits_ = true;      ///< by rank
};

}  // namespace fallow::sim
