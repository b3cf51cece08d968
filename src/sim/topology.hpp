// Which links a message passes from one node's network card to another's. Links are directed and numbered from
// 0: first the cards' own ones to their switch (link = node), then those from the switches to the cards
// (link = nodes + node), then all others. A topology is one source and one line in topology.cpp.
//
// Routes are functions of (source, destination, seed) alone: all messages of a pair take one way, as they do under
// InfiniBand's static tables, so that none overtakes another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/time.hpp"

namespace fallow::sim {

enum class Routing : std::uint8_t {
  automatic,  ///< d-mod-k on fat trees, minimal elsewhere
  d_mod_k,
  random,     ///< one random shortest way per pair, by the seed
  minimal,
  valiant,    ///< over a random intermediate switch
};

enum class LinkClass : std::uint8_t { edge, upper };

/// A way: at most kMaxHops links.
struct Path {
  static constexpr std::uint32_t kMaxHops = 96;
  std::uint32_t count = 0;
  std::uint32_t links[kMaxHops + 1];  ///< what is behind `count`, and the last, may be anything
  void add(std::uint32_t link) noexcept { links[count++] = link; }
};

/// Neighbouring nodes: group `index` of those of size Topology::group_sizes()[level].
struct NodeGroup {
  std::uint32_t level = 0, index = 0;
};

class Topology {
 public:
  virtual ~Topology() = default;
  /// Fills `path`; source and destination differ and are below nodes().
  virtual void route(std::uint32_t source, std::uint32_t destination, Path& path) const noexcept = 0;

  std::uint32_t nodes() const noexcept { return nodes_; }
  std::uint32_t links() const noexcept { return links_; }
  std::uint32_t switches() const noexcept { return switches_; }
  LinkClass link_class(std::uint32_t link) const noexcept {
    return link < 2 * nodes_ ? LinkClass::edge : LinkClass::upper;
  }
  /// The switch at which a link begins; kNone: it begins at a card.
  virtual std::uint32_t origin(std::uint32_t link) const noexcept = 0;
  /// Sizes of the groups of nodes that share parts of the network, ascending, each a multiple of the one before; the
  /// last is nodes().
  virtual std::vector<std::uint32_t> group_sizes() const { return {nodes_}; }
  /// Whose messages pass a link between switches on the usual ways: in a tree, of the nodes below it.
  virtual NodeGroup group_of_link(std::uint32_t) const noexcept { return {0, 0}; }
  virtual NodeGroup group_of_switch(std::uint32_t) const noexcept { return {0, 0}; }
  /// Equal parts of the nodes, each in a row, whose links belong to one of them each: the first half of the links of
  /// a way between two of them to the source's, the others to the destination's. 1 where there is no such division.
  virtual std::uint32_t blocks() const noexcept { return 1; }
  virtual std::uint32_t block_of_link(std::uint32_t) const noexcept { return 0; }
  /// Links whose bandwidth differs (a graph's): multiples of the platform's in 1/1000; 0 elsewhere.
  virtual std::uint32_t relative_bandwidth(std::uint32_t) const noexcept { return 0; }

 protected:
  Topology(std::uint32_t nodes, std::uint32_t links, std::uint32_t switches) noexcept
      : nodes_(nodes), links_(links), switches_(switches) {}
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

 private:
  std::uint32_t nodes_, links_, switches_;
};

/// One edge of a graph between two vertices; vertices below `nodes` are nodes, the others switches.
struct GraphEdge {
  std::uint32_t a = 0, b = 0;
  std::uint32_t relative = 1000;  ///< bandwidth in 1/1000 of the platform's
};

/// What to build. `kind` is "crossbar", "xgft", "dragonfly", "torus" or "graph".
struct TopologySpec {
  std::string kind = "crossbar";
  std::uint32_t nodes = 0;                ///< crossbar, graph
  std::vector<std::uint32_t> children;    ///< xgft: m_1 .. m_h
  std::vector<std::uint32_t> parents;     ///< xgft: w_1 .. w_h
  std::vector<std::uint32_t> extent;      ///< torus: switches along each dimension
  std::uint32_t nodes_per_switch = 1;     ///< torus, dragonfly (p)
  std::uint32_t switches_per_group = 0;   ///< dragonfly (a)
  std::uint32_t global_links = 0;         ///< dragonfly (h), per switch
  std::uint32_t groups = 0;               ///< dragonfly (g); 0: a * h + 1
  std::uint32_t vertices = 0;             ///< graph
  std::vector<GraphEdge> edges;           ///< graph
  Routing routing = Routing::automatic;
  std::uint64_t seed = 1;
};

/// Throws std::invalid_argument with one line saying what is wrong.
std::unique_ptr<Topology> make_topology(const TopologySpec& spec);

/// "XGFT(2;18,14;1,18)" and the like; throws std::invalid_argument.
TopologySpec parse_xgft(std::string_view text);
/// The smallest full fat tree of this many levels and one radix that holds `nodes`: XGFT(h; k,..,k; 1,k,..,k).
TopologySpec full_fat_tree(std::uint32_t nodes, std::uint32_t levels);

/// Spreads a pair over ways: the same on every machine.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

namespace detail {
std::unique_ptr<Topology> make_crossbar(const TopologySpec& spec);
std::unique_ptr<Topology> make_xgft(const TopologySpec& spec);
std::unique_ptr<Topology> make_dragonfly(const TopologySpec& spec);
std::unique_ptr<Topology> make_torus(const TopologySpec& spec);
std::unique_ptr<Topology> make_graph(const TopologySpec& spec);
}  // namespace detail

}  // namespace fallow::sim
