#include "sim/topology.hpp"

#include <cctype>
#include <charconv>
#include <stdexcept>

namespace fallow::sim {
namespace {

struct Row {
  const char* kind;
  std::unique_ptr<Topology> (*make)(const TopologySpec&);
};

constexpr Row kRows[] = {
    {"crossbar", detail::make_crossbar}, {"xgft", detail::make_xgft},   {"dragonfly", detail::make_dragonfly},
    {"torus", detail::make_torus},       {"graph", detail::make_graph},
};

class Crossbar final : public Topology {
 public:
  explicit Crossbar(std::uint32_t nodes) : Topology(nodes, 2 * nodes, 1) {}
  void route(std::uint32_t source, std::uint32_t destination, Path& path) const noexcept override {
    path.count = 0;
    path.add(source);
    path.add(nodes() + destination);
  }
  std::uint32_t origin(std::uint32_t link) const noexcept override { return link < nodes() ? kNone : 0; }
  std::uint32_t blocks() const noexcept override { return nodes(); }
  std::uint32_t block_of_link(std::uint32_t link) const noexcept override { return link < nodes() ? link : link - nodes(); }
};

}  // namespace

std::unique_ptr<Topology> detail::make_crossbar(const TopologySpec& spec) {
  if (spec.nodes == 0) throw std::invalid_argument("a crossbar needs a number of nodes");
  return std::make_unique<Crossbar>(spec.nodes);
}

std::unique_ptr<Topology> make_topology(const TopologySpec& spec) {
  for (const Row& row : kRows) {
    if (spec.kind == row.kind) return row.make(spec);
  }
  throw std::invalid_argument(std::string("no topology is called '").append(spec.kind).append("'"));
}

TopologySpec parse_xgft(std::string_view text) {
  const auto wrong = [&] { return std::invalid_argument(std::string(text).append(" is not XGFT(h; m1,..,mh; w1,..,wh)")); };
  if (!text.starts_with("XGFT(") || !text.ends_with(")")) throw wrong();
  std::vector<std::vector<std::uint32_t>> lists(1);
  for (const char* at = text.data() + 5; at != text.data() + text.size() - 1;) {
    if (*at == ' ' || *at == ',') {
      ++at;
    } else if (*at == ';') {
      lists.emplace_back();
      ++at;
    } else {
      std::uint32_t value = 0;
      const auto [end, error] = std::from_chars(at, text.data() + text.size() - 1, value);
      if (error != std::errc() || value == 0) throw wrong();
      lists.back().push_back(value);
      at = end;
    }
  }
  if (lists.size() != 3 || lists[0].size() != 1 || lists[1].size() != lists[0][0] || lists[2].size() != lists[0][0]) throw wrong();
  TopologySpec spec;
  spec.kind = "xgft";
  spec.children = lists[1];
  spec.parents = lists[2];
  return spec;
}

TopologySpec full_fat_tree(std::uint32_t nodes, std::uint32_t levels) {
  std::uint64_t radix = 1;
  const auto power = [&] {
    std::uint64_t p = 1;
    for (std::uint32_t i = 0; i < levels; ++i) p *= radix;
    return p;
  };
  while (power() < nodes) ++radix;
  TopologySpec spec;
  spec.kind = "xgft";
  spec.children.assign(levels, static_cast<std::uint32_t>(radix));
  spec.parents.assign(levels, static_cast<std::uint32_t>(radix));
  spec.parents[0] = 1;
  return spec;
}

}  // namespace fallow::sim
