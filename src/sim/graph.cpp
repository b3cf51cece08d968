// Any graph: shortest ways from a search from each destination's side, kept as one next link per switch and node.
#include <stdexcept>
#include <string>

#include "sim/topology.hpp"

namespace fallow::sim {
namespace {

struct Arc {
  std::uint32_t to, link;
};

class Graph final : public Topology {
 public:
  Graph(const TopologySpec& spec, std::uint32_t links)
      : Topology(spec.nodes, links, spec.vertices - spec.nodes), relative_(links, 0), origin_(links, kNone), arcs_(spec.vertices),
        next_(std::size_t{spec.vertices} * spec.nodes, kNone), random_(spec.routing == Routing::random), seed_(mix(spec.seed)) {
    connect(spec);
    for (std::uint32_t d = 0; d < spec.nodes; ++d) search(d);
  }

  void route(std::uint32_t source, std::uint32_t destination, Path& path) const noexcept override {
    path.count = 0;
    for (std::uint32_t at = source; at != destination;) {
      const Arc& arc = arcs_[at][next_[std::size_t{destination} * arcs_.size() + at]];
      path.add(arc.link);
      at = arc.to;
    }
  }
  std::uint32_t relative_bandwidth(std::uint32_t link) const noexcept override { return relative_[link]; }
  std::uint32_t origin(std::uint32_t link) const noexcept override { return origin_[link]; }

 private:
  void connect(const TopologySpec& spec) {
    std::uint32_t upper = 2 * spec.nodes;
    for (const GraphEdge& e : spec.edges) {
      for (const auto& [from, to] : {std::pair(e.a, e.b), std::pair(e.b, e.a)}) {
        const std::uint32_t link = from < spec.nodes ? from : to < spec.nodes ? spec.nodes + to : upper++;
        arcs_[from].push_back({to, link});
        relative_[link] = e.relative;
        origin_[link] = from < spec.nodes ? kNone : from - spec.nodes;
      }
    }
  }

  /// Breadth first from the destination; of several shortest ways the first, or a random one per pair.
  void search(std::uint32_t destination) {
    std::vector<std::uint32_t> distance(arcs_.size(), kNone), queue{destination};
    distance[destination] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const Arc& arc : arcs_[queue[i]]) {
        if (distance[arc.to] != kNone) continue;
        distance[arc.to] = distance[queue[i]] + 1;
        if (arc.to >= nodes()) queue.push_back(arc.to);
      }
    }
    for (std::uint32_t v = 0; v < arcs_.size(); ++v) {
      if (v == destination) continue;
      if (distance[v] == kNone) throw std::invalid_argument("the graph does not connect vertex " + std::to_string(v) + " with node " + std::to_string(destination));
      if (distance[v] > Path::kMaxHops) throw std::invalid_argument("a graph with ways of more than 96 links");
      std::vector<std::uint32_t> good;
      for (std::uint32_t a = 0; a < arcs_[v].size(); ++a) {
        const std::uint32_t to = arcs_[v][a].to;
        if (distance[to] + 1 == distance[v] && (to >= nodes() || to == destination)) good.push_back(a);
      }
      const std::uint64_t pick = random_ ? mix(seed_ ^ (std::uint64_t{v} << 32 | destination)) % good.size() : 0;
      next_[std::size_t{destination} * arcs_.size() + v] = good[pick];
    }
  }

  std::vector<std::uint32_t> relative_, origin_;
  std::vector<std::vector<Arc>> arcs_;
  std::vector<std::uint32_t> next_;
  bool random_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Topology> detail::make_graph(const TopologySpec& spec) {
  if (spec.nodes == 0 || spec.vertices < spec.nodes) throw std::invalid_argument("a graph needs nodes, and at least as many vertices");
  std::vector<std::uint32_t> degree(spec.vertices, 0);
  std::uint32_t links = 2 * spec.nodes;
  for (const GraphEdge& e : spec.edges) {
    const auto wrong = [&e](const char* what) { return std::invalid_argument("edge [" + std::to_string(e.a) + ", " + std::to_string(e.b) + "] of the graph " + what); };
    if (e.a >= spec.vertices || e.b >= spec.vertices) throw wrong("names a vertex that is not there");
    if (e.a == e.b) throw wrong("leads back to where it begins");
    if (e.a < spec.nodes && e.b < spec.nodes) throw wrong("joins two nodes");
    if (e.relative == 0) throw wrong("has no bandwidth");
    ++degree[e.a];
    ++degree[e.b];
    if (e.a >= spec.nodes && e.b >= spec.nodes) links += 2;
  }
  for (std::uint32_t n = 0; n < spec.nodes; ++n) {
    if (degree[n] != 1) throw std::invalid_argument("node " + std::to_string(n) + " of the graph has " + std::to_string(degree[n]) + " edges, not one");
  }
  return std::make_unique<Graph>(spec, links);
}

}  // namespace fallow::sim
