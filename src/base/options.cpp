#include "base/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace fallow {
namespace {

std::string_view trim(std::string_view s) noexcept {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

bool parse_flag(std::string_view s, bool& value) noexcept {
  if (s == "1" || s == "true" || s == "yes" || s == "on") return value = true, true;
  if (s == "0" || s == "false" || s == "no" || s == "off" || s.empty()) return value = false, true;
  return false;
}

bool parse_count(std::string_view s, std::uint32_t lo, std::uint32_t hi, std::uint32_t& value) noexcept {
  std::uint32_t v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size() || v < lo || v > hi) return false;
  value = v;
  return true;
}

bool parse_number(std::string_view s, double& value) noexcept {
  double v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size() || !std::isfinite(v) || v < 0) return false;
  value = v;
  return true;
}

template <class E, std::size_t N>
bool parse_choice(std::string_view s, const std::array<std::pair<std::string_view, E>, N>& choices, E& value) noexcept {
  for (const auto& [name, v] : choices) {
    if (s == name) return value = v, true;
  }
  return false;
}

constexpr std::array kModes{std::pair{std::string_view("spin"), WaitMode::spin}, std::pair{std::string_view("yield"), WaitMode::yield},
                            std::pair{std::string_view("sleep"), WaitMode::sleep}, std::pair{std::string_view("auto"), WaitMode::automatic}};
constexpr std::array kClocks{std::pair{std::string_view("auto"), ClockSource::automatic}, std::pair{std::string_view("tsc"), ClockSource::tsc},
                             std::pair{std::string_view("monotonic"), ClockSource::monotonic}, std::pair{std::string_view("cpu"), ClockSource::cpu}};
constexpr std::array kTraceTimes{std::pair{std::string_view("auto"), TraceTimes::automatic},
                                 std::pair{std::string_view("exact"), TraceTimes::exact},
                                 std::pair{std::string_view("rounded"), TraceTimes::rounded}};
constexpr std::array kHooks{std::pair{std::string_view("auto"), HookChoice::automatic}, std::pair{std::string_view("off"), HookChoice::off},
                            std::pair{std::string_view("twin"), HookChoice::twin}};

/// The text as it can stand in a line of a message.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out(text.substr(0, kLongest));
  for (char& c : out) c = c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kLongest ? out + "..." : out;
}

constexpr double kLargestSlowdown = 1.0;  // 100 %: more than twice the run time saves nobody energy
constexpr double kLongestTestGapNs = 1e6;

bool parse_test_gap(Options& o, std::string_view s) {
  if (s == "auto") return o.test_gap_ns = -1, true;
  double ns = 0;
  if (!parse_time(s, ns) || ns > kLongestTestGapNs) return false;
  o.test_gap_ns = ns;
  return true;
}

constexpr OptionInfo kTable[] = {
    {"mode", "choice", "auto", "spin|yield|sleep|auto",
     "How a rank waits inside MPI: spin as the library does, yield the core between polls, sleep at once (which makes each of the shortest waits tens of microseconds longer), or decide per call site.", false,
     [](Options& o, std::string_view s) { return parse_choice(s, kModes, o.mode); }},
    {"slowdown", "fraction", "1%", "",
     "Slowdown that is acceptable, as a share of the run time; the auto mode holds all ranks of a job to it together.", false,
     [](Options& o, std::string_view s) { return parse_fraction(s, o.slowdown) && o.slowdown <= kLargestSlowdown; }},
    {"wake", "flag", "1", "", "Ranks on one node wake each other from sleep when they send; data that come over TCP wake them too.", false,
     [](Options& o, std::string_view s) { return parse_flag(s, o.wake); }},
    {"predict", "flag", "1", "", "In auto mode, tell waits of one call site apart by the calls before, and foresee gaps.", false,
     [](Options& o, std::string_view s) { return parse_flag(s, o.predict); }},
    {"test_gap", "time", "auto", "auto|0ns..1ms",
     "What there may be between the tests of a loop (of MPI_Test, MPI_Iprobe and their kin) that only waits, and so may rest; auto: nothing, or in Python what its interpreter takes for a loop.", false,
     parse_test_gap},
    {"hook", "choice", "auto", "auto|off|twin",
     "Where waits sleep: in the MPI library's own idle hook; twin: between the tests of the call's non-blocking twin, which collective calls have not; off: nowhere; auto: in the hook where there is one, else as twin.", false,
     [](Options& o, std::string_view s) { return parse_choice(s, kHooks, o.hook); }},
    {"trace", "path", "", "", "Record every call into this directory, or into one file if the name ends in .ftr.", false,
     [](Options& o, std::string_view s) { return o.trace = s, true; }},
    {"clock", "choice", "auto", "auto|tsc|monotonic|cpu",
     "Time stamps from the time stamp counter, or from clock_gettime; cpu: computation in traces is the thread's CPU time.", false,
     [](Options& o, std::string_view s) { return parse_choice(s, kClocks, o.clock); }},
    {"trace_times", "choice", "auto", "auto|exact|rounded",
     "Times in traces to the nanosecond, or durations to within 0.2 %; auto: exact, and rounded with the clock cpu, as cores that ranks share give no better times, but where several threads may call MPI.", false,
     [](Options& o, std::string_view s) { return parse_choice(s, kTraceTimes, o.trace_times); }},
    {"ring_events", "count", "16384", "256..16777216", "Calls kept per thread for the timeline, 48 bytes each.", false,
     [](Options& o, std::string_view s) { return parse_count(s, 256, 16777216, o.ring_events); }},
    {"site_slots", "count", "1024", "16..65536", "Call sites told apart per thread, 104 bytes each; the rest is summed up.", false,
     [](Options& o, std::string_view s) { return parse_count(s, 16, 65536, o.site_slots); }},
    {"off", "flag", "0", "", "Load, but leave the program entirely alone.", false,
     [](Options& o, std::string_view s) { return parse_flag(s, o.off); }},
    {"verbose", "flag", "0", "", "Each rank says on stderr what it found and does.", false,
     [](Options& o, std::string_view s) { return parse_flag(s, o.verbose); }},
    {"dir", "path", "", "", "Run directory; set by `fallow run`.", true,
     [](Options& o, std::string_view s) { return o.dir = s, true; }},
    {"run_id", "text", "", "", "Name of the run's shared memory; set by `fallow run`.", true,
     [](Options& o, std::string_view s) { return o.run_id = s, s.find('/') == std::string_view::npos && s.size() <= 100; }},
};

}  // namespace

std::span<const OptionInfo> option_table() noexcept { return kTable; }

bool test_gap_is_of_interpreter(const Options& options, std::string_view program) noexcept {
  const std::string_view name = program.substr(program.find_last_of('/') + 1);
  return options.test_gap_ns < 0 && (name.starts_with("python") || name.starts_with("pypy"));
}

double test_gap_of(const Options& options, std::string_view program, double slowness) noexcept {
  constexpr double kNothingElseNs = 15;
  constexpr double kPythonNs = 300;  // its loop alone takes 60 to 250 where it was measured, with one call of NumPy more
  constexpr double kMostPythonNs = 1000;
  if (options.test_gap_ns >= 0) return options.test_gap_ns;
  return test_gap_is_of_interpreter(options, program) ? std::min(kPythonNs * slowness, kMostPythonNs) : kNothingElseNs;
}

bool parse_fraction(std::string_view text, double& value) noexcept {
  text = trim(text);
  double scale = 1.0;
  if (!text.empty() && text.back() == '%') {
    scale = 0.01;
    text = trim(text.substr(0, text.size() - 1));
  }
  double v = 0;
  if (!parse_number(text, v)) return false;
  value = v * scale;
  return true;
}

bool parse_time(std::string_view text, double& ns) noexcept {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  text = trim(text);
  double scale = 0;  // without a unit there is only 0
  for (const auto& [unit, in_ns] : kUnits) {
    if (!text.ends_with(unit)) continue;
    scale = in_ns;
    text = trim(text.substr(0, text.size() - unit.size()));
    break;
  }
  double v = 0;
  if (!parse_number(text, v) || (scale == 0 && v != 0)) return false;
  ns = v * scale;
  return true;
}

std::string set_option(Options& options, std::string_view name, std::string_view text) {
  for (const OptionInfo& row : kTable) {
    if (name != row.name) continue;
    Options changed = options;
    if (row.parse(changed, trim(text))) {
      options = std::move(changed);
      return {};
    }
    std::string message = std::string(name) + " = '" + printable(text) + "' is not a " + row.type;
    if (*row.values != 0) message += std::string(" (") + row.values + ")";
    return message + "; the default " + (*row.default_value != 0 ? row.default_value : "(empty)") + " is used";
  }
  return std::string(name) + " is not an option";
}

Options options_from_environment(std::vector<std::string>& problems) {
  Options options;
  for (const OptionInfo& row : kTable) {
    std::string variable = "FALLOW_";
    for (const char* c = row.name; *c != 0; ++c) variable += static_cast<char>(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    const char* text = std::getenv(variable.c_str());
    if (text == nullptr || *text == 0) continue;  // set to nothing: as if it were not set
    const std::string problem = set_option(options, row.name, text);
    if (!problem.empty()) problems.push_back(variable + problem.substr(std::strlen(row.name)));
  }
  return options;
}

}  // namespace fallow
