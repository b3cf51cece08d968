// The one table of options. `fallow run` flags, FALLOW_* variables, configuration files and the generated
// reference all come from it; options_from_environment() holds the project's only getenv.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fallow {

enum class WaitMode : std::uint32_t { spin = 0, yield = 1, sleep = 2, automatic = 3 };
/// Of time stamps; cpu: as automatic, and computation in traces is CPU time.
enum class ClockSource : std::uint32_t { automatic = 0, tsc = 1, monotonic = 2, cpu = 3 };
/// Of times in traces; automatic: exact, and rounded where computation is CPU time.
enum class TraceTimes : std::uint32_t { automatic = 0, exact = 1, rounded = 2 };
enum class HookChoice : std::uint32_t { automatic = 0, off = 1, twin = 2 };

struct Options {
  bool off = false;
  bool verbose = false;
  WaitMode mode = WaitMode::automatic;
  double slowdown = 0.01;             ///< accepted slowdown, fraction of the run time
  std::string dir;                    ///< run directory; empty: no record is written
  std::string trace;                  ///< directory for the parts of a trace; empty: none is recorded
  std::string run_id;                 ///< names this run's shared memory
  std::uint32_t ring_events = 16384;  ///< events kept per thread
  std::uint32_t site_slots = 1024;    ///< call sites kept per thread
  ClockSource clock = ClockSource::automatic;
  TraceTimes trace_times = TraceTimes::automatic;
  HookChoice hook = HookChoice::automatic;
  bool wake = true;                   ///< ranks of a node wake each other
  double test_gap_ns = -1;            ///< between tests of a loop that waits; negative: as the program's kind has it
  bool predict = true;                ///< the auto mode tells waits apart by the calls before, and foresees gaps
};

/// One row of the table.
struct OptionInfo {
  const char* name;           ///< "slowdown": --slowdown, FALLOW_SLOWDOWN, slowdown = ...
  const char* type;           ///< "flag", "choice", "fraction", "count", "time", "path", "text"
  const char* default_value;
  const char* values;         ///< for a choice, "a|b|c"; for a count, "min..max"; else ""
  const char* help;           ///< one sentence
  bool internal;              ///< set by `fallow run` itself, not by users
  /// Parses `text` into `options`; false if the text is not acceptable.
  bool (*parse)(Options& options, std::string_view text);
};

std::span<const OptionInfo> option_table() noexcept;

/// Sets one option by name. Returns an empty string, or what is wrong in one line.
std::string set_option(Options& options, std::string_view name, std::string_view text);

/// Reads every FALLOW_<NAME> variable. What cannot be read keeps its default and adds a line to `problems`.
Options options_from_environment(std::vector<std::string>& problems);

/// What there may be between the tests of a loop that waits, ns: as the option says, or as the program at this path has it.
/// `slowness`: of this machine at interpreting, where that of the ones that the limit of Python was measured on is 1.
double test_gap_of(const Options& options, std::string_view program, double slowness = 1) noexcept;

/// Whether that hangs on how fast the machine interprets.
bool test_gap_is_of_interpreter(const Options& options, std::string_view program) noexcept;

/// Number of a text such as "1%", "0.01", "5 %"; negative or malformed: false.
bool parse_fraction(std::string_view text, double& value) noexcept;

/// Nanoseconds of a text such as "400ns", "1.5 us", "2ms", "1s", or "0"; negative, without a unit or malformed: false.
bool parse_time(std::string_view text, double& ns) noexcept;

}  // namespace fallow
