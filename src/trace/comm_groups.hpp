// Communicators of a trace: which world ranks each holds, kept as runs with a stride so that a million ranks in
// a row cost as much as one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fallow::trace {

inline constexpr std::uint32_t kCommNone = 0;   ///< the call has no communicator, or it is not known
inline constexpr std::uint32_t kCommWorld = 1;  ///< every rank of the trace
inline constexpr std::uint32_t kCommSelf = 2;   ///< the calling rank alone
inline constexpr std::uint32_t kFirstComm = 3;  ///< the first that the program made

/// World ranks in order of their rank in the group.
class Group {
 public:
  struct Run {
    std::int32_t first = 0;   ///< world rank
    std::int32_t stride = 1;
    std::uint32_t count = 0;
    std::uint32_t begin = 0;  ///< rank in the group of its first member
    bool operator==(const Run&) const = default;
  };

  Group() = default;
  explicit Group(std::span<const std::int32_t> world_ranks);
  static Group contiguous(std::int32_t first, std::uint32_t count, std::int32_t stride = 1);

  /// Appends `count` members first, first + stride, ...
  void append(std::int32_t first, std::uint32_t count, std::int32_t stride);

  std::uint32_t size() const noexcept { return size_; }
  /// World rank of a member; -1 if there is no such member.
  std::int32_t world_rank(std::int32_t member) const noexcept;
  /// Rank in the group of a world rank; -1 if it is no member. Linear in the number of runs.
  std::int32_t member(std::int32_t world_rank) const noexcept;
  std::span<const Run> runs() const noexcept { return runs_; }
  bool operator==(const Group&) const = default;

 private:
  std::vector<Run> runs_;
  std::uint32_t size_ = 0;
};

/// How one rank came by a communicator: its members know each other's by that.
struct CommOrigin {
  std::uint32_t parent = kCommNone;  ///< the rank's number of what it was made from; kCommNone: nothing, or not known
  std::uint32_t tag = 0;             ///< of a creation that concerns some of the parent's members only; 0: all
};

struct Comm {
  Group group;              ///< an intercommunicator's: one of its two sides
  Group remote;             ///< the other side; empty for an intracommunicator
  std::uint32_t ordinal = 0;///< tells communicators of the same group and origin apart, in order of creation
  std::uint32_t parent = kCommNone;  ///< what it was made from, lower in number; kCommNone: nothing, or not known
  bool is_inter() const noexcept { return remote.size() != 0; }
};

/// The table: index is CallEvent::comm. Entries 0 to 2 are none, world and self.
class CommGroups {
 public:
  explicit CommGroups(std::uint32_t world_size = 0);
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(comms_.size()); }
  bool valid(std::uint32_t comm) const noexcept { return comm != kCommNone && comm < comms_.size(); }
  const Comm& operator[](std::uint32_t comm) const noexcept { return comms_[comm]; }
  /// Returns the new communicator's number.
  std::uint32_t add(Comm comm);

  /// Members of the side that the world rank `caller` is on (1 for kCommSelf; 0 if unknown).
  std::uint32_t size_of(std::uint32_t comm, std::int32_t caller) const noexcept;
  /// Rank of `caller` in the communicator; -1 if it is no member.
  std::int32_t rank_in(std::uint32_t comm, std::int32_t caller) const noexcept;
  /// World rank that `caller` names by `peer` (CallEvent::peer, root); -1 if there is none.
  std::int32_t world_rank(std::uint32_t comm, std::int32_t caller, std::int32_t peer) const noexcept;

 private:
  std::vector<Comm> comms_;
};

}  // namespace fallow::trace
