#include "power/platform.hpp"

#include <algorithm>

#include "power/cpu_info.hpp"
#include "power/generic_toml.hpp"

namespace fallow::power {
namespace {

Watts interpolate(const CorePower& core, Hertz f, Watts FrequencyPoint::*power, Watts nominal) noexcept {
  if (f <= Hertz{} || core.at.empty()) return nominal;
  const auto above = std::lower_bound(core.at.begin(), core.at.end(), f,
                                      [](const FrequencyPoint& p, Hertz v) { return p.frequency < v; });
  if (above == core.at.begin()) return core.at.front().*power;
  if (above == core.at.end()) return core.at.back().*power;
  const FrequencyPoint& below = *std::prev(above);
  const double part = (f - below.frequency) / (above->frequency - below.frequency);
  return below.*power + (*above.*power - below.*power) * part;
}

// What the model itself takes for granted, whatever the platform.
constexpr std::string_view kModelAssumptions[] = {
    "energy is power of each state times time in it; changing state is free and instant",
    "a core that transfers a message draws what a polling core draws",
    "a core in an I/O call is blocked and draws what a sleeping core draws",
    "a core that the run does not use draws what a sleeping core draws; the nodes belong to the run alone",
    "core time outside the recorded states (start and end of the program) is computation",
    "ranks that share a core share its time equally",
    "memory is active in proportion to the cores that compute or transfer",
    "a network card is active while any rank of its node transfers, and transfers do not overlap",
    "without sleep the run is taken to be shorter by the wake-up delay that lasted, of the rank that has most of it",
};

bool is_assumption(std::string_view source) noexcept { return source.starts_with("assumption"); }

}  // namespace

Watts CorePower::compute_at(Hertz f) const noexcept { return interpolate(*this, f, &FrequencyPoint::compute, compute); }
Watts CorePower::spin_at(Hertz f) const noexcept { return interpolate(*this, f, &FrequencyPoint::spin, spin); }
Watts CorePower::yield_at(Hertz f) const noexcept {
  return spin > Watts{} ? yield * (spin_at(f) / spin) : yield;
}

std::vector<std::string> Platform::assumptions() const {
  std::vector<std::string> all(std::begin(kModelAssumptions), std::end(kModelAssumptions));
  for (const ValueSource& s : sources) {
    if (is_assumption(s.source)) all.push_back(s.value + ": " + s.source);
  }
  return all;
}

Platform generic_platform(const std::filesystem::path& root) {
  Platform p = parse_platform(kGenericToml, "generic.toml (built in)");
  const CpuInfo cpu = read_cpu_info(root);
  const auto is_cpu = [](const ValueSource& s) { return s.value.starts_with("cpu"); };
  if (cpu.cores == 0) return p;  // the file's own processor stands, with its own source
  p.sources.erase(std::remove_if(p.sources.begin(), p.sources.end(), is_cpu), p.sources.end());
  p.cpu_model = cpu.model;
  p.sockets = cpu.sockets;
  p.cores_per_socket = (cpu.cores + cpu.sockets - 1) / cpu.sockets;
  p.sources.push_back({"cpu", cpu.virtual_machine
                                  ? "assumption: as the virtual machine shows it; the node below may be larger, and is not "
                                    "used by this machine alone"
                                  : "as the kernel shows it (/proc/cpuinfo)"});
  return p;
}

}  // namespace fallow::power
