// Which computation, calls, messages and wake-ups the run time consists of: the chain that ends where the last rank
// ends and goes back, at every wait, to the sender of what ended it. It is kept while the replay goes on: every rank
// holds the end of the chain that led to it, chains share their beginnings, and the beginning that all have in common
// is summed up and forgotten, so that memory does not grow with the length of the program while its ranks depend on
// each other. The parts add up to the run time exactly.
#pragma once

#include <cstdint>
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
};

struct CriticalPathResult {
  std::vector<PathShare> ranks;
  std::uint64_t messages = 0;  ///< on the path
};

/// The path that led to a rank, and what it did since.
struct PathHead {
  std::uint32_t link = kNone;
  Time since = 0, computing = 0, waking = 0;
};

/// A message under way, with the path of its sender.
struct PathMessage {
  PathHead head;
  std::uint32_t rank = kNone;
  Time at = 0, held = 0;
};

class CriticalPath {
 public:
  explicit CriticalPath(std::uint32_t ranks) : heads_(ranks), totals_(ranks) {}

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
    if (message >= messages_.size()) return {};
    const PathMessage m = messages_[message];
    messages_[message].rank = kNone;
    return m;
  }
  /// `rank` waited for this message, which came at `at`; a later one may take its place.
  void adopt(const PathMessage& message, std::uint32_t rank, Time at);
  /// `rank`, which would have gone on at `since`, found the message when it came, and leaves it where it is.
  void probed(std::uint32_t message, std::uint32_t rank, Time at, Time since) {
    if (message < messages_.size() && at > since) adopt(messages_[message], rank, at);
  }
  /// What receive() gave is of no more use.
  void forget(const PathMessage& message) {
    if (message.rank != kNone) release(message.head.link);
  }

  /// The path that ends with `rank` at `end`. Once.
  CriticalPathResult result(std::uint32_t rank, Time end);

 private:
  /// A rank's own part of a path, and the message that took it on to another.
  struct Link {
    std::uint32_t parent = kNone, references = 0;
    std::uint32_t from = 0, to = 0;
    PathShare share;  // computing .. in_calls, core_wake of `from`; transfer, link_wake of `to`
  };
  std::uint32_t take();
  void release(std::uint32_t link);
  void add(const Link& link);
  void fold();
  static PathShare own(const PathHead& head, Time until) noexcept;

  std::vector<PathHead> heads_;
  std::vector<PathMessage> messages_;  // by number
  std::vector<Link> links_;
  std::vector<std::uint32_t> free_;
  std::vector<PathShare> totals_;
  std::uint64_t on_path_ = 0;
  std::size_t live_ = 0, fold_at_ = 4096;
};

}  // namespace fallow::sim
