// A machine as the energy model sees it, and what a run on it uses. Figures from here are modelled, never measured.
#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace fallow::power {

using GigabitsPerSecond = Quantity<struct GigabitsPerSecondTag, double>;

/// A platform file that cannot be used; what() is "FILE:LINE: reason".
class PlatformError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// What one core draws at one frequency.
struct FrequencyPoint {
  Hertz frequency{};
  Watts compute{};
  Watts spin{};
};

/// What one core draws by what it does. The processor's shared parts are in it, in equal shares.
struct CorePower {
  Hertz nominal{};
  Watts compute{};  ///< running the program at nominal frequency
  Watts spin{};     ///< polling for a message at nominal frequency
  Watts yield{};    ///< polling, and offering the core to others (sched_yield) each time
  Watts sleep{};    ///< blocked in the kernel, or not in use
  std::vector<FrequencyPoint> at{};  ///< ascending, the nominal frequency among them

  /// Between two listed frequencies linearly, beyond the list as at its end. Frequency 0 means nominal.
  Watts compute_at(Hertz f) const noexcept;
  Watts spin_at(Hertz f) const noexcept;
  Watts yield_at(Hertz f) const noexcept;  ///< scaled as spinning is
};

/// A component that draws one power when idle and another when busy.
struct IdleActive {
  Watts idle{};
  Watts active{};
};

/// One link between a node and its switch.
struct Link {
  GigabitsPerSecond rate{};
  unsigned lanes = 1;
  double low_power_fraction = 1;  ///< power at one lane, of the power at all lanes
  Nanoseconds react{};            ///< from the wake-up to all lanes carrying data
  Watts port{};                   ///< one port, all lanes on
};

/// Where a value comes from, in the words of the platform's file.
struct ValueSource {
  std::string value;   ///< "core.spin_w", or "core" for all in that table
  std::string source;
};

struct Platform {
  std::string name;
  std::string description;
  std::string cpu_model;
  unsigned sockets = 1;
  unsigned cores_per_socket = 1;
  CorePower core{};
  IdleActive memory{};   ///< of one node
  IdleActive nic{};      ///< of one node's network cards
  Watts base{};          ///< of one node: all that is not cores, memory or network card, power supply losses included
  Watts switch_share{};  ///< switches' power over nodes; the ports of the nodes' links are in it
  Link link{};
  std::vector<ValueSource> sources{};

  unsigned cores() const noexcept { return sockets * cores_per_socket; }
  /// Everything a reader must know before believing a modelled figure: the model's own, then the file's.
  std::vector<std::string> assumptions() const;
};

/// Reads a platform from TOML text. `file` stands in the messages. Throws PlatformError.
Platform parse_platform(std::string_view toml, std::string_view file);

/// Directories searched for platform names when none are given: the installed one.
std::vector<std::filesystem::path> platform_directories();
/// `name` is a path (if it has a slash or ends in .toml) or is looked for as NAME.toml in `directories`, in order.
/// Throws PlatformError, which names what was searched and what is there.
Platform load_platform(const std::string& name,
                       std::span<const std::filesystem::path> directories = platform_directories());

/// A stand-in for a machine that nobody described, "the machine found": the processor under `root` (proc/cpuinfo), watts
/// per core as published for current servers. Every watt in it is an assumption and says so. Where no processor is found,
/// the server of generic.toml by its own name.
Platform generic_platform(const std::filesystem::path& root = "/");

/// How one rank (one core) spent its time.
struct Residency {
  Seconds computing{};
  Seconds transfer{};
  Seconds wait_awake{};
  Seconds wait_asleep{};
  Seconds io{};
  Hertz frequency{};       ///< while computing and transferring; 0: nominal
  Hertz wait_frequency{};  ///< while waiting awake; 0: nominal

  Seconds total() const noexcept { return computing + transfer + wait_awake + wait_asleep + io; }
};

/// So many of a run's ranks, that share cores with each other and with no others.
struct Together {
  std::size_t ranks = 0;
  unsigned at_once = 0;  ///< how many of them ran at the same time, at most; 0: all
};

struct Usage {
  std::span<const Residency> ranks{};
  unsigned nodes = 1;
  Seconds run_time{};
  unsigned cores_used = 0;         ///< on all nodes together; 0: one per rank, at most all
  bool waits_yield = false;        ///< waiting awake is done with sched_yield rather than by polling alone
  Seconds besides{};               ///< CPU time of threads that call no MPI, on cores that `ranks` leave free
  Seconds in_use{};                ///< core time of ranks, start and end included; 0: of the cores used, all the time
  std::span<const Together> together{};  ///< of `ranks`, in their order; empty: all at the same time
};

/// Energy by component.
struct EnergyParts {
  Joules computing{};
  Joules transfer{};
  Joules wait_awake{};
  Joules wait_asleep{};
  Joules io{};
  Joules unaccounted{};  ///< used cores outside the residencies (start, end, other programs): as computing
  Joules unused_cores{};
  Joules memory{};
  Joules nic{};
  Joules base{};
  Joules switch_share{};

  Joules cores() const noexcept {
    return computing + transfer + wait_awake + wait_asleep + io + unaccounted + unused_cores;
  }
  Joules total() const noexcept { return cores() + memory + nic + base + switch_share; }
};

struct PlatformEnergy {
  EnergyParts actual{};
  EnergyParts all_awake{};  ///< the same run, had every second asleep been waited awake at nominal frequency
  Joules saved() const noexcept { return all_awake.total() - actual.total(); }
};

/// Throws std::invalid_argument where the usage cannot be: negative or infinite times, more cores than the nodes have.
PlatformEnergy platform_energy(const Platform& platform, const Usage& usage);

/// Energy of one port over `run_time`, `rested` of it at one lane.
Joules port_energy(const Link& link, Seconds run_time, Seconds rested) noexcept;

}  // namespace fallow::power
