// The processors of the node, as the kernel lists them.
#pragma once

#include <filesystem>
#include <string>

namespace fallow::power {

struct CpuInfo {
  std::string model;             ///< "unknown processor" where the kernel names none
  unsigned sockets = 0;
  unsigned cores = 0;            ///< physical cores of all sockets; 0: nothing could be read
  bool virtual_machine = false;  ///< the processor says that a hypervisor runs it
};
/// Reads proc/cpuinfo under `root`. Never fails: what is not there is not filled in.
CpuInfo read_cpu_info(const std::filesystem::path& root);

}  // namespace fallow::power
