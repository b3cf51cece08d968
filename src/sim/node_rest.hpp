// Joins what is known of ranks' silences: a node's links and card rest only while every rank of it is silent, a link
// between switches (and a switch) only while every rank is that it serves, and all wake for the first (Dickov,
// chapter 8; docs/adr/0033, 0034). Silences are predicted, or known from marks around calls.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/network.hpp"

namespace fallow::sim {

class NodeRest {
 public:
  /// `wakes`: a call that begins wakes what serves its rank; else its first message does.
  NodeRest(std::uint32_t ranks, std::uint32_t per_node, bool wakes);

  /// Joins the nodes of each group as well, for what they share.
  void join_groups(Network& network);

  bool active() const noexcept { return !until_.empty(); }

  /// A rank begins a call at `at`: it is not silent until it ends. `wide`: its messages need all lanes.
  void enter(std::uint32_t rank, Time at, bool wide, Network& network) noexcept {
    const std::uint32_t node = rank / per_node_;
    until_[rank] = 0;
    if (wakes_ && (wide || node_until_[node] != 0)) network.activate(node, at, wide);
    if (node_until_[node] == 0) return;
    node_until_[node] = 0;
    awaken(0, node, at, network);
  }

  /// A rank has left a call at `at` and will be silent for `rest`.
  void leave(std::uint32_t rank, Time at, Time rest, Network& network) noexcept;

  std::size_t memory_bytes() const noexcept {
    std::size_t bytes = (until_.capacity() + node_until_.capacity() + node_from_.capacity()) * sizeof(Time);
    for (const Level& l : levels_) bytes += (l.until.capacity() + l.from.capacity()) * sizeof(Time) + l.open.capacity() * sizeof(std::uint32_t);
    return bytes;
  }

 private:
  struct Level {
    std::uint32_t children = 1;       // of each group
    std::vector<Time> until;          // of each group: 0 while a child is not silent
    std::vector<Time> from;           // of each group: as node_from_
    std::vector<std::uint32_t> open;  // children that are not silent
  };
  void awaken(std::size_t level, std::uint32_t child, Time at, Network& network) noexcept;
  void settle(std::uint32_t node, bool was_silent, Time at, Network& network) noexcept;
  const std::vector<Time>& children_of(std::size_t level) const noexcept { return level == 0 ? node_until_ : levels_[level - 1].until; }

  std::vector<Time> until_;       // of each rank: the end of its silence; 0: none
  std::vector<Time> node_until_;  // of each node
  std::vector<Time> node_from_;   // of each node: when the last of its ranks has left a call. A rank tells of that ahead of the clock.
  std::vector<Level> levels_;
  std::uint32_t per_node_;
  bool wakes_;
};

}  // namespace fallow::sim
