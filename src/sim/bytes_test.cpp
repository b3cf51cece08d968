// The bytes that simulations give, as checksums: the same on any machine and from any compiler. Where the model changes
// they change with it, as does kModel, and the commit says why; the test prints the new ones.
#include <gtest/gtest.h>

#include <cstring>

#include "sim/engine.hpp"
#include "sim/synth.hpp"

namespace fallow::sim {
namespace {

/// FNV-1a, 64 bits.
class Checksum {
 public:
  void add(const void* data, std::size_t size) noexcept {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) value_ = (value_ ^ bytes[i]) * 0x100000001b3u;
  }
  template <class... T>
  void add_all(const T&... values) noexcept {
    (add(&values, sizeof values), ...);
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

void add(Checksum& sum, const Details& d) {
  for (const RankDetail& r : d.ranks) {
    sum.add_all(r.end, r.computing, r.in_calls, r.waiting, r.resting, r.calls, r.mispredictions, r.searches, r.predicted_delay);
  }
  for (const LinkTotals& l : d.links) {
    sum.add_all(l.rests, l.late);
    for (const TimeSum t : {l.busy, l.low, l.deep, l.delay, l.narrow}) sum.add_all(static_cast<Time>(t));
  }
  for (const std::uint32_t number : d.numbers) sum.add_all(number);
}

struct Case {
  const char* program;
  const char* topology;
  const char* policy;
  const char* core;
  std::uint32_t ranks;
  std::uint64_t bytes;
  double jitter;
  std::uint64_t expected;
  std::uint32_t ranks_per_node = 1;
  Contention contention = Contention::full;
  double ratio = 1;
};

TopologySpec topology_of(const Case& c) {
  TopologySpec spec;
  const std::uint32_t nodes = (c.ranks - 1) / c.ranks_per_node + 1;
  spec.kind = c.topology;
  if (spec.kind == "crossbar") {
    spec.nodes = nodes;
  } else if (spec.kind == "torus") {
    spec.extent = {4, 4, 4};
  } else if (spec.kind == "dragonfly") {
    spec.nodes_per_switch = 2, spec.switches_per_group = 4, spec.global_links = 2;
    spec.routing = Routing::valiant;
  } else {
    spec = full_fat_tree(nodes, 3);
    if (std::strcmp(c.topology, "random tree") == 0) spec.routing = Routing::random;
  }
  return spec;
}

std::string run(const Case& c, std::uint64_t& checksum) {
  Machine machine;
  machine.topology = topology_of(c);
  machine.contention = c.contention;
  machine.node.ranks = c.ranks_per_node;
  machine.node.core.power.at = {{Hertz(1.2e9), Watts(5.5), Watts(5.0)}, {Hertz(2.53e9), Watts(10.0), Watts(9.0)}};
  PolicyOptions options;
  options.core.name = c.core;
  options.cards = options.switches = c.ranks_per_node > 1;
  options.deep_timer = c.ranks_per_node > 1 ? 300 * kUs : kNever;
  options.compress.ratio = c.ratio;
  options.cost = PredictorCost::published();
  SynthOptions synth;
  synth.ranks = c.ranks;
  synth.iterations = 40;
  synth.bytes = c.bytes;
  synth.jitter = c.jitter;
  const auto source = synthesize(c.program, synth);
  Engine engine(machine, make_policy(c.policy, options, machine), *source);
  const std::string json = to_json(engine.run());
  Checksum sum;
  sum.add(json.data(), json.size());
  add(sum, engine.details());
  checksum = sum.value();
  return json;
}

static_assert(kModel == 22, "of this model are the checksums below");
constexpr Case kCases[] = {
    {"stencil3d", "tree", "hardware", "spin", 64, 8192, 0.05, 0x8b668c19922961b3},
    {"stencil3d", "tree", "always-on", "spin", 100, 8192, 0, 0xbd8a78ce403cc106, 1, Contention::none},
    {"stencil3d", "tree", "hardware", "sleep", 128, 100'000, 0.3, 0x38e4d007ed64a3b4, 4},
    {"stencil3d", "random tree", "adaptive", "adaptive", 64, 8192, 0.02, 0xb57927c1e7f059f4},
    {"stencil3d", "tree", "calls", "countdown", 64, 20'000, 0.05, 0xbbc6bfabf6f2b69, 1, Contention::full, 0.5},
    {"cg", "dragonfly", "spps", "oracle", 64, 40'000, 0.01, 0xdc51db05d2709814},
    {"cg", "torus", "hardware", "yield", 60, 70'000, 0.1, 0x769523612533e362},
    {"cg", "tree", "adaptive", "adaptive", 48, 8192, 0.1, 0x591621c3d59cdafa, 4},
    {"fft", "torus", "pps", "throttle", 32, 2048, 0.01, 0x85f42d5e7763a81},
    {"alltoall", "crossbar", "oracle", "fixed", 24, 30'000, 0.05, 0xfe0d414842d96220},
    {"random", "random tree", "loops", "spin", 60, 500'000, 0.2, 0xf57e2d4f37881736},
    {"random", "tree", "hardware", "adaptive", 64, 1'000, 0.9, 0x4b8bbd8b6d6da709, 2, Contention::none},
};

TEST(Bytes, AreTheSameEverywhere) {
  for (const Case& c : kCases) {
    std::uint64_t checksum = 0;
    const std::string json = run(c, checksum);
    EXPECT_EQ(checksum, c.expected) << std::hex << "0x" << checksum << " now: " << c.program << " on " << c.topology << " under " << c.policy << " and "
                                    << c.core << ": " << json;
  }
}

}  // namespace
}  // namespace fallow::sim
