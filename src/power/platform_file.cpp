// Platform files: TOML to Platform. The keys and their units: docs/reference/machine-files.md.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/ascii.hpp"
#include "power/platform.hpp"
#include "power/text_file.hpp"
#include "power/toml_table.hpp"

namespace fallow::power {
namespace {

// Bounds keep typing errors (mW for W, MHz for GHz) out; no machine described is near them.
constexpr Bounds kWatts{0, 100000, "watts"};
constexpr Bounds kGigahertz{0.01, 100, "gigahertz"};
constexpr Bounds kSockets{1, 1024, "a number"};
constexpr Bounds kCoresPerSocket{1, 16384, "a number"};
constexpr Bounds kGigabits{0.001, 100000, "gigabits per second"};
constexpr Bounds kLanes{1, 64, "a number"};
constexpr Bounds kShare{0, 1, "a share"};
constexpr Bounds kMicroseconds{0, 1e6, "microseconds"};
constexpr std::uintmax_t kLargestFile = 1 << 20;  // bytes; a platform file is a few KiB

Watts watts(StrictTable& t, std::string_view key) { return Watts(t.number(key, kWatts)); }
Hertz gigahertz(StrictTable& t, std::string_view key) { return Hertz(t.number(key, kGigahertz) * 1e9); }

CorePower read_core(StrictTable t, std::vector<ValueSource>& sources) {
  for (const auto key : {"sleep", "sleep_down_us", "wake_us", "frequency_us", "throttle_us", "throttle_steps", "yield_us"}) {
    t.leave(key);  // of the simulator
  }
  CorePower core;
  core.nominal = gigahertz(t, "nominal_ghz");
  core.compute = watts(t, "compute_w");
  core.spin = watts(t, "spin_w");
  core.yield = watts(t, "yield_w");
  core.sleep = watts(t, "sleep_w");
  if (core.sleep > core.spin || core.sleep > core.yield || core.sleep > core.compute) {
    t.fail("core.sleep_w is more than a core awake draws");
  }
  core.at.push_back({core.nominal, core.compute, core.spin});
  for (StrictTable& point : t.tables("at")) {
    const FrequencyPoint p{gigahertz(point, "ghz"), watts(point, "compute_w"), watts(point, "spin_w")};
    point.finish();
    for (const FrequencyPoint& other : core.at) {
      if (other.frequency == p.frequency) point.fail("core.at lists a frequency twice (nominal_ghz is one of them)");
    }
    core.at.push_back(p);
  }
  std::sort(core.at.begin(), core.at.end(), [](const auto& a, const auto& b) { return a.frequency < b.frequency; });
  t.sources(sources);
  t.finish();
  return core;
}

// Rests of switches and cards are the simulator's.
void leave_rests(StrictTable& t) {
  for (const auto key : {"rest_fraction", "rest_react_us", "rest_react_down_us"}) t.leave(key);
}

IdleActive read_idle_active(StrictTable t, std::vector<ValueSource>& sources, std::string_view name) {
  if (name == "nic") leave_rests(t);
  const IdleActive pair{watts(t, "idle_w"), watts(t, "active_w")};
  if (pair.idle > pair.active) t.fail(std::string(name) + ".idle_w is more than active_w");
  t.sources(sources);
  t.finish();
  return pair;
}

Watts read_watts(StrictTable t, std::string_view key, std::vector<ValueSource>& sources) {
  if (key == "share_w") {
    t.leave("idle_fraction");
    leave_rests(t);
  }
  const Watts w = watts(t, key);
  t.sources(sources);
  t.finish();
  return w;
}

Link read_link(StrictTable t, std::vector<ValueSource>& sources) {
  for (const auto key : {"switch_latency_ns", "react_down_us", "deep_react_us", "deep_react_down_us", "deep_fraction", "share_of_switch", "lane_fractions"}) {
    t.leave(key);  // of the simulator
  }
  Link link;
  link.rate = GigabitsPerSecond(t.number("gbit_s", kGigabits));
  link.lanes = t.whole("lanes", kLanes);
  link.low_power_fraction = t.number("low_power_fraction", kShare);
  link.react = to_nanoseconds(Seconds(t.number("react_us", kMicroseconds) * 1e-6));
  link.port = watts(t, "port_w");
  t.sources(sources);
  t.finish();
  return link;
}

void check_ascii(std::string_view toml, std::string_view file) {
  if (const std::size_t line = line_beyond_ascii(toml); line != 0) {
    throw PlatformError(std::string(file) + ":" + std::to_string(line) + ": " + kBeyondAscii);
  }
}

std::string read_whole_file(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) throw PlatformError(read_failure(file, error.value()));
  if (size > kLargestFile) throw PlatformError(file.string() + ": larger than any platform file");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw PlatformError(read_failure(file, errno));
  return std::move(text).str();
}

std::string names_in(std::span<const std::filesystem::path> directories) {
  std::string names;
  for (const auto& dir : directories) {
    for (const auto& entry : list_directory(dir)) {
      if (entry.extension() == ".toml") names += (names.empty() ? "" : ", ") + entry.stem().string();
    }
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Platform parse_platform(std::string_view given, std::string_view file) {
  const std::string toml = with_ascii_comments(given);
  check_ascii(toml, file);
  toml::table root;
  try {
    root = toml::parse(toml, file);
  } catch (const toml::parse_error& e) {
    throw PlatformError(std::string(file) + ":" + std::to_string(e.source().begin.line) + ": " +
                        std::string(e.description()));
  }
  StrictTable top(root, file, "");
  Platform p;
  p.name = top.text("name");
  p.description = top.text("description");
  StrictTable cpu = top.table("cpu");
  p.cpu_model = cpu.text("model");
  p.sockets = cpu.whole("sockets", kSockets);
  p.cores_per_socket = cpu.whole("cores_per_socket", kCoresPerSocket);
  cpu.sources(p.sources);
  cpu.finish();
  p.core = read_core(top.table("core"), p.sources);
  p.memory = read_idle_active(top.table("memory"), p.sources, "memory");
  p.nic = read_idle_active(top.table("nic"), p.sources, "nic");
  p.base = read_watts(top.table("base"), "node_w", p.sources);
  p.switch_share = read_watts(top.table("switch"), "share_w", p.sources);
  p.link = read_link(top.table("link"), p.sources);
  for (const std::string_view simulated : {"network", "message", "node", "storage", "ranks_per_node", "collectives"}) top.leave(simulated);
  top.finish();
  return p;
}

std::vector<std::filesystem::path> platform_directories() { return {FALLOW_PLATFORM_DIR}; }

Platform load_platform(const std::string& name, std::span<const std::filesystem::path> directories) {
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) {
    return parse_platform(read_whole_file(name), name);
  }
  std::string searched;
  for (const auto& dir : directories) {
    const std::filesystem::path file = dir / (name + ".toml");
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return parse_platform(read_whole_file(file), file.string());
    searched += (searched.empty() ? "" : ", ") + dir.string();
  }
  throw PlatformError("no platform '" + name + "' in " + (searched.empty() ? "any directory" : searched) +
                      "; there are: " + names_in(directories) + "; a path to a .toml file will do, too");
}

}  // namespace fallow::power
