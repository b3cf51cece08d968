#include "pmpi/window_table.hpp"

#include "base/signal_guard.hpp"

namespace fallow::pmpi {

void WindowTable::made(std::uint64_t window, const std::vector<std::int32_t>& world) noexcept try {
  const WholeLock lock(mutex_);
  world_of_[window] = world;
} catch (...) {
  // No memory: its ranks stay unknown.
}

void WindowTable::forget(std::uint64_t window) noexcept {
  const WholeLock lock(mutex_);
  world_of_.erase(window);
}

std::int32_t WindowTable::world_rank(std::uint64_t window, std::int32_t rank) const noexcept {
  // Asked for each one-sided call while somebody sleeps: to keep signals away for a moment would take longer than all the rest.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return -1;
  const auto found = world_of_.find(window);
  if (found == world_of_.end() || rank < 0 || static_cast<std::size_t>(rank) >= found->second.size()) return -1;
  return found->second[static_cast<std::size_t>(rank)];
}

}  // namespace fallow::pmpi
