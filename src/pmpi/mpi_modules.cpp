#include "pmpi/mpi_modules.hpp"

#include <cstring>

#include "base/signal_guard.hpp"
#include "pmpi/loaded_object.hpp"

namespace fallow::pmpi {
namespace {

bool is_mpi_name(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  for (const char* prefix : {"libmpi", "mca_", "libmca_", "libopen-", "libompi", "libucp", "libuct", "libucs", "libucm", "libfabric", "libpmi"}) {
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  }
  return false;
}

}  // namespace

bool MpiModules::contains(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uint64_t>(address);
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (value >= ranges_[i].begin && value < ranges_[i].end) return ranges_[i].mpi;
  }
  const SignalGuard whole;  // the linker's lock is taken too
  LoadedObject object;
  if (!find_loaded_object(address, object)) return true;  // nobody's code: leave it uncounted
  const bool mpi = is_mpi_name(object.path);
  const std::lock_guard lock(mutex_);
  const std::uint32_t next = used_.load(std::memory_order_relaxed);
  if (next < ranges_.size()) {
    ranges_[next] = {object.begin, object.end, mpi};
    used_.store(next + 1, std::memory_order_release);
  }
  return mpi;
}

}  // namespace fallow::pmpi
