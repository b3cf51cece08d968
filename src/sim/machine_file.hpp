// Machines from TOML files: the network and what programs meet on it. Every key is optional and has the default of
// machine.hpp; a key that is not known is an error, and every error names file and line.
//
//   name = "minotauro"
//   ranks_per_node = 1
//   collectives = "openmpi"              # or mpich
//   [network]
//   topology = "XGFT(2;18,14;1,18)"      # or crossbar, dragonfly, torus, graph
//   routing = "random"                   # automatic; fat trees: d-mod-k, random; dragonfly, torus: minimal, valiant;
//                                        # graph: minimal, random
//   seed = 1
//   contention = true
//   lookahead_ns = 1000
//   nodes = 252                          # crossbar, graph; without a topology: 1024, of a crossbar
//   nodes_per_switch, switches_per_group, global_links, groups, extent = [..]
//   vertices, edges = [[a, b], [a, b, relative]]
//   [link]     gbit_s lanes switch_latency_ns port_w share_of_switch low_power_fraction react_us react_down_us
//              lane_fractions = [0.43, 0.62, 0.81, 1]   deep_fraction deep_react_us deep_react_down_us
//              # switch_latency_ns: each link of a message's way adds it, so once more than there are switches;
//              # deep_fraction is at most low_power_fraction, deep_react_us at least react_us
//   [switch]   idle_fraction rest_fraction rest_react_us rest_react_down_us       # what is not its ports
//   [nic]      idle_w active_w rest_fraction rest_react_us rest_react_down_us
//   [message]  latency_us overhead_ns receive_overhead_ns unexpected_ns call_overhead_ns match_ns eager_bytes segment_bytes
//              train_segments reduce_gb_s
//   [node]     memory_gb_s memory_latency_ns cpu_speed
//   [core]     compute_w spin_w yield_w sleep_w sleep_down_us wake_us frequency_us throttle_us throttle_steps yield_us
//   [storage]  latency_us node_gb_s gb_s           # the file system: of an access, of a node, of all nodes together
//   [[core.sleep]]  name w down_us up_us         # states other than blocked; none of these may be left out
//
// The files under platforms/ are of this kind too: what they say of a node's power is read and checked by
// power::parse_platform.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/machine.hpp"

namespace fallow::sim {

/// "FILE:LINE: what is wrong".
class MachineFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws MachineFileError.
Machine read_machine(const std::string& path);
/// The same from a text; `name` stands for the file in errors, and where the text has no name, for the machine's.
Machine parse_machine(std::string_view text, std::string_view name);

}  // namespace fallow::sim
