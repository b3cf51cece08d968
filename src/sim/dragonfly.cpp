// Dragonfly(p, a, h, g): J. Kim et al., ISCA 2008. Groups of `a` switches, each connected to every other of its
// group, to `p` nodes and by `h` global links to other groups. Global link j of a group (j = 0 .. a h - 1, at switch
// j / h) goes to group (group + j + 1) mod g; with fewer groups than links there are the first g - 1 only: the other
// ports lead nowhere.
#include <stdexcept>

#include "sim/topology.hpp"

namespace fallow::sim {
namespace {

class Dragonfly final : public Topology {
 public:
  Dragonfly(const TopologySpec& s, std::uint32_t groups)
      : Topology(groups * s.switches_per_group * s.nodes_per_switch,
                 groups * (s.switches_per_group * (2 * s.nodes_per_switch + s.switches_per_group - 1) + groups - 1),
                 groups * s.switches_per_group),
        p_(s.nodes_per_switch), a_(s.switches_per_group), h_(s.global_links), g_(groups),
        local_(2 * nodes()), global_(local_ + groups * a_ * (a_ - 1)), valiant_(s.routing == Routing::valiant),
        seed_(mix(s.seed)) {}

  void route(std::uint32_t source, std::uint32_t destination, Path& path) const noexcept override {
    path.count = 0;
    path.add(source);
    std::uint32_t at = source / p_;
    const std::uint32_t to = destination / p_;
    if (valiant_ && at / a_ != to / a_) {
      const auto via = static_cast<std::uint32_t>(mix(seed_ ^ (std::uint64_t{source} << 32 | destination)) % g_);
      if (via != at / a_ && via != to / a_) at = cross(at, via, path);
    }
    if (at / a_ != to / a_) at = cross(at, to / a_, path);
    if (at != to) path.add(local(at, to));
    path.add(nodes() + destination);
  }

  std::uint32_t origin(std::uint32_t link) const noexcept override {
    if (link < nodes()) return kNone;
    if (link < local_) return (link - nodes()) / p_;
    if (link < global_) return (link - local_) / (a_ - 1);
    const std::uint32_t group = (link - global_) / (g_ - 1), out = (link - global_) % (g_ - 1);
    return group * a_ + out / h_;
  }
  std::vector<std::uint32_t> group_sizes() const override {
    if (g_ == 1) return {nodes()};
    return {a_ * p_, nodes()};
  }
  NodeGroup group_of_link(std::uint32_t link) const noexcept override { return group_of_switch(origin(link)); }
  /// Ways over a random group pass the switches of any.
  NodeGroup group_of_switch(std::uint32_t number) const noexcept override {
    if (valiant_ && g_ > 1) return {1, 0};
    return {0, number / a_};
  }

 private:
  /// Of a switch to another of its group.
  std::uint32_t local(std::uint32_t from, std::uint32_t to) const noexcept {
    return local_ + from * (a_ - 1) + to % a_ - (to > from ? 1 : 0);
  }

  /// To the switch of `group` at which the link from `at`'s group ends.
  std::uint32_t cross(std::uint32_t at, std::uint32_t group, Path& path) const noexcept {
    const std::uint32_t here = at / a_;
    const std::uint32_t out = (group + g_ - here - 1) % g_;
    const std::uint32_t back = (here + g_ - group - 1) % g_;
    const std::uint32_t gate = here * a_ + out / h_;
    if (gate != at) path.add(local(at, gate));
    path.add(global_ + here * (g_ - 1) + out);
    return group * a_ + back / h_;
  }

  std::uint32_t p_, a_, h_, g_, local_, global_;
  bool valiant_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Topology> detail::make_dragonfly(const TopologySpec& spec) {
  const std::uint64_t most = std::uint64_t{spec.switches_per_group} * spec.global_links + 1;
  const std::uint64_t groups = spec.groups == 0 ? most : spec.groups;
  if (spec.nodes_per_switch == 0 || spec.switches_per_group == 0 || (groups > 1 && spec.global_links == 0)) {
    throw std::invalid_argument("a dragonfly needs nodes_per_switch, switches_per_group and global_links");
  }
  if (groups > most) throw std::invalid_argument("a dragonfly has at most switches_per_group x global_links + 1 groups");
  if (groups * spec.switches_per_group * spec.nodes_per_switch > kMaxNodes) {
    throw std::invalid_argument("a dragonfly of more than 4,194,304 nodes");
  }
  const std::uint64_t ports = 2 * std::uint64_t{spec.nodes_per_switch} + spec.switches_per_group - 1;
  const std::uint64_t links = groups * (spec.switches_per_group * ports + groups - 1);
  if (links > 0x7fffffffu) throw std::invalid_argument("a dragonfly of more than 2^31 links");
  return std::make_unique<Dragonfly>(spec, static_cast<std::uint32_t>(groups));
}

}  // namespace fallow::sim
