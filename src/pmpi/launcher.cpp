#include "pmpi/launcher.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/options.hpp"

extern char** environ;

namespace fallow::pmpi {
namespace {

/// Value of a variable by a walk through the environment: options are read elsewhere, this is the launcher's.
const char* variable(std::string_view name) noexcept {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view e(*entry);
    if (e.size() > name.size() && e[name.size()] == '=' && e.substr(0, name.size()) == name) return *entry + name.size() + 1;
  }
  return nullptr;
}

std::int32_t number(std::initializer_list<const char*> names, std::int32_t otherwise) noexcept {
  for (const char* name : names) {
    const char* text = variable(name);
    std::int32_t value = 0;
    if (text == nullptr) continue;
    const char* const end = text + std::strlen(text);
    if (std::from_chars(text, end, value).ec == std::errc() && value >= 0) return value;
  }
  return otherwise;
}

/// Whether it is read here; others that begin in the same way are the program's.
bool is_option(std::string_view variable) noexcept {
  constexpr std::string_view kOurs = "FALLOW_";
  if (variable.substr(0, kOurs.size()) != kOurs) return false;
  const std::string_view name = variable.substr(kOurs.size());
  const auto same = [](char upper, char lower) { return upper == (lower >= 'a' && lower <= 'z' ? lower - 'a' + 'A' : lower); };
  const auto is_named = [&](const OptionInfo& option) { return std::ranges::equal(name, std::string_view(option.name), same); };
  return std::ranges::any_of(option_table(), is_named);
}

}  // namespace

std::int32_t slurm_tasks(std::string_view list, std::int32_t node) noexcept {
  const char* at = list.data();
  const char* const end = at + list.size();
  for (;;) {
    std::int32_t tasks = 0, nodes = 1;
    std::from_chars_result read = std::from_chars(at, end, tasks);
    if (read.ec != std::errc() || tasks <= 0) return 0;
    if (end - read.ptr > 2 && read.ptr[0] == '(' && read.ptr[1] == 'x') {
      read = std::from_chars(read.ptr + 2, end, nodes);
      if (read.ec != std::errc() || nodes <= 0 || read.ptr == end || *read.ptr++ != ')') return 0;
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (read.ptr == end || *read.ptr != ',') return 0;
    at = read.ptr + 1;
  }
}

LaunchInfo launch_info() noexcept {
  LaunchInfo info;
  info.world_rank = number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "SLURM_PROCID"}, -1);
  info.world_size = number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"}, -1);
  info.local_rank = number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK",
                            "PALS_LOCAL_RANKID", "SLURM_LOCALID"}, -1);
  info.local_size = number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE",
                            "PALS_LOCAL_SIZE"}, 0);
  if (const char* tasks = variable("SLURM_STEP_TASKS_PER_NODE"); info.local_size == 0 && tasks != nullptr) {
    info.local_size = slurm_tasks(tasks, number({"SLURM_NODEID"}, 0));
  }
  return info;
}

std::string launcher_namespace() {
  std::string key;
  for (const char* name : {"PMIX_NAMESPACE", "PMI_KVS", "PMI_JOBID", "SLURM_STEP_ID"}) {
    if (const char* text = variable(name)) (key += text) += '/';
  }
  return key;
}

std::uint32_t launcher_hash() {
  const std::string name = launcher_namespace();
  std::uint64_t hash = 1469598103934665603u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return name.empty() ? 0 : static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

std::string absolute(const std::string& directory) {
  char* const found = realpath(directory.c_str(), nullptr);
  if (found == nullptr) return directory;
  std::string path = found;
  free(found);
  return path;
}

bool lend(const char* name, const char* value) noexcept { return variable(name) == nullptr && setenv(name, value, 0) == 0; }

void take_back(const char* name) noexcept { unsetenv(name); }

std::string without_ours(std::string_view preload) {
  constexpr std::string_view kOurs = "/libfallow.so", kBetween = " :";
  std::string rest(preload);
  for (std::size_t begin = 0; begin < rest.size();) {
    const std::size_t end = std::min(rest.find_first_of(kBetween, begin), rest.size());
    const std::string_view entry = std::string_view(rest).substr(begin, end - begin);
    if (entry.size() > kOurs.size() && entry.substr(entry.size() - kOurs.size()) == kOurs) {
      const std::size_t before = end == rest.size() && begin != 0 ? 1 : 0;  // the last one goes with what stands before it
      rest.erase(begin - before, end - begin + 1);
    } else {
      begin = end + 1;
    }
  }
  return rest;
}

void restore_environment() noexcept try {
  std::vector<std::string> ours;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view e(*entry);
    const bool launchers = e.substr(0, 9) == "OMPI_MCA_" || e.substr(0, 9) == "PRTE_MCA_";
    const bool forwards = launchers && e.find("FALLOW_RUN_ID") != e.npos;  // how other nodes got ours
    const std::string_view name = e.substr(0, e.find('='));
    if (forwards || is_option(name)) ours.emplace_back(name);
  }
  for (const std::string& name : ours) unsetenv(name.c_str());
  const char* const preload = variable("LD_PRELOAD");
  const std::string theirs = without_ours(preload != nullptr ? preload : "");
  if (theirs.empty()) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", theirs.c_str(), 1);
  }
} catch (...) {
  // The children inherit our variables: they load Fallow, which does nothing in them.
}

}  // namespace fallow::pmpi
