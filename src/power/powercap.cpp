// Energy counters of the kernel's powercap class: RAPL on Intel and AMD, and what other drivers register there.
// Interface: Documentation/power/powercap/powercap.rst; domains: Intel SDM volume 3, "Platform specific power management".
#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include "power/channel_meter.hpp"

namespace fallow::power {
namespace {

constexpr Joules kMicrojoule{1e-6};
// RAPL's default unit is 2^-14 J on Intel (MSR_RAPL_POWER_UNIT) and 2^-16 J on AMD; the coarser one is claimed.
constexpr Joules kResolution{1.0 / 16384};
constexpr Seconds kUpdatePeriod{1e-3};   // Intel SDM: the counters are updated about every millisecond
// No package or memory channel set draws this for long (largest rated package in 2024: 500 W); it bounds the time to a wrap.
constexpr Watts kMostSustained{2000};
// More than this between two reads is a counter that was reset: energy_uj can be written.
constexpr Watts kCeiling{10000};

struct KindOfName {
  std::string_view prefix;
  DomainKind kind;
};
constexpr std::array kKinds{
    KindOfName{"package", DomainKind::package}, KindOfName{"core", DomainKind::core},
    KindOfName{"dram", DomainKind::dram},       KindOfName{"psys", DomainKind::platform},
};
DomainKind kind_of(std::string_view name) noexcept {
  for (const KindOfName& k : kKinds) {
    if (name.starts_with(k.prefix)) return k.kind;
  }
  return DomainKind::other;
}

struct Zone {
  std::string directory;  // e.g. intel-rapl:0:1, the second zone inside intel-rapl:0
  std::string name;       // e.g. dram
  std::filesystem::path energy;
  std::uint64_t range;
};

std::string parent_of(const std::string& directory) {
  const std::size_t last = directory.rfind(':');
  const std::size_t first = directory.find(':');
  return last == first ? std::string() : directory.substr(0, last);
}

// The same package, seen a second time through memory-mapped registers.
bool is_second_view(const Zone& z, const std::vector<Zone>& zones) {
  constexpr std::string_view kMmio = "intel-rapl-mmio:";
  return z.directory.starts_with(kMmio) && std::any_of(zones.begin(), zones.end(), [&](const Zone& o) {
           return o.directory.starts_with("intel-rapl:") && o.name == z.name;
         });
}

struct Zones {
  std::vector<Zone> usable;
  std::string failure;  // of the first that is not
  int error = 0;
};

Zones find_zones(const std::filesystem::path& dir) {
  Zones found;
  for (const auto& entry : list_directory(dir)) {
    Zone z{entry.filename().string(), read_text(entry / "name").text, entry / "energy_uj", 0};
    if (z.name.empty()) z.name = z.directory;
    const TextFile energy = read_text(z.energy);
    if (energy.error == ENOENT || energy.error == ENOTDIR) continue;  // a control type, or a zone without a counter
    if (!energy.ok() || !parse_unsigned(energy.text)) {
      if (found.failure.empty()) {
        found.failure = energy.ok() ? z.energy.string() + " holds no number" : read_failure(z.energy, energy.error);
        found.error = energy.error;
      }
      continue;
    }
    z.range = parse_unsigned(read_text(entry / "max_energy_range_uj").text).value_or(0);
    if (z.range == 0) z.range = std::numeric_limits<std::uint64_t>::max();
    found.usable.push_back(std::move(z));
  }
  std::vector<Zone> once;
  for (const Zone& z : found.usable) {
    if (!is_second_view(z, found.usable)) once.push_back(z);
  }
  found.usable = std::move(once);
  return found;
}

// RAPL lists dram below its package, but the package's counter leaves memory out; psys includes all of them.
std::optional<std::size_t> container(const std::vector<Zone>& zones, std::size_t of) {
  const DomainKind kind = kind_of(zones[of].name);
  const std::string parent = parent_of(zones[of].directory);
  if (!parent.empty() && kind != DomainKind::dram) {
    for (std::size_t i = 0; i < zones.size(); ++i) {
      if (zones[i].directory == parent) return i;
    }
  }
  if (kind != DomainKind::platform) {
    for (std::size_t i = 0; i < zones.size(); ++i) {
      if (kind_of(zones[i].name) == DomainKind::platform) return i;
    }
  }
  return std::nullopt;
}

std::vector<Channel> channels_of(const std::vector<Zone>& zones) {
  std::map<std::string, std::string> name_of;
  for (const Zone& z : zones) name_of[z.directory] = z.name;
  std::vector<Channel> channels;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const Zone& z = zones[i];
    const auto parent = name_of.find(parent_of(z.directory));
    const std::string name = parent == name_of.end() ? z.name : parent->second + "/" + z.name;
    channels.push_back({{name, kind_of(z.name), container(zones, i)},
                        z.energy,
                        EnergyFile{kMicrojoule, z.range, kCeiling, {}}});
  }
  make_names_unique(channels);
  return channels;
}

constexpr const char* kLoadDriver =
    "on bare metal load the driver (modprobe intel_rapl_msr, for Intel and AMD); a virtual machine has no such counters";
constexpr const char* kOpenCounters =
    "energy_uj is readable by root only since Linux 5.10; let users read it: "
    "chmod a+r /sys/class/powercap/*/energy_uj (a udev rule keeps it so)";

}  // namespace

Probe probe_powercap(const std::filesystem::path& root, const Clock& clock) {
  const std::filesystem::path dir = root / "sys/class/powercap";
  int error = 0;
  if (list_directory(dir, &error).empty()) {
    return {nullptr, error != 0 ? read_failure(dir, error) : dir.string() + " is empty", kLoadDriver};
  }
  Zones zones = find_zones(dir);
  if (zones.usable.empty()) {
    if (zones.failure.empty()) return {nullptr, "no zone under " + dir.string() + " counts energy", kLoadDriver};
    const bool denied = zones.error == EACCES || zones.error == EPERM;
    return {nullptr, zones.failure, denied ? kOpenCounters : kLoadDriver};
  }
  const auto shortest = std::min_element(zones.usable.begin(), zones.usable.end(),
                                         [](const Zone& a, const Zone& b) { return a.range < b.range; });
  std::string measures =
      "processor packages and, where counted, their memory, by the processor's own counters (RAPL); boards, network "
      "cards, fans and power supplies are not in it";
  if (!zones.failure.empty()) measures += ", nor is what could not be read: " + zones.failure;
  const Seconds to_wrap(kMicrojoule * static_cast<double>(shortest->range) / (kMostSustained * Seconds{1.0}));
  return {std::make_unique<ChannelMeter>(
              "powercap",
              MeterDescription{std::move(measures), kResolution, kUpdatePeriod, to_wrap},
              channels_of(zones.usable), clock)};
}

}  // namespace fallow::power
