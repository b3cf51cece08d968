// The meters Fallow knows, and how their figures go together.
#include <array>
#include <chrono>

#include "power/meter.hpp"

// One line per back end, the one that sees most of the node first. A back end is a source with probe_NAME() in it.
#define FALLOW_METER_BACK_ENDS(X) \
  X(cray_pm)                      \
  X(powercap)                     \
  X(hwmon)                        \
  X(nvml)

namespace fallow::power {

#define FALLOW_DECLARE(name) Probe probe_##name(const std::filesystem::path& root, const Clock& clock);
FALLOW_METER_BACK_ENDS(FALLOW_DECLARE)
#undef FALLOW_DECLARE

namespace {
#define FALLOW_ROW(name) MeterBackEnd{#name, probe_##name},
constexpr std::array kBackEnds{FALLOW_METER_BACK_ENDS(FALLOW_ROW)};
#undef FALLOW_ROW

using Meters = std::span<const Meter* const>;

// Adds the meter's domains of one kind, those inside another of the same kind left out.
void add_of_kind(std::vector<DomainRef>& to, Meters meters, std::size_t m, DomainKind kind) {
  const auto domains = meters[m]->domains();
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const auto& inside = domains[d].inside;
    if (domains[d].kind == kind && !(inside && domains[*inside].kind == kind)) to.push_back({m, d});
  }
}

// The domains of one kind in the first meter that has any.
std::vector<DomainRef> first_of_kind(Meters meters, DomainKind kind) {
  std::vector<DomainRef> found;
  for (std::size_t m = 0; m < meters.size() && found.empty(); ++m) add_of_kind(found, meters, m, kind);
  return found;
}

// Accelerators of all meters: each tells of those of its driver, and a card has one driver. Only a meter that sees the whole
// node has them all.
std::vector<DomainRef> all_accelerators(Meters meters) {
  std::vector<DomainRef> found;
  for (std::size_t m = 0; m < meters.size(); ++m) {
    std::vector<DomainRef> here;
    add_of_kind(here, meters, m, DomainKind::accelerator);
    if (!here.empty() && meters[m]->description().whole_node) return here;
    found.insert(found.end(), here.begin(), here.end());
  }
  return found;
}

}  // namespace

std::span<const MeterBackEnd> meter_back_ends() noexcept { return kBackEnds; }

Clock monotonic_clock() {
  return [] {
    const auto t = std::chrono::steady_clock::now().time_since_epoch();
    return Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
  };
}

std::string_view to_string(DomainKind kind) noexcept {
  switch (kind) {
    case DomainKind::node: return "node";
    case DomainKind::module: return "module";
    case DomainKind::platform: return "platform";
    case DomainKind::cpu: return "cpu";
    case DomainKind::package: return "package";
    case DomainKind::core: return "core";
    case DomainKind::dram: return "dram";
    case DomainKind::memory: return "memory";
    case DomainKind::accelerator: return "accelerator";
    case DomainKind::other: return "other";
  }
  return "other";
}

FoundMeters find_meters(const std::filesystem::path& root, const Clock& clock) {
  FoundMeters found;
  for (const MeterBackEnd& b : meter_back_ends()) {
    Probe probe = b.find(root, clock);
    if (probe.meter) {
      found.meters.push_back(std::move(probe.meter));
    } else {
      found.missing.push_back({std::string(b.name), std::move(probe.reason), std::move(probe.remedy)});
    }
  }
  return found;
}

std::vector<DomainRef> additive_domains(Meters meters) {
  const auto kind = [&](DomainKind k) { return first_of_kind(meters, k); };
  const auto first_with = [&](std::initializer_list<DomainKind> kinds) {
    std::vector<DomainRef> found;
    for (const DomainKind k : kinds) {
      if (found.empty()) found = kind(k);
    }
    return found;
  };
  std::vector<DomainRef> sum = kind(DomainKind::node);
  if (!sum.empty()) {
    sum.resize(1);  // two figures for the node are two views of the same energy
    return sum;
  }
  sum = kind(DomainKind::module);
  if (!sum.empty()) return sum;
  sum = kind(DomainKind::platform);
  if (sum.empty()) {
    sum = first_with({DomainKind::cpu, DomainKind::package, DomainKind::core});
    const auto memory = first_with({DomainKind::memory, DomainKind::dram});
    sum.insert(sum.end(), memory.begin(), memory.end());
  }
  const auto accelerators = all_accelerators(meters);
  sum.insert(sum.end(), accelerators.begin(), accelerators.end());
  return sum;
}

}  // namespace fallow::power
