// What the launcher's environment says about this process, for when MPI cannot be asked (yet).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fallow::pmpi {

struct LaunchInfo {
  std::int32_t world_rank = -1;   ///< -1: not said
  std::int32_t world_size = -1;
  std::int32_t local_rank = -1;
  std::int32_t local_size = 0;    ///< 0: not said
};

/// Reads the variables of Open MPI, Hydra, PMIx, MVAPICH, HPE's PMI and PALS, and Slurm.
LaunchInfo launch_info() noexcept;

/// Tasks on node `node` (from 0) as Slurm lists them, "4(x2),3": 0 if the list does not say.
std::int32_t slurm_tasks(std::string_view list, std::int32_t node) noexcept;

/// The job's name space as the launcher calls it, or an empty string.
std::string launcher_namespace();

/// FNV-1a of launcher_namespace(), folded to 32 bits; 0: it says nothing.
std::uint32_t launcher_hash();

/// The directory without links, for later: the program may change its working directory. As it is if it cannot be found.
std::string absolute(const std::string& directory);

/// Sets a variable that the environment does not have, until take_back(). False if it is the user's.
bool lend(const char* name, const char* value) noexcept;
void take_back(const char* name) noexcept;

/// What LD_PRELOAD would be without our library. Not what it was before `fallow run`: scripts between that and the program add to it.
std::string without_ours(std::string_view preload);

/// Takes our library out of LD_PRELOAD and removes FALLOW_* and what forwards them, so that the program's own children see the environment
/// that they would have seen without Fallow.
void restore_environment() noexcept;

}  // namespace fallow::pmpi
