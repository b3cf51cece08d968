// The machine that a program is replayed on: network, messages, cores and what they draw. Defaults are those of the
// publication's simulated system (M. Dickov, 2015, tables 4.4 and 5.2, sections 2.6, 4.5.2) unless a source is named.
#pragma once

#include <cstdint>
#include <string>

#include "coll/select.hpp"
#include "sim/time.hpp"
#include "sim/topology.hpp"

namespace fallow::sim {

enum class Contention : std::uint8_t {
  full,  ///< every message takes every link of its way
  none,  ///< LogGP: a message takes its node's card only, the rest of the way is latency
};

/// A state of rest of a link.
struct RestState {
  double fraction = 0.43;  ///< of nominal power: a port at one of four lanes (Dickov 2.6)
  Time down = 10 * kUs;    ///< to get there: T_react, the same both ways (5.2.5)
  Time up = 10 * kUs;      ///< and back
};

struct LinkSpec {
  Time ps_per_kib = 204800;      ///< 40 Gbit/s; a KiB keeps rates exact that a byte would round
  Time latency = 100 * kNs;      ///< of the switch behind it
  std::uint32_t lanes = 4;
  Watts port{2.0};               ///< a 4X port at full width; each direction of a link is driven by one
  RestState rest;
  /// A deeper state of all lanes off; the publication's outlook is a wake-up of up to 1 ms. Off unless used by a policy.
  RestState deep{0.10, 100 * kUs, 1 * kMs};
  double share_of_switch = 0.64; ///< of a switch's power that its ports draw
};

struct NodeSpec {
  std::uint32_t ranks = 1;
  Time memory_ps_per_kib = 512000;   ///< messages inside a node: 2 GB/s
  Time memory_latency = 500 * kNs;   ///< estimate: half of the latency between nodes
  Watts card_idle{5.0}, card_active{8.0};  ///< of a network card beyond its port: estimates
  Watts core_busy{10.0};             ///< computing: estimate
  Watts core_spin{9.0};              ///< polling for a message: estimate
  Watts core_sleep{1.5};             ///< blocked: estimate
  Time core_wake = 50 * kUs;         ///< from blocked to running: measured for a sleeping wait on Linux, 27 to 80 us
  std::uint32_t compute_ps_per_ns = 1000;  ///< CPU speed: 1000 as recorded, 500 twice as fast
};

struct MessageSpec {
  Time overhead = 0;                  ///< of a core per message sent or received
  Time call_overhead = 0;             ///< of a core per call
  Time latency = 1 * kUs;             ///< of MPI per message between nodes
  Time match = 0;                     ///< of the receiver per message
  std::uint64_t eager_limit = 65536;  ///< bytes; above it a message is announced and waits for its receive
  std::uint64_t segment = 2048;       ///< bytes of a packet
  std::uint32_t train_segments = 32;  ///< packets that a long message sends before others may interleave
  Time reduce_ps_per_kib = 0;         ///< combining data in reductions
};

struct Machine {
  std::string name = "default";
  TopologySpec topology;
  Contention contention = Contention::full;
  LinkSpec link;
  NodeSpec node;
  MessageSpec message;
  coll::Library collectives = coll::Library::openmpi;
  /// How far ahead of the clock links are reserved without an event (docs/adr/0032). 0: order of arrival on every
  /// link; messages may change places by at most this time otherwise.
  Time lookahead = 1 * kUs;
};

}  // namespace fallow::sim
