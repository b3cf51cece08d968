// Joins the predictions of a node's ranks: its links rest only while every rank is predicted to stay silent, and
// wake for the first (Dickov, chapter 8; docs/adr/0033).
#pragma once

#include <algorithm>
#include <vector>

#include "sim/network.hpp"

namespace fallow::sim {

class NodeRest {
 public:
  NodeRest(std::uint32_t ranks, std::uint32_t per_node) : until_(ranks, 0), per_node_(per_node) {}

  /// A rank begins a call: nothing is predicted of it until it ends.
  void enter(std::uint32_t rank) noexcept { until_[rank] = 0; }

  /// A rank has left a call at `at` and is predicted to be silent for `rest`.
  void leave(std::uint32_t rank, Time at, Time rest, Network& network) noexcept {
    if (rest <= 0) return;
    until_[rank] = at + rest;
    const std::uint32_t node = rank / per_node_;
    const std::size_t first = std::size_t{node} * per_node_;
    const std::size_t last = std::min(first + per_node_, until_.size());
    Time wake = kNever;
    for (std::size_t r = first; r < last; ++r) wake = std::min(wake, until_[r]);
    if (wake > at) network.plan(node, {at, wake});
  }

  std::size_t memory_bytes() const noexcept { return until_.capacity() * sizeof(Time); }

 private:
  std::vector<Time> until_;
  std::uint32_t per_node_;
};

}  // namespace fallow::sim
