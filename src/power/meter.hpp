// What a machine says it has used. A Meter reads one source of counters or sensors; the registry finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace fallow::power {

/// Monotonic time, injected so that tests decide how much of it passes.
using Clock = std::function<Nanoseconds()>;
Clock monotonic_clock();

enum class DomainKind : std::uint8_t {
  node,         ///< everything in the node
  module,       ///< one board's processors, their memory and the accelerators beside them, in one figure
  platform,     ///< everything fed by the processor's own power delivery (RAPL "psys")
  cpu,          ///< all processors of the node
  package,      ///< one processor package
  core,         ///< cores of one package, or one core
  dram,         ///< memory behind one package
  memory,       ///< all memory of the node
  accelerator,  ///< one or all accelerators
  other,        ///< a rail or device that is none of these; never added to a total
};
std::string_view to_string(DomainKind kind) noexcept;

/// One thing whose energy a meter reports. `name` is unique within the meter.
struct Domain {
  std::string name;
  DomainKind kind = DomainKind::other;
  std::optional<std::size_t> inside{};  ///< index of the domain that already includes this one
};

enum class DomainState : std::uint8_t {
  on,           ///< its energy is up to date
  turning_off,  ///< this read found it broken: say so, once
  off,          ///< it stays off; its energy is what it was when it broke
};

struct DomainReading {
  Joules energy{};                   ///< since the meter's first read
  DomainState state = DomainState::on;
  std::uint32_t lost_intervals = 0;  ///< intervals left out because the counter was reset or jumped
  std::string why_off{};             ///< empty while it is on
};

struct MeterDescription {
  std::string measures;  ///< one sentence: what the figures cover, and whose figures they are
  Joules resolution{};   ///< the smallest step; 0 where the source is power, not energy
  Seconds min_period{};  ///< reading more often than this brings nothing new
  Seconds max_period{};  ///< read at least this often: else a counter may wrap unseen, or a power be summed too coarsely
  bool whole_node = false;  ///< it sees all of the node: no other meter has parts of a kind that it leaves out
};

/// One source of energy figures. Not thread-safe; not for signal handlers: read() opens files.
class Meter {
 public:
  virtual ~Meter() = default;
  /// The back end's name as in the registry. Valid as long as the meter.
  virtual std::string_view name() const noexcept = 0;
  /// Never changes, and is never empty.
  virtual std::span<const Domain> domains() const noexcept = 0;
  /// Reads everything; one entry per domain, in the order of domains(), valid until the next read().
  /// The first call sets every domain to 0 J. A domain that fails turns itself off and the others go on.
  virtual std::span<const DomainReading> read() noexcept = 0;
  virtual const MeterDescription& description() const noexcept = 0;
};

/// Why a back end has no meter here, and what would give it one.
struct MissingMeter {
  std::string name;
  std::string reason;
  std::string remedy;
};

/// What a back end found: a meter, or the reason why there is none.
struct Probe {
  std::unique_ptr<Meter> meter{};
  std::string reason{};
  std::string remedy{};
};

struct MeterBackEnd {
  std::string_view name;
  Probe (*find)(const std::filesystem::path& root, const Clock& clock);
};
/// All back ends, the one that sees most of the node first.
std::span<const MeterBackEnd> meter_back_ends() noexcept;

struct FoundMeters {
  std::vector<std::unique_ptr<Meter>> meters;
  std::vector<MissingMeter> missing;
};
/// Looks for every meter under `root` (the directory that holds sys/). Throws nothing but std::bad_alloc.
FoundMeters find_meters(const std::filesystem::path& root = "/", const Clock& clock = monotonic_clock());

/// A domain of one of several meters.
struct DomainRef {
  std::size_t meter = 0;
  std::size_t domain = 0;
  friend bool operator==(const DomainRef&, const DomainRef&) = default;
};
/// The domains that together cover the most of the node with nothing counted twice: a node's own figure if a meter has
/// one, else that of modules, else a platform's, else processors and memory; with the accelerators of all makers where those
/// figures leave them out.
std::vector<DomainRef> additive_domains(std::span<const Meter* const> meters);

}  // namespace fallow::power
