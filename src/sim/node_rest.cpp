#include "sim/node_rest.hpp"

namespace fallow::sim {

NodeRest::NodeRest(std::uint32_t ranks, std::uint32_t per_node, bool wakes)
    : until_(ranks, 0), node_until_((ranks + per_node - 1) / per_node, 0), node_from_(node_until_), per_node_(per_node), wakes_(wakes) {}

void NodeRest::join_groups(Network& network) {
  const std::vector<std::uint32_t> sizes = network.topology().group_sizes();
  const auto used = static_cast<std::uint32_t>(node_until_.size());
  node_until_.resize(network.nodes(), kNever);  // nodes without ranks are silent for good
  std::uint32_t below = 1;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    Level level;
    level.children = sizes[l] / below;
    const std::uint32_t groups = network.nodes() / sizes[l];
    level.until.assign(groups, 0);
    level.from.assign(groups, 0);
    level.open.assign(groups, 0);
    for (std::uint32_t g = 0; g < groups; ++g) {
      const std::uint32_t first = g * level.children;
      const std::uint32_t busy = (used + below - 1) / below;  // children with ranks
      level.open[g] = busy <= first ? 0 : std::min(level.children, busy - first);
      if (level.open[g] != 0) continue;
      level.until[g] = kNever;
      network.plan_group({static_cast<std::uint32_t>(l), g}, {0, kNever}, kNone);
    }
    below = sizes[l];
    levels_.push_back(std::move(level));
  }
}

void NodeRest::leave(std::uint32_t rank, Time at, Time rest, Network& network) noexcept {
  if (rest <= 0) return;
  until_[rank] = rest >= kNever ? kNever : at + rest;
  const std::uint32_t node = rank / per_node_;
  const std::size_t first = std::size_t{node} * per_node_;
  const std::size_t last = std::min(first + per_node_, until_.size());
  at = node_from_[node] = std::max(node_from_[node], at);
  Time wake = kNever;
  for (std::size_t r = first; r < last; ++r) wake = std::min(wake, until_[r]);
  if (wake <= at) return;
  network.plan(node, {at, wake});
  const bool was_silent = node_until_[node] != 0;
  node_until_[node] = wake;
  if (!levels_.empty()) settle(node, was_silent, at, network);
}

/// A node is silent; it was before if `was_silent`. What serves a group that it is in rests if all of the group is.
void NodeRest::settle(std::uint32_t node, bool was_silent, Time at, Network& network) noexcept {
  std::uint32_t child = node;  // of the group at each level
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    const std::uint32_t group = child / level.children;
    at = level.from[group] = std::max(level.from[group], at);
    if (!was_silent) --level.open[group];
    if (level.open[group] != 0) return;
    const std::vector<Time>& ends = children_of(l);
    const std::size_t first = std::size_t{group} * level.children;
    Time wake = kNever;
    for (std::size_t c = first; c < first + level.children; ++c) wake = std::min(wake, ends[c]);
    was_silent = level.until[group] != 0;
    if (wake <= at) {  // one of them was to end its silence by now
      level.until[group] = 0;
      if (was_silent) awaken(l + 1, group, at, network);
      return;
    }
    level.until[group] = wake;
    network.plan_group({static_cast<std::uint32_t>(l), group}, {at, wake}, node);
    child = group;
  }
}

/// A child of a group at `level` is not silent any more.
void NodeRest::awaken(std::size_t l, std::uint32_t child, Time at, Network& network) noexcept {
  for (; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    const std::uint32_t group = child / level.children;
    ++level.open[group];
    if (level.until[group] == 0) return;
    level.until[group] = 0;
    if (wakes_) network.activate_group({static_cast<std::uint32_t>(l), group}, at);
    child = group;
  }
}

}  // namespace fallow::sim
