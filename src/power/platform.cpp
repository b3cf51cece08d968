#include "power/platform.hpp"

#include <algorithm>
#include <string>

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
    "CPU time of a rank beyond what its threads that call MPI can have had is computation on cores of its own",
    "core time outside the recorded states (start and end of the program) is computation",
    "ranks that share cores share their time equally while they are awake; cores sleep for what is left of it",
    "memory is active in proportion to the cores that compute or transfer",
    "a network card is active while any rank of its node transfers, and transfers do not overlap",
    "without sleep the run is taken to be shorter by the wake-up delay that lasted, of the rank that has most of it",
};

/// A virtual machine does not have a server's memory, board and network card to itself: it is charged for its cores' part of them.
void charge_share(Platform& p, unsigned server_cores) {
  const double share = static_cast<double>(p.cores()) / server_cores;
  for (Watts* whole : {&p.memory.idle, &p.memory.active, &p.nic.idle, &p.nic.active, &p.base, &p.switch_share}) *whole = *whole * share;
  p.sources.push_back({"virtual machine", "assumption: of the memory, network card, rest and switches of a server of " + std::to_string(server_cores) +
                                              " cores it is charged its cores' part, " + std::to_string(p.cores()) + " of " +
                                              std::to_string(server_cores) + "; the others use the rest"});
}

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
  const unsigned server_cores = p.cores();
  p.name = "the machine found";  // what is named `generic` is the server of the file, and draws many times as much as a small machine
  p.sources.erase(std::remove_if(p.sources.begin(), p.sources.end(), is_cpu), p.sources.end());
  p.cpu_model = cpu.model;
  p.sockets = cpu.sockets;
  p.cores_per_socket = (cpu.cores + cpu.sockets - 1) / cpu.sockets;
  p.sources.push_back({"cpu", cpu.virtual_machine ? "as the virtual machine shows it" : "as the kernel shows it (/proc/cpuinfo)"});
  if (cpu.virtual_machine && p.cores() < server_cores) charge_share(p, server_cores);
  return p;
}

}  // namespace fallow::power
