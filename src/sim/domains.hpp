// The machine cut into domains: nodes in a row, with the links that only they send over or receive over. A message
// that comes from one domain into another does so by an event, at least the latency of a link after what caused it;
// so domains that are that close in time can be replayed apart, and the result does not depend on who replays them
// (docs/adr/0036).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/divider.hpp"
#include "sim/machine.hpp"
#include "sim/topology.hpp"

namespace fallow::sim {

class Domains {
 public:
  Domains() = default;
  /// Of the first `used` nodes; those that no rank is on belong to the last domain.
  Domains(const Topology& topology, const Machine& machine, std::uint32_t used) : topology_(&topology) {
    const std::uint32_t blocks = std::max(1u, topology.blocks());
    const std::uint32_t size = (topology.nodes() + blocks - 1) / blocks;
    block_ = Divider(size);
    const std::uint32_t used_blocks = std::max(1u, (used + size - 1) / size);
    const std::uint32_t wanted = machine.domains != 0 ? machine.domains : std::clamp(used / kNodesPerDomain, 1u, kMost);
    count_ = machine.link.latency > 0 ? std::min({wanted, used_blocks, kLargest}) : 1;
    of_block_.resize(blocks);
    for (std::uint32_t b = 0; b < blocks; ++b) {
      of_block_[b] = static_cast<std::uint8_t>(std::min(std::uint64_t{b} * count_ / used_blocks, std::uint64_t{count_ - 1}));
    }
    first_node_.assign(count_ + 1, topology.nodes());
    for (std::uint32_t b = blocks; b-- > 0;) first_node_[of_block_[b]] = b * size;
  }

  std::uint32_t count() const noexcept { return count_; }
  std::uint32_t of_node(std::uint32_t node) const noexcept { return count_ == 1 ? 0 : of_block_[block_.divide(node)]; }
  std::uint32_t of_link(std::uint32_t link) const noexcept { return count_ == 1 ? 0 : of_block_[topology_->block_of_link(link)]; }
  /// The first node of a domain; of count(): the number of nodes.
  std::uint32_t first_node(std::uint32_t domain) const noexcept { return first_node_[domain]; }

 private:
  static constexpr std::uint32_t kNodesPerDomain = 1024;  ///< below that a domain has too few events at a time
  static constexpr std::uint32_t kMost = 32;              ///< unless asked for: each border costs events
  static constexpr std::uint32_t kLargest = 256;
  const Topology* topology_ = nullptr;
  Divider block_;
  std::uint32_t count_ = 1;
  std::vector<std::uint8_t> of_block_;
  std::vector<std::uint32_t> first_node_;
};

/// Which domains one thread replays: share `index` of `count`.
struct Share {
  std::uint32_t index = 0, count = 1;
  std::uint32_t first_domain(std::uint32_t domains) const noexcept { return static_cast<std::uint32_t>(std::uint64_t{domains} * index / count); }
  /// The share that a domain belongs to.
  static std::uint32_t of(std::uint32_t domain, std::uint32_t domains, std::uint32_t count) noexcept {
    return static_cast<std::uint32_t>(((std::uint64_t{domain} + 1) * count - 1) / domains);
  }
};

}  // namespace fallow::sim
