// The machine that a program is replayed on: network, messages, cores and what they draw. Defaults are those of the
// publication's simulated system (M. Dickov, 2015, tables 4.4 and 5.2, sections 2.6, 4.5.2) unless a source is named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coll/select.hpp"
#include "power/platform.hpp"
#include "sim/time.hpp"
#include "sim/topology.hpp"

namespace fallow::sim {

enum class Contention : std::uint8_t {
  full,  ///< every message takes every link of its way
  none,  ///< LogGP: a message takes its node's card only, the rest of the way is latency
};

/// A state of rest of a link, a switch or a card.
struct RestState {
  double fraction = 0.43;  ///< of nominal power: a port at one of four lanes (Dickov 2.6)
  Time down = 10 * kUs;    ///< to get there: T_react, the same both ways (5.2.5)
  Time up = 10 * kUs;      ///< and back
};

/// What something can rest in.
struct RestStates {
  RestState rest;
  /// A deeper one: of a link all lanes off; the publication's outlook is a wake-up of up to 1 ms. Off unless used by a
  /// policy.
  RestState deep{0.10, 100 * kUs, 1 * kMs};
};

struct LinkSpec : RestStates {
  Time ps_per_kib = 204800;      ///< 40 Gbit/s; a KiB keeps rates exact that a byte would round
  Time latency = 100 * kNs;      ///< that each link of a way adds: through one switch, twice
  std::uint32_t lanes = 4;
  Watts port{2.0};               ///< a 4X port at full width; each direction of a link is driven by one
  double share_of_switch = 0.64; ///< of a switch's power that its ports draw
  /// Power with 1, 2, .. of the lanes on, of nominal. Empty: evenly from `rest.fraction` at one lane to 1 at all.
  std::vector<double> lane_fractions;

  double fraction_at(std::uint32_t on) const noexcept {
    if (on >= lanes) return 1;
    if (on - 1 < lane_fractions.size()) return lane_fractions[on - 1];
    return rest.fraction + (1 - rest.fraction) * (on - 1) / (lanes - 1);
  }
};

/// What a switch is besides its ports (buffers, crossbar), per port. Estimates: the publication says only that it may
/// take up to a millisecond to come back (5.2.6, chapter 8).
struct SwitchSpec {
  double idle_fraction = 1;  ///< drawn when nothing passes, of what it draws with all its ports busy
  RestStates states{{0.25, 100 * kUs, 1 * kMs}, {0.25, 100 * kUs, 1 * kMs}};  ///< fractions of idle power
};

/// A network card beyond its port.
struct CardSpec {
  Watts idle{5.0}, active{8.0};  ///< estimates
  RestStates states{{0.3, 100 * kUs, 1 * kMs}, {0.3, 100 * kUs, 1 * kMs}};  ///< fractions of idle power: estimates
};

/// Another state that a waiting core can be in than the one that being blocked leads to.
struct CoreSleepState {
  std::string name;
  Watts power;
  Time down = 0, up = 0;
};

/// A core and what it takes to change its state. Estimates unless a platform's file says otherwise.
struct CoreSpec {
  power::CorePower power{Hertz(2.53e9), Watts(10.0), Watts(9.0), Watts(8.0), Watts(1.5)};
  Time sleep_down = 5 * kUs;        ///< into being blocked
  Time wake = 50 * kUs;             ///< from blocked to running: measured for a sleeping wait on Linux, 27 to 80 us
  Time frequency_change = 10 * kUs; ///< until another frequency holds: "within a few microseconds" (Kandalla 2010)
  Time throttle_change = 5 * kUs;   ///< likewise of a throttling state
  std::uint32_t throttle_steps = 8; ///< T0 to T7, in eighths of the clock's cycles (Kandalla 2010)
  Time yield_round = 1 * kUs;       ///< of polling and offering the core: what has come is noticed so much later
  std::vector<CoreSleepState> sleeps;
};

struct NodeSpec {
  std::uint32_t ranks = 1;
  std::uint32_t cores = 0;           ///< 0: as many as ranks
  Time memory_ps_per_kib = 512000;   ///< messages inside a node: 2 GB/s
  Time memory_latency = 500 * kNs;   ///< estimate: half of the latency between nodes
  CardSpec card;
  CoreSpec core;
  Watts memory_idle{0}, memory_active{0}, base{0};  ///< of a node, beside cores and card
  double compute_ps_per_ns = 1000;  ///< CPU speed: 1000 as recorded, 500 twice as fast; any speed, so no whole number
};

struct MessageSpec {
  Time overhead = 0;                  ///< of a core per message sent, and per receive posted unless that is told
  Time receive_overhead = -1;         ///< of a core per receive posted; below 0: as `overhead`
  Time unexpected = 0;                ///< of a core more, per receive posted after its message had come
  Time call_overhead = 0;             ///< of a core per call
  Time latency = 1 * kUs;             ///< of MPI per message between nodes
  Time match = 0;                     ///< of the receiver per message
  std::uint64_t eager_limit = 65536;  ///< bytes; above it a message is announced and waits for its receive
  std::uint64_t segment = 2048;       ///< bytes of a packet
  std::uint32_t train_segments = 4;   ///< packets that a long message sends before others may interleave
  Time reduce_ps_per_kib = 0;         ///< combining data in reductions
};

/// The file system, as the nodes see it. Estimates: a parallel file system over the same kind of network.
struct StorageSpec {
  Time latency = 500 * kUs;         ///< of an access, whatever its size
  Time node_ps_per_kib = 1024000;   ///< of one node's accesses: 1 GB/s
  Time ps_per_kib = 20480;          ///< of all nodes' together: 50 GB/s
};

struct Machine {
  std::string name = "default";
  TopologySpec topology;
  Contention contention = Contention::full;
  LinkSpec link;
  SwitchSpec switches;
  NodeSpec node;
  MessageSpec message;
  StorageSpec storage;
  coll::Library collectives = coll::Library::openmpi;
  /// How far ahead of the clock links are reserved without an event (docs/adr/0032). 0: order of arrival on every
  /// link; messages may change places by at most this time otherwise.
  Time lookahead = 1 * kUs;
  /// Into how many domains the machine is cut at most, for threads to share (docs/adr/0036); 0: by its size. Like
  /// `lookahead` part of the model: at a border all messages are served in order of arrival.
  std::uint32_t domains = 0;
};

}  // namespace fallow::sim
