// Tori of any dimension with nodes at each switch; dimension order, the shorter way round, or over a random switch.
// Along a dimension of one switch there are no links: they would lead from it to itself.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "sim/topology.hpp"

namespace fallow::sim {
namespace {

class Torus final : public Topology {
 public:
  /// `extent`: of the dimensions that have links.
  Torus(const TopologySpec& spec, std::vector<std::uint32_t> extent, std::uint32_t switches)
      : Topology(switches * spec.nodes_per_switch,
                 2 * switches * (spec.nodes_per_switch + static_cast<std::uint32_t>(extent.size())), switches),
        extent_(std::move(extent)), per_switch_(spec.nodes_per_switch), valiant_(spec.routing == Routing::valiant), seed_(mix(spec.seed)) {}

  void route(std::uint32_t source, std::uint32_t destination, Path& path) const noexcept override {
    path.count = 0;
    path.add(source);
    const std::uint32_t from = source / per_switch_, to = destination / per_switch_;
    std::uint32_t via = from;
    if (valiant_) via = static_cast<std::uint32_t>(mix(seed_ ^ (std::uint64_t{source} << 32 | destination)) % switches());
    if (via != from) walk(from, via, path);
    walk(via, to, path);
    path.add(nodes() + destination);
  }

  std::uint32_t origin(std::uint32_t link) const noexcept override {
    if (link < nodes()) return kNone;
    if (link < 2 * nodes()) return (link - nodes()) / per_switch_;
    return (link - 2 * nodes()) / (2 * static_cast<std::uint32_t>(extent_.size()));
  }

 private:
  void walk(std::uint32_t at, std::uint32_t to, Path& path) const noexcept {
    std::uint32_t stride = 1;
    for (std::uint32_t d = 0; d < extent_.size(); ++d) {
      const std::uint32_t n = extent_[d];
      std::uint32_t here = at / stride % n;
      const std::uint32_t there = to / stride % n;
      const std::uint32_t forward = there >= here ? there - here : there + n - here;
      const bool up = forward <= n - forward;
      for (std::uint32_t steps = up ? forward : n - forward; steps > 0; --steps) {
        path.add(2 * nodes() + (at * static_cast<std::uint32_t>(extent_.size()) + d) * 2 + (up ? 0 : 1));
        const std::uint32_t next = up ? (here + 1 == n ? 0 : here + 1) : (here == 0 ? n - 1 : here - 1);
        at = at - here * stride + next * stride;
        here = next;
      }
      stride *= n;
    }
  }

  std::vector<std::uint32_t> extent_;
  std::uint32_t per_switch_;
  bool valiant_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Topology> detail::make_torus(const TopologySpec& spec) {
  std::uint64_t switches = 1, longest = 0;
  for (const std::uint32_t n : spec.extent) {
    switches *= n;
    longest += n / 2;
  }
  if (spec.extent.empty() || switches == 0 || spec.nodes_per_switch == 0) throw std::invalid_argument("a torus needs its extent, the switches along each dimension");
  if (switches * spec.nodes_per_switch > kMaxNodes) throw std::invalid_argument("a torus of more than 4,194,304 nodes");
  const std::uint64_t hops = 2 + longest * (spec.routing == Routing::valiant ? 2 : 1);
  if (hops > Path::kMaxHops) throw std::invalid_argument("a torus with ways of more than 96 links");
  std::vector<std::uint32_t> extent;
  const auto has_links = [](std::uint32_t n) { return n > 1; };
  std::copy_if(spec.extent.begin(), spec.extent.end(), std::back_inserter(extent), has_links);
  return std::make_unique<Torus>(spec, std::move(extent), static_cast<std::uint32_t>(switches));
}

}  // namespace fallow::sim
