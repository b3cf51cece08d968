// Which world rank a rank of a window is, for waking it. The MPI library is not asked: what the program says may be wrong, and
// the library's error handlers would be called for it, or end the program, before the call that they belong to.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fallow::pmpi {

class WindowTable {
 public:
  /// A window was made over a communicator of these world ranks.
  void made(std::uint64_t window, const std::vector<std::int32_t>& world) noexcept;
  void forget(std::uint64_t window) noexcept;

  /// -1: not known, or not at the moment.
  std::int32_t world_rank(std::uint64_t window, std::int32_t rank) const noexcept;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> world_of_;
};

}  // namespace fallow::pmpi
