#include "sim/topology.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

namespace fallow::sim {
namespace {

/// That ways start and end at the right cards, stay inside, and that every link has one place: what follows it
/// everywhere starts at one vertex, and that its group of nodes has the sender or the receiver. Returns the longest way.
std::uint32_t check(const Topology& t) {
  std::uint32_t longest = 0;
  std::map<std::uint32_t, std::uint32_t> leads_to;  // each link but the last ones: the switch at its end
  const std::vector<std::uint32_t> sizes = t.group_sizes();
  EXPECT_EQ(sizes.back(), t.nodes());
  const auto serves = [&](NodeGroup g, std::uint32_t node) { return node / sizes[g.level] == g.index; };
  for (std::uint32_t s = 0; s < t.nodes(); ++s) {
    for (std::uint32_t d = 0; d < t.nodes(); ++d) {
      if (s == d) continue;
      Path p;
      t.route(s, d, p);
      EXPECT_GE(p.count, 2u);
      EXPECT_EQ(p.links[0], s);
      EXPECT_EQ(p.links[p.count - 1], t.nodes() + d);
      for (std::uint32_t i = 0; i < p.count; ++i) EXPECT_LT(p.links[i], t.links());
      const std::set<std::uint32_t> once(p.links, p.links + p.count);
      EXPECT_EQ(once.size(), p.count) << "a way passes a link twice";
      longest = std::max(longest, p.count);
      EXPECT_EQ(t.origin(p.links[0]), kNone);
      for (std::uint32_t i = 1; i < p.count; ++i) {
        const std::uint32_t at = t.origin(p.links[i]);
        EXPECT_LT(at, t.switches());
        EXPECT_EQ(leads_to.emplace(p.links[i - 1], at).first->second, at);
        EXPECT_TRUE(serves(t.group_of_switch(at), s) || serves(t.group_of_switch(at), d));
        if (i + 1 == p.count) continue;
        const NodeGroup g = t.group_of_link(p.links[i]);
        EXPECT_TRUE(serves(g, s) || serves(g, d));
      }
    }
  }
  return longest;
}

TEST(Xgft, OfThePublicationHas252NodesAndWaysOfFourLinks) {
  TopologySpec spec = parse_xgft("XGFT(2;18,14;1,18)");
  for (const Routing routing : {Routing::d_mod_k, Routing::random}) {
    spec.routing = routing;
    const auto t = make_topology(spec);
    EXPECT_EQ(t->nodes(), 252u);
    EXPECT_EQ(t->switches(), 14u + 18u);
    EXPECT_EQ(t->links(), 2 * (252u + 14u * 18u));
    EXPECT_EQ(check(*t), 4u);
  }
}

TEST(Xgft, SpreadsDestinationsEvenlyOverTheTop) {
  const auto t = make_topology(full_fat_tree(64, 3));
  EXPECT_EQ(t->nodes(), 64u);
  EXPECT_EQ(check(*t), 6u);
  std::map<std::uint32_t, int> uses;
  for (std::uint32_t d = 16; d < 64; ++d) {
    Path p;
    t->route(0, d, p);
    ++uses[p.links[2]];
  }
  ASSERT_EQ(uses.size(), 16u);  // every second link up within reach
  for (const auto& [link, count] : uses) EXPECT_EQ(count, 3);
  Path p, q;
  t->route(0, 1, p);
  EXPECT_EQ(p.count, 2u);
  t->route(0, 5, q);
  EXPECT_EQ(q.count, 4u);
}

TEST(Xgft, WaysUpAndDownMeet) {
  // Two ways to one destination over the same vertex must come down the same links.
  const auto t = make_topology(parse_xgft("XGFT(3;3,2,4;1,2,3)"));
  EXPECT_EQ(t->nodes(), 24u);
  check(*t);
  for (std::uint32_t d = 0; d < 24; ++d) {
    std::map<std::uint32_t, std::set<std::uint32_t>> before;  // d-mod-k: one tree per destination
    for (std::uint32_t s = 0; s < 24; ++s) {
      if (s == d) continue;
      Path p;
      t->route(s, d, p);
      for (std::uint32_t i = p.count / 2; i + 1 < p.count; ++i) before[p.links[i]].insert(p.links[i + 1]);
    }
    for (const auto& [link, next] : before) EXPECT_EQ(next.size(), 1u);
  }
}

TEST(Dragonfly, ReachesEveryGroup) {
  TopologySpec spec;
  spec.kind = "dragonfly";
  spec.nodes_per_switch = 2;
  spec.switches_per_group = 4;
  spec.global_links = 2;
  const auto t = make_topology(spec);
  EXPECT_EQ(t->nodes(), 9u * 4 * 2);
  EXPECT_LE(check(*t), 5u);
  spec.routing = Routing::valiant;
  EXPECT_LE(check(*make_topology(spec)), 7u);
  spec.groups = 10;
  EXPECT_THROW(make_topology(spec), std::invalid_argument);
}

/// Links that some way passes, of all.
std::pair<std::size_t, std::size_t> used_and_all(const Topology& t) {
  std::set<std::uint32_t> used;
  for (std::uint32_t s = 0; s < t.nodes(); ++s) {
    for (std::uint32_t d = 0; d < t.nodes(); ++d) {
      Path p;
      if (s != d) t.route(s, d, p);
      used.insert(p.links, p.links + p.count);
    }
  }
  return {used.size(), t.links()};
}

/// What draws power is there: no switch has a link to itself, and no port is counted that leads nowhere.
TEST(Dragonfly, HasNoLinksThatLeadNowhere) {
  TopologySpec spec;
  spec.kind = "dragonfly";
  spec.nodes_per_switch = 2;
  spec.switches_per_group = 4;
  spec.global_links = 2;
  for (const std::uint32_t groups : {1u, 5u, 9u}) {
    spec.groups = groups;
    const auto t = make_topology(spec);
    const auto [used, all] = used_and_all(*t);
    EXPECT_EQ(used, all) << groups;
    EXPECT_EQ(all, 2 * t->nodes() + groups * (4u * 3u + groups - 1)) << groups;
    EXPECT_LE(check(*t), 5u);
  }
  spec.switches_per_group = 1;  // all groups side by side
  spec.global_links = 6;
  spec.groups = 0;
  const auto t = make_topology(spec);
  EXPECT_EQ(t->links(), 2 * 14u + 7u * 6u);
  EXPECT_EQ(check(*t), 3u);
  spec.nodes_per_switch = 1;
  spec.global_links = 65536;
  EXPECT_THROW(make_topology(spec), std::invalid_argument);  // 2^32 links
}

TEST(Torus, HasNoLinksAlongADimensionOfOne) {
  TopologySpec spec;
  spec.kind = "torus";
  spec.extent = {3, 1, 4};
  const auto flat = make_topology(spec);
  EXPECT_EQ(flat->links(), 2 * 12u * (1 + 2));
  EXPECT_EQ(check(*flat), 2u + 1 + 2);
  const auto [used, all] = used_and_all(*flat);
  EXPECT_EQ(used, all);
  spec.extent = {1};
  spec.nodes_per_switch = 4;
  EXPECT_EQ(check(*make_topology(spec)), 2u);
}

TEST(Torus, TakesTheShorterWayRound) {
  TopologySpec spec;
  spec.kind = "torus";
  spec.extent = {4, 3, 5};
  spec.nodes_per_switch = 2;
  const auto t = make_topology(spec);
  EXPECT_EQ(t->nodes(), 120u);
  EXPECT_EQ(check(*t), 2u + 2 + 1 + 2);
}

TEST(Graph, FindsShortestWaysAndSaysWhatIsMissing) {
  TopologySpec spec;
  spec.kind = "graph";
  spec.nodes = 3;
  spec.vertices = 6;
  spec.edges = {{0, 3}, {1, 4}, {2, 5}, {3, 4}, {4, 5, 500}};
  const auto t = make_topology(spec);
  EXPECT_EQ(check(*t), 4u);
  Path p;
  t->route(1, 2, p);
  EXPECT_EQ(t->relative_bandwidth(p.links[1]), 500u);
  spec.edges.pop_back();
  EXPECT_THROW(make_topology(spec), std::invalid_argument);
  const std::pair<GraphEdge, std::string> wrong[] = {{{4, 9}, "edge [4, 9] of the graph names a vertex that is not there"},
                                                     {{5, 5}, "edge [5, 5] of the graph leads back to where it begins"},
                                                     {{0, 2}, "edge [0, 2] of the graph joins two nodes"}};
  for (const auto& [edge, message] : wrong) {
    spec.edges.back() = edge;
    try {
      make_topology(spec);
      ADD_FAILURE() << message;
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(e.what(), message);
    }
  }
}

TEST(Topology, WaysAreAsLongAsThereIsRoomForThem) {
  TopologySpec ring;
  ring.kind = "torus";
  ring.extent = {2 * (Path::kMaxHops - 2) + 1};
  EXPECT_EQ(check(*make_topology(ring)), Path::kMaxHops);
  ring.routing = Routing::valiant;
  EXPECT_THROW(make_topology(ring), std::invalid_argument);
  ring.routing = Routing::d_mod_k;
  ring.extent[0] += 1;
  EXPECT_THROW(make_topology(ring), std::invalid_argument);
  for (const std::uint32_t switches : {Path::kMaxHops - 1, Path::kMaxHops}) {
    TopologySpec line;
    line.kind = "graph";
    line.nodes = 2;
    line.vertices = 2 + switches;
    for (std::uint32_t v = 2; v + 1 < line.vertices; ++v) line.edges.push_back({v, v + 1});
    line.edges.push_back({0, 2});
    line.edges.push_back({1, line.vertices - 1});
    if (switches < Path::kMaxHops) {
      EXPECT_EQ(check(*make_topology(line)), Path::kMaxHops);
    } else {
      EXPECT_THROW(make_topology(line), std::invalid_argument);
    }
  }
}

TEST(Graph, RefusesNodesAndEdgesThatCannotBe) {
  TopologySpec spec;
  spec.kind = "graph";
  spec.nodes = 2;
  spec.vertices = 3;
  spec.edges = {{0, 2}, {1, 2}};
  EXPECT_NO_THROW(make_topology(spec));
  for (const GraphEdge& wrong : {GraphEdge{0, 2}, GraphEdge{0, 1}, GraphEdge{2, 2}, GraphEdge{2, 3}}) {
    TopologySpec more = spec;
    more.edges.push_back(wrong);
    EXPECT_THROW(make_topology(more), std::invalid_argument) << wrong.a << " " << wrong.b;
  }
  spec.edges[1].relative = 0;
  EXPECT_THROW(make_topology(spec), std::invalid_argument);
}

TEST(Topology, HasAtMostSoManyNodes) {
  TopologySpec torus;
  torus.kind = "torus";
  torus.extent = {64, 64, 64};
  torus.nodes_per_switch = 17;
  EXPECT_THROW(make_topology(torus), std::invalid_argument);
  EXPECT_THROW(make_topology(parse_xgft("XGFT(2;2049,2048;1,1)")), std::invalid_argument);
}

TEST(Xgft, RefusesWhatIsNone) {
  for (const char* text : {"XGFT(2;18;1,18)", "XGFT(1;0;1)", "xgft", "XGFT(2;18,14;1,18", "XGFT(1;4;2)",
                           "XGFT(3;2097152,2097152,4194304;1,1,1)"}) {
    EXPECT_THROW(make_topology(parse_xgft(text)), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace fallow::sim
