// Extended generalized fat trees, XGFT(h; m_1..m_h; w_1..w_h): S. Oehring et al., "On generalized fat trees",
// IPPS 1995. A vertex of level i is (A, B): A numbers the subtree of M_i = m_1..m_i nodes that it stands over, B
// tells the W_i = w_1..w_i vertices over that subtree apart. Its parent over way p is (A / m_{i+1}, B + p W_i).
#include <stdexcept>
#include <utility>

#include "sim/divider.hpp"
#include "sim/topology.hpp"

namespace fallow::sim {
namespace {

class Xgft final : public Topology {
 public:
  struct Level {  // of the links between level i-1 and i
    std::uint32_t up = 0, down = 0;      // first link upwards, downwards
    std::uint32_t vertices_below = 1;    // W_{i-1}: vertices over one subtree of the level below
    std::uint32_t ways = 1;              // w_i
    std::uint32_t nodes = 1;             // M_i
    std::uint32_t first_switch = 0;      // of level i
    Divider tree, way;                   // by M_i, w_i
  };

  Xgft(const TopologySpec& spec, std::vector<Level> levels, std::uint32_t nodes, std::uint32_t links, std::uint32_t switches)
      : Topology(nodes, links, switches), levels_(std::move(levels)), children_(spec.children), random_(spec.routing == Routing::random), seed_(mix(spec.seed)) {}

  void route(std::uint32_t source, std::uint32_t destination, Path& path) const noexcept override {
    if (random_) {
      const std::uint64_t hash = mix(seed_ ^ (std::uint64_t{source} << 32 | destination));
      return route(source, destination, path, [hash](std::uint32_t i, const Level& level) {
        return level.way.modulo(static_cast<std::uint32_t>(hash >> (8 * (i & 3))) ^ static_cast<std::uint32_t>(hash >> 40));
      });
    }
    std::uint32_t digits = destination;  // without those of the levels below: destination / W_{i-1}
    route(source, destination, path, [&digits](std::uint32_t, const Level& level) {
      const std::uint32_t above = level.way.divide(digits);
      return std::exchange(digits, above) - above * level.ways;
    });
  }

  std::uint32_t origin(std::uint32_t link) const noexcept override {
    const std::size_t i = level_of(link);
    const Level& level = levels_[i];
    if (link < level.down) return i == 0 ? kNone : levels_[i - 1].first_switch + (link - level.up) / level.ways;
    const std::uint32_t below = (link - level.down) / level.ways, way = (link - level.down) % level.ways;
    const std::uint32_t parent = level.tree.divide(below / level.vertices_below * (level.nodes / children_[i]));
    return level.first_switch + parent * level.vertices_below * level.ways + below % level.vertices_below + way * level.vertices_below;
  }
  std::vector<std::uint32_t> group_sizes() const override {
    std::vector<std::uint32_t> sizes;
    for (const Level& level : levels_) sizes.push_back(level.nodes);
    return sizes;
  }
  NodeGroup group_of_link(std::uint32_t link) const noexcept override {
    const std::size_t i = level_of(link);
    const Level& level = levels_[i];
    const std::uint32_t below = (link - (link < level.down ? level.up : level.down)) / level.ways / level.vertices_below;
    return {static_cast<std::uint32_t>(i == 0 ? 0 : i - 1), below};
  }
  NodeGroup group_of_switch(std::uint32_t number) const noexcept override {
    std::size_t i = levels_.size() - 1;
    while (number < levels_[i].first_switch) --i;
    return {static_cast<std::uint32_t>(i), (number - levels_[i].first_switch) / (levels_[i].vertices_below * levels_[i].ways)};
  }
  // The trees below the roots: a way between two of them goes up in the one and down in the other.
  std::uint32_t blocks() const noexcept override { return children_.back(); }
  std::uint32_t block_of_link(std::uint32_t link) const noexcept override {
    const std::size_t i = level_of(link);
    const Level& level = levels_[i];
    const std::uint32_t below = (link - (link < level.down ? level.up : level.down)) / level.ways / level.vertices_below;
    return below * (level.nodes / children_[i]) / (nodes() / children_.back());
  }

  static constexpr std::uint32_t kMaxLevels = 8;

 private:
  // Goes through all levels whatever the pair, and leaves what it does not need behind the way's end: how high a way goes
  // is hard to foresee for the processor. `way_of` is asked for each level but the first, which has one way.
  template <class WayOf>
  void route(std::uint32_t source, std::uint32_t destination, Path& path, WayOf&& way_of) const noexcept {
    std::uint32_t down[kMaxLevels];
    const auto height = static_cast<std::uint32_t>(levels_.size());
    const Level* level = levels_.data();
    path.links[0] = level->up + source;
    down[0] = level->down + destination;
    std::uint32_t top = 1, at = 0;  // at: B of where we are
    for (std::uint32_t i = 1; i < height; ++i) {
      const std::uint32_t from = level->tree.divide(source), to = level->tree.divide(destination);  // the subtrees that they stand in
      ++level;
      const std::uint32_t way = way_of(i, *level), here = at * level->ways + way, each = level->vertices_below * level->ways;
      path.links[i] = level->up + from * each + here;
      down[i] = level->down + to * each + here;
      top += from != to ? 1 : 0;
      at += way * level->vertices_below;
    }
    for (std::uint32_t i = height; i-- > 0;) {
      const std::uint32_t used = i < top ? ~0u : 0u;  // `?` between places becomes a branch
      path.links[((2 * top - 1 - i) & used) | (Path::kMaxHops & ~used)] = down[i];
    }
    path.count = 2 * top;
  }

  std::size_t level_of(std::uint32_t link) const noexcept {
    std::size_t i = levels_.size() - 1;
    while (link < levels_[i].up) --i;
    return i;
  }

  std::vector<Level> levels_;
  std::vector<std::uint32_t> children_;
  bool random_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Topology> detail::make_xgft(const TopologySpec& spec) {
  const std::size_t height = spec.children.size();
  if (height == 0 || height > Xgft::kMaxLevels || spec.parents.size() != height || spec.parents[0] != 1) {
    throw std::invalid_argument("an XGFT has 1 to 8 levels, as many m as w, and w1 = 1 (a node has one card)");
  }
  std::uint64_t nodes = 1;
  for (const std::uint32_t m : spec.children) {
    nodes *= m;  // level by level, as many large ones have a product that 64 bits do not hold
    if (nodes > kMaxNodes) throw std::invalid_argument("an XGFT of more than 4,194,304 nodes");
  }
  std::vector<Xgft::Level> levels(height);
  std::uint64_t links = 0, switches = 0, subtree = 1, over = 1;
  for (std::size_t i = 0; i < height; ++i) {
    Xgft::Level& level = levels[i];
    level.vertices_below = static_cast<std::uint32_t>(over);
    level.ways = spec.parents[i];
    level.way = Divider(level.ways);
    const std::uint64_t here = nodes / subtree * over * level.ways;
    level.up = static_cast<std::uint32_t>(links);
    level.down = static_cast<std::uint32_t>(links + here);
    links += 2 * here;
    subtree *= spec.children[i];
    over *= level.ways;
    level.tree = Divider(static_cast<std::uint32_t>(subtree));
    level.nodes = static_cast<std::uint32_t>(subtree);
    level.first_switch = static_cast<std::uint32_t>(switches);
    switches += nodes / subtree * over;
    if (links > 0x7fffffffu) throw std::invalid_argument("an XGFT of more than 2^31 links");
  }
  return std::make_unique<Xgft>(spec, std::move(levels), static_cast<std::uint32_t>(nodes), static_cast<std::uint32_t>(links),
                                static_cast<std::uint32_t>(switches));
}

}  // namespace fallow::sim
