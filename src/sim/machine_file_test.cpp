#include "sim/machine_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <toml++/toml.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

TEST(MachineFile, OfThePublicationGivesTheDefaults) {
  const Machine m = parse_machine(R"toml(
name = "minotauro"
[network]
topology = "XGFT(2;18,14;1,18)"
routing = "random"
[link]
gbit_s = 40
lanes = 4
switch_latency_ns = 100
react_us = 10
low_power_fraction = 0.43
port_w = 2.0
share_of_switch = 0.64
[message]
latency_us = 1
segment_bytes = 2048
[node]
memory_gb_s = 2
)toml", "m.toml");
  const Machine d;
  EXPECT_EQ(m.name, "minotauro");
  EXPECT_EQ(m.topology.routing, Routing::random);
  EXPECT_EQ(m.link.ps_per_kib, d.link.ps_per_kib);
  EXPECT_EQ(m.link.latency, d.link.latency);
  EXPECT_EQ(m.link.rest.up, d.link.rest.up);
  EXPECT_EQ(m.message.latency, d.message.latency);
  EXPECT_EQ(m.node.memory_ps_per_kib, d.node.memory_ps_per_kib);
}

/// Each value other than all defaults, so that none can stand for another.
TEST(MachineFile, EveryKeyIsWhatItsNameSaysInItsUnit) {
  const Machine m = parse_machine(R"toml(
name = "x"
ranks_per_node = 3
collectives = "mpich"
[network]
topology = "dragonfly"
nodes_per_switch = 2
switches_per_group = 4
global_links = 3
groups = 5
routing = "valiant"
seed = 7
contention = false
lookahead_ns = 300
[link]
gbit_s = 80
lanes = 3
switch_latency_ns = 150
react_us = 20
react_down_us = 30
low_power_fraction = 0.5
deep_react_us = 400
deep_react_down_us = 60
deep_fraction = 0.2
port_w = 3.5
share_of_switch = 0.7
lane_fractions = [0.6, 0.8, 1]
[message]
latency_us = 2.5
overhead_ns = 11
receive_overhead_ns = 12
unexpected_ns = 13
call_overhead_ns = 14
match_ns = 15
eager_bytes = 1000
segment_bytes = 128
train_segments = 6
reduce_gb_s = 8
[switch]
idle_fraction = 0.6
rest_fraction = 0.15
rest_react_us = 700
rest_react_down_us = 70
[nic]
idle_w = 4.5
active_w = 6.5
rest_fraction = 0.35
rest_react_us = 800
rest_react_down_us = 80
[node]
memory_gb_s = 16
memory_latency_ns = 250
cpu_speed = 4
[core]
compute_w = 21
spin_w = 22
yield_w = 23
sleep_w = 24
sleep_down_us = 25
wake_us = 26
frequency_us = 27
throttle_us = 28
throttle_steps = 29
yield_us = 31
[[core.sleep]]
name = "C6"
w = 0.5
down_us = 41
up_us = 42
[storage]
latency_us = 600
node_gb_s = 4
gb_s = 100
)toml", "m.toml");
  EXPECT_EQ(m.node.ranks, 3u);
  EXPECT_EQ(m.collectives, coll::Library::mpich);
  EXPECT_EQ(m.topology.nodes_per_switch, 2u);
  EXPECT_EQ(m.topology.switches_per_group, 4u);
  EXPECT_EQ(m.topology.global_links, 3u);
  EXPECT_EQ(m.topology.groups, 5u);
  EXPECT_EQ(m.topology.routing, Routing::valiant);
  EXPECT_EQ(m.topology.seed, 7u);
  EXPECT_EQ(m.contention, Contention::none);
  EXPECT_EQ(m.lookahead, 300 * kNs);
  EXPECT_EQ(m.link.ps_per_kib, 102'400);  // 10 GB/s
  EXPECT_EQ(m.link.lanes, 3u);
  EXPECT_EQ(m.link.latency, 150 * kNs);
  EXPECT_EQ(m.link.rest.up, 20 * kUs);
  EXPECT_EQ(m.link.rest.down, 30 * kUs);
  EXPECT_EQ(m.link.rest.fraction, 0.5);
  EXPECT_EQ(m.link.deep.up, 400 * kUs);
  EXPECT_EQ(m.link.deep.down, 60 * kUs);
  EXPECT_EQ(m.link.deep.fraction, 0.2);
  EXPECT_EQ(m.link.port, Watts(3.5));
  EXPECT_EQ(m.link.share_of_switch, 0.7);
  EXPECT_EQ(m.link.lane_fractions, (std::vector<double>{0.6, 0.8, 1}));
  EXPECT_EQ(m.message.latency, 2'500 * kNs);
  EXPECT_EQ(m.message.overhead, 11 * kNs);
  EXPECT_EQ(m.message.receive_overhead, 12 * kNs);
  EXPECT_EQ(m.message.unexpected, 13 * kNs);
  EXPECT_EQ(m.message.call_overhead, 14 * kNs);
  EXPECT_EQ(m.message.match, 15 * kNs);
  EXPECT_EQ(m.message.eager_limit, 1000u);
  EXPECT_EQ(m.message.segment, 128u);
  EXPECT_EQ(m.message.train_segments, 6u);
  EXPECT_EQ(m.message.reduce_ps_per_kib, 128'000);
  EXPECT_EQ(m.switches.idle_fraction, 0.6);
  EXPECT_EQ(m.node.card.idle, Watts(4.5));
  EXPECT_EQ(m.node.card.active, Watts(6.5));
  const auto is = [](const RestState& state, double fraction, Time up, Time down) {
    return state.fraction == fraction && state.up == up * kUs && state.down == down * kUs;
  };
  EXPECT_TRUE(is(m.switches.states.rest, 0.15, 700, 70) && is(m.switches.states.deep, 0.15, 700, 70)) << "there is one only";
  EXPECT_TRUE(is(m.node.card.states.rest, 0.35, 800, 80) && is(m.node.card.states.deep, 0.35, 800, 80)) << "there is one only";
  EXPECT_EQ(m.node.memory_ps_per_kib, 64'000);
  EXPECT_EQ(m.node.memory_latency, 250 * kNs);
  EXPECT_EQ(m.node.compute_ps_per_ns, 250);
  const CoreSpec& core = m.node.core;
  EXPECT_EQ(core.power.compute, Watts(21));
  EXPECT_EQ(core.power.spin, Watts(22));
  EXPECT_EQ(core.power.yield, Watts(23));
  EXPECT_EQ(core.power.sleep, Watts(24));
  EXPECT_EQ(core.sleep_down, 25 * kUs);
  EXPECT_EQ(core.wake, 26 * kUs);
  EXPECT_EQ(core.frequency_change, 27 * kUs);
  EXPECT_EQ(core.throttle_change, 28 * kUs);
  EXPECT_EQ(core.throttle_steps, 29u);
  EXPECT_EQ(core.yield_round, 31 * kUs);
  ASSERT_EQ(core.sleeps.size(), 1u);
  EXPECT_EQ(core.sleeps[0].power, Watts(0.5));
  EXPECT_EQ(core.sleeps[0].down, 41 * kUs);
  EXPECT_EQ(core.sleeps[0].up, 42 * kUs);
  EXPECT_EQ(m.storage.latency, 600 * kUs);
  EXPECT_EQ(m.storage.node_ps_per_kib, 256'000);
  EXPECT_EQ(m.storage.ps_per_kib, 10'240);
}

TEST(MachineFile, RefusesWhatNoMachineIs) {
  for (const char* const text :
       {"ranks_per_node = 0", "name = 3", "collectives = 'other'", "link = 3", "[[link]]\nlanes = 1", "[network]\ncontention = 1",
        "[network]\nnodes = 0", "[network]\nlookahead_ns = -1", "[network]\nseed = -1", "[link]\ngbit_s = 0", "[link]\nlanes = 0", "[link]\nlanes = 1.5",
        "[link]\nswitch_latency_ns = '100'", "[link]\nreact_us = -1", "[link]\nlow_power_fraction = 1.1", "[link]\nlow_power_fraction = -0.1",
        "[link]\nport_w = -1", "[link]\nport_w = nan", "[link]\nport_w = inf", "[link]\nshare_of_switch = 0", "[link]\nshare_of_switch = 1.1",
        "[link]\nlane_fractions = 1", "[link]\nlanes = 2\nlane_fractions = [1, 0.5]", "[link]\nlanes = 2\nlane_fractions = [0.5, 1.1]",
        "[link]\nlanes = 2\nlane_fractions = [-0.5, 1]", "[link]\nlanes = 2\nlane_fractions = ['0.5', 1]", "[message]\nsegment_bytes = 0",
        "[message]\ntrain_segments = 0", "[message]\neager_bytes = -1", "[message]\nlatency_us = -1", "[message]\nreduce_gb_s = 0",
        "[switch]\nidle_fraction = 1.1", "[switch]\nrest_fraction = 1.1", "[nic]\nidle_w = -1", "[nic]\nrest_react_us = -1", "[node]\nmemory_gb_s = 0",
        "[node]\ncpu_speed = 0", "[core]\nthrottle_steps = 0", "[core]\nsleep_w = -1", "[[core.sleep]]\nname = 'C1'\nw = 1\ndown_us = 1\nup_us = -1", "[storage]\ngb_s = 0",
        "[storage]\nnode_gb_s = 0"}) {
    EXPECT_THROW(parse_machine(text, "m.toml"), MachineFileError) << text;
  }
  for (const char* const text : {"[link]\nlanes = 1\nlane_fractions = [1]", "[link]\nreact_us = 0\nlow_power_fraction = 0\ndeep_fraction = 0", "[link]\nlow_power_fraction = 1",
                                 "[message]\nlatency_us = 0\neager_bytes = 0", "[switch]\nidle_fraction = 0", "[nic]\nidle_w = 0"}) {
    EXPECT_NO_THROW(parse_machine(text, "m.toml")) << text;
  }
}

TEST(MachineFile, WhatIsLeftOpenFollowsFromWhatIsSaid) {
  EXPECT_EQ(parse_machine("[link]\nreact_us = 20\n", "m.toml").link.rest.down, 20 * kUs) << "the same both ways";
  const Machine m = parse_machine("", "m.toml"), d;
  EXPECT_EQ(m.contention, Contention::full);
  EXPECT_EQ(m.collectives, coll::Library::openmpi);
  EXPECT_EQ(m.link.ps_per_kib, d.link.ps_per_kib);
  EXPECT_EQ(m.node.compute_ps_per_ns, 1000);
  EXPECT_LT(m.message.receive_overhead, 0) << "as of a message sent";
}

TEST(MachineFile, GraphsAndToriAreAsWritten) {
  const TopologySpec torus = parse_machine("[network]\ntopology = 'torus'\nextent = [3, 5]\nnodes_per_switch = 2\n", "m.toml").topology;
  EXPECT_EQ(torus.extent, (std::vector<std::uint32_t>{3, 5}));
  EXPECT_EQ(torus.nodes_per_switch, 2u);
  const TopologySpec graph = parse_machine("[network]\ntopology = 'graph'\nnodes = 2\nvertices = 3\nedges = [[0, 2], [1, 2, 0.0125]]\n", "m.toml").topology;
  EXPECT_EQ(graph.nodes, 2u);
  EXPECT_EQ(graph.vertices, 3u);
  ASSERT_EQ(graph.edges.size(), 2u);
  EXPECT_EQ(graph.edges[0].a, 0u);
  EXPECT_EQ(graph.edges[0].b, 2u);
  EXPECT_EQ(graph.edges[0].relative, 1000u);
  EXPECT_EQ(graph.edges[1].a, 1u);
  EXPECT_EQ(graph.edges[1].relative, 13u) << "thousandths, rounded";
}

TEST(MachineFile, TakesAByteOrderMark) {
  EXPECT_EQ(parse_machine("\xef\xbb\xbfname = 'x'", "m.toml").name, "x");
  EXPECT_EQ(parse_machine("\xef\xbb\xbf# \xc3\xbc\nname = 'x'", "m.toml").name, "x");
}

TEST(MachineFile, WithoutANameIsCalledAsItsFile) {
  EXPECT_EQ(parse_machine("ranks_per_node = 2", "a/b.c/our.cluster.toml").name, "our.cluster");
}

TEST(MachineFile, WithoutATopologyIsACrossbar) {
  const Machine m = parse_machine("name = \"x\"", "m.toml");
  EXPECT_EQ(m.topology.kind, "crossbar");
  EXPECT_EQ(m.topology.nodes, 1024u);
  EXPECT_EQ(parse_machine("[network]\nnodes = 8", "m.toml").topology.nodes, 8u);
}

TEST(MachineFile, EveryTopology) {
  for (const char* text : {"topology = 'crossbar'\nnodes = 4", "topology = 'torus'\nextent = [4, 4]\nnodes_per_switch = 2", "topology = 'torus'\nextent = [1, 4]",
                           "topology = 'dragonfly'\nnodes_per_switch = 2\nswitches_per_group = 4\nglobal_links = 2\nrouting = 'valiant'",
                           "topology = 'graph'\nnodes = 2\nvertices = 4\nedges = [[0, 2], [1, 3], [2, 3, 0.5]]\ncontention = false"}) {
    EXPECT_NO_THROW(parse_machine(std::string("[network]\n") + text, "m.toml")) << text;
  }
}

/// Why a file with this network is refused; empty if it is not.
std::string refused(const std::string& network) {
  try {
    parse_machine("[network]\n" + network, "m.toml");
  } catch (const MachineFileError& e) {
    return e.what();
  }
  return "";
}

TEST(MachineFile, ATopologyHasItsOwnWays) {
  EXPECT_EQ(refused("topology = 'torus'\nextent = [4]\nrouting = 'random'"), "m.toml:4: network.routing must be automatic, minimal or valiant in a torus");
  EXPECT_EQ(refused("routing = 'valiant'\ntopology = 'XGFT(1;4;1)'"), "m.toml:2: network.routing must be automatic, d-mod-k or random in a fat tree");
  EXPECT_EQ(refused("topology = 'crossbar'\nnodes = 4\nrouting = 'valiant'"), "m.toml:4: network.routing must be left out: the network is a crossbar, which has one way only");
  EXPECT_EQ(refused("routing = 'minimal'"), "m.toml:2: network.routing must be left out: the network is a crossbar, which has one way only");
  EXPECT_EQ(refused("routing = 'automatic'"), "");
  EXPECT_EQ(refused("topology = 'graph'\nnodes = 2\nvertices = 3\nedges = [[0, 2], [1, 2]]\nrouting = 'random'"), "");
}

TEST(MachineFile, ATopologyHasItsOwnKeys) {
  EXPECT_EQ(refused("topology = 'XGFT(1;4;1)'\nnodes = 500"), "m.toml:3: network.nodes must be left out: the network is a fat tree, whose text says its shape");
  EXPECT_EQ(refused("topology = 'torus'\nextent = [4, 4]\ngroups = 2"), "m.toml:4: network.groups must be left out: the network is a torus");
  EXPECT_EQ(refused("topology = 'torus'"), "m.toml:2: a torus needs its extent, the switches along each dimension");
  EXPECT_EQ(refused("topology = 'dragonfly'"), "m.toml:2: a dragonfly needs nodes_per_switch, switches_per_group and global_links");
  EXPECT_EQ(refused("nodes = 5\nvertices = 9"), "m.toml:3: network.vertices must be left out: the network is a crossbar");
}

TEST(MachineFile, TheSlowestLinkCanBeSimulated) {
  Program p(2);
  p.p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  const Machine slow = parse_machine("[network]\nnodes = 2\n[link]\ngbit_s = 0.002\n", "m.toml");
  EXPECT_EQ(p.run(slow).makespan, kLatency + 4096 * kUs);
  const Machine slower = parse_machine("[network]\ntopology = 'graph'\nnodes = 2\nvertices = 3\nedges = [[0, 2], [1, 2, 0.01]]\n[link]\ngbit_s = 0.1\n", "m.toml");
  EXPECT_THROW(p.run(slower), std::invalid_argument) << "1 Mbit/s is too slow for 32 bits of picoseconds";
}

TEST(MachineFile, ADeeperRestDrawsLessAndWakesLater) {
  const auto link = [](const std::string& keys) { return parse_machine("[link]\n" + keys, "m.toml").link; };
  const auto why = [&](const std::string& keys) {
    try {
      link(keys);
    } catch (const MachineFileError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(why("low_power_fraction = 0.3\ndeep_fraction = 0.4"),
            "m.toml:3: link.deep_fraction must be no more than low_power_fraction: a deeper rest draws less");
  EXPECT_EQ(why("deep_react_us = 20\nreact_us = 30"),
            "m.toml:2: link.deep_react_us must be no less than react_us: a deeper rest takes longer to come back from");
  EXPECT_EQ(why("deep_fraction = 0.5"), "m.toml:2: link.deep_fraction must be no more than low_power_fraction: a deeper rest draws less")
      << "than the default";
  EXPECT_EQ(why("low_power_fraction = 0.3\ndeep_fraction = 0.3\nreact_us = 30\ndeep_react_us = 30"), "");
  const LinkSpec given = link("low_power_fraction = 0.05\nreact_us = 3000");
  EXPECT_EQ(given.deep.fraction, 0.05) << "what is left open is no worse than what was said";
  EXPECT_EQ(given.deep.up, 3 * kMs);
}

TEST(MachineFile, PlatformsAreMachinesToo) {
  for (const auto& entry : std::filesystem::directory_iterator(FALLOW_PLATFORMS)) {
    const Machine m = read_machine(entry.path().string());
    EXPECT_EQ(m.name, entry.path().stem().string());
    EXPECT_GE(make_topology(m.topology)->nodes(), 8u) << m.name;
  }
  const Machine m = read_machine(FALLOW_PLATFORMS "/minotauro.toml");
  EXPECT_EQ(m.node.core.power.compute.value, 13.3);
  EXPECT_EQ(m.node.card.active.value, 9);
  EXPECT_EQ(make_topology(m.topology)->nodes(), 252u);
}

TEST(MachineFile, APlatformMaySayAllThatAMachineMay) {
  std::ifstream file(FALLOW_PLATFORMS "/minotauro.toml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Machine m = parse_machine("ranks_per_node = 6\ncollectives = \"mpich\"\n" + text + "[storage]\nlatency_us = 100\n", "m.toml");
  EXPECT_EQ(m.node.ranks, 6u);
  EXPECT_EQ(m.collectives, coll::Library::mpich);
  EXPECT_EQ(m.storage.latency, 100 * kUs);
}

TEST(MachineFile, StatesOfCoresSwitchesAndCards) {
  const Machine m = read_machine(FALLOW_PLATFORMS "/minotauro.toml");
  EXPECT_EQ(m.node.core.wake, 50 * kUs);
  EXPECT_EQ(m.node.core.frequency_change, 10 * kUs);
  ASSERT_EQ(m.node.core.sleeps.size(), 2u);
  EXPECT_EQ(m.node.core.sleeps[1].name, "C3");
  EXPECT_EQ(m.node.core.sleeps[1].up, 40 * kUs);
  EXPECT_EQ(m.node.cores, 12u);
  EXPECT_EQ(m.node.base, Watts(100));
  EXPECT_EQ(m.node.memory_idle, Watts(12));
  EXPECT_EQ(m.node.memory_active, Watts(20));
  EXPECT_EQ(m.node.card.idle, Watts(8));
  EXPECT_EQ(m.node.card.states.rest.up, 1 * kMs);
  EXPECT_EQ(m.switches.idle_fraction, 0.8);
  EXPECT_EQ(m.switches.states.rest.down, 100 * kUs);
  const Machine z = parse_machine("[network]\nnodes = 2\n[link]\nlanes = 2\nlane_fractions = [0.5, 1]\n", "m.toml");
  EXPECT_EQ(z.link.fraction_at(1), 0.5);
  EXPECT_DOUBLE_EQ(m.link.fraction_at(2), 0.43 + 0.57 / 3);
}

/// "table.key" of every value that has no source beside it.
std::string without_source(const toml::table& root) {
  std::string missing;
  for (const auto& [name, node] : root) {
    const toml::table* table = node.as_table();
    if (table == nullptr) continue;
    const toml::node* source = table->get("source");
    for (const auto& [key, value] : *table) {
      const bool said = key == "source" || (source != nullptr && (source->is_string() || source->as_table()->contains(key)));
      if (!said) missing += std::string(name.str()) + "." + std::string(key.str()) + " ";
    }
  }
  return missing;
}

TEST(MachineFile, EveryValueOfAPresetSaysWhereItComesFrom) {
  for (const auto& entry : std::filesystem::directory_iterator(FALLOW_PLATFORMS)) {
    EXPECT_EQ(without_source(toml::parse_file(entry.path().string())), "") << entry.path();
  }
}

TEST(MachineFile, AnyMachineMayBeDescribed) {
  EXPECT_EQ(parse_machine("name = 'mine'\ndescription = 'for readers'\n", "m.toml").name, "mine");
  const auto message = [](const std::string& text) {
    try {
      parse_machine(text, "m.toml");
    } catch (const MachineFileError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("name = 'mine'\ndescription = 4\n"), "m.toml:2: description must be a text");
  EXPECT_EQ(message("name = ''\n"), "m.toml:1: name must be a text, and not empty");
}

TEST(MachineFile, ErrorsNameFileAndLine) {
  const auto message = [](const std::string& text) {
    try {
      parse_machine("[network]\ntopology = 'crossbar'\nnodes = 4\n" + text, "m.toml");
    } catch (const MachineFileError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("[link]\ngbit = 40\n"), "m.toml:5: link.gbit is not known; did you mean gbit_s?");
  EXPECT_EQ(message("[link]\ncolour = 40\n"), "m.toml:5: link.colour is not known");
  EXPECT_EQ(message("[link]\n\ngbit_s = -1\n"), "m.toml:6: link.gbit_s must be a number from 0.002 to 100000");
  EXPECT_EQ(message("routing = 'up'\n"), "m.toml:4: network.routing must be automatic, d-mod-k, random, minimal or valiant");
  EXPECT_EQ(message("[message]\neager_bytes = 1.5\n"), "m.toml:5: message.eager_bytes must be a whole number from 0 to 1099511627776");
  EXPECT_EQ(message("[link]\nlane_fractions = [0.5, 1]\n"), "m.toml:5: link.lane_fractions must be a list with a share for each number of lanes");
  EXPECT_EQ(message("[link]\nlanes = 2\nlane_fractions = [0.5, 0.9]\n"), "m.toml:6: link.lane_fractions must be a list whose last is 1, as nominal power is with all lanes on");
  EXPECT_EQ(message("[core]\nnominal_ghz = 3\n"), "m.toml:5: core.nominal_ghz must be in a complete platform, which has a table [cpu]");
  EXPECT_EQ(message("[[core.at]]\nghz = 3\n"), "m.toml:4: core.at must be in a complete platform, which has a table [cpu]");
  EXPECT_EQ(message("[[core.sleep]]\nw = 1\n"), "m.toml:4: core.sleep.name is missing");
  EXPECT_EQ(message("[[core.sleep]]\nname = 'C1'\ndown_us = 1\nup_us = 1\n"), "m.toml:4: core.sleep.w is missing");
  EXPECT_EQ(message("[[core.sleep]]\nname = 'C1'\nw = 1\nup_us = 1\n"), "m.toml:4: core.sleep.down_us is missing");
  EXPECT_EQ(message("[core]\n[[core.sleep]]\nname = 'C1'\nw = 1\ndown_us = 1\n"), "m.toml:5: core.sleep.up_us is missing");
  EXPECT_EQ(message("[[core.sleep]]\nname = 'C1'\nw = 1\ndown_us = 1\nupus = 1\n"), "m.toml:8: core.sleep.upus is not known; did you mean up_us?");
  const std::string state = "w = 1\ndown_us = 1\nup_us = 1\n[[core.sleep]]\nname = ";
  EXPECT_EQ(message("[[core.sleep]]\nname = 'C1'\n" + state + "'C6'\n" + state + "'C1'\n"), "m.toml:15: core.sleep.name must be another: two states have this one");
  EXPECT_EQ(message("[core]\nsleep = 3\n"), "m.toml:5: core.sleep must be written [[core.sleep]]");
  EXPECT_EQ(message("[core\n").substr(0, 9), "m.toml:4:");
  EXPECT_EQ(message("edges = [[0]]\n"), "m.toml:4: network.edges must be a list of [a, b] or [a, b, relative bandwidth]");
  for (const char* const edge : {"[0, 65536000]", "[-1, 0]", "[0, 1, 0.0001]", "[0, 1, 1001]", "[0.5, 1]", "[0, 'x']"}) {
    EXPECT_EQ(message("edges = [" + std::string(edge) + "]\n"), "m.toml:4: network.edges must be vertices, and a relative bandwidth from 0.001 to 1000") << edge;
  }
  EXPECT_EQ(message("extent = [4, 0]\n"), "m.toml:4: network.extent must be a list of whole numbers from 1 to 65536");
  try {
    parse_machine("[network]\ntopology = 'XGFT(2;4;1)'\n", "m.toml");
    FAIL();
  } catch (const MachineFileError& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, 9), "m.toml:2:");
  }
  EXPECT_EQ(message("[link]\ngr\xc3\xb6\xc3\x9f er = 1\n").substr(0, 9), "m.toml:5:");
  EXPECT_EQ(message("[link]\n# gr\xc3\xb6\xc3\x9f er\n"), "accepted");
  EXPECT_EQ(message("[cpu]\nsockets = 2\n").substr(0, 7), "m.toml:");
  EXPECT_THROW(read_machine("/nonexistent/m.toml"), MachineFileError);
  EXPECT_THROW(read_machine("/"), MachineFileError);
  EXPECT_THROW(read_machine("/dev/zero"), MachineFileError);
  EXPECT_THROW(read_machine("/dev/null"), MachineFileError);
}

}  // namespace
}  // namespace fallow::sim
