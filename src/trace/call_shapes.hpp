// What the calls of many ranks have in common: everything but times, where peers are told by how far from the rank they are.
// Programs make the same few calls again and again on all their ranks, so a call is kept as a number of this table, which
// stays in the cache.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "trace/event.hpp"

namespace fallow::trace {

class CallShapes {
 public:
  static constexpr std::size_t kMaxWords = 64;  ///< in the lists of one call
  static constexpr std::uint32_t kMost = 1u << 16;
  static constexpr std::uint32_t kMostWithPeers = 1u << 10;  ///< programs whose ranks' peers have no order have too many

  /// The number of what `call` of `rank` is but for times, or, with PackedCall::kOwnPeers, but for peers too: once many with peers
  /// are known. 0 if its lists are too long, or if the table is full. From any thread.
  std::uint32_t number_of(std::uint32_t rank, const CallEvent& call);

  struct Shape {
    CallEvent call;  ///< without times; peers as distances where `moves` says so, kNoPeer where they are not known
    std::int32_t peer_moves = 0, recv_peer_moves = 0;  ///< all bits: with the rank
    std::int32_t peer_of(std::uint32_t rank) const noexcept { return call.peer + (static_cast<std::int32_t>(rank) & peer_moves); }
    std::int32_t recv_peer_of(std::uint32_t rank) const noexcept { return call.recv_peer + (static_cast<std::int32_t>(rank) & recv_peer_moves); }
  };
  /// Of a number, without kOwnPeers, that this thread was given, or that was handed to it.
  const Shape& operator[](std::uint32_t number) const noexcept { return blocks_[number / kBlock][number % kBlock]; }

 private:
  static constexpr std::uint32_t kBlock = 1024;

  std::uint32_t find(const Shape& shape) const;
  std::uint32_t add(const Shape& shape);

  std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::array<std::unique_ptr<Shape[]>, kMost / kBlock> blocks_;  // which never move
  std::vector<std::unique_ptr<std::uint64_t[]>> counts_;             // what their spans are of
  std::vector<std::unique_ptr<std::uint32_t[]>> requests_;
  std::uint32_t next_ = 1, with_peers_ = 0;
};

}  // namespace fallow::trace
