#include "pmpi/world.hpp"

#include <algorithm>
#include <numeric>

#include "base/signal_guard.hpp"

namespace fallow::pmpi {
namespace {

std::vector<std::int32_t> translated(const PmpiCalls& calls, MPI_Group group, std::int32_t size, MPI_Group world_group) {
  std::vector<int> own(static_cast<std::size_t>(size));
  std::iota(own.begin(), own.end(), 0);
  std::vector<std::int32_t> world(own.size(), MPI_UNDEFINED);
  if (size > 0) calls.group_translate_ranks(group, size, own.data(), world_group, world.data());
  for (std::int32_t& r : world) r = r == MPI_UNDEFINED ? -1 : r;
  return world;
}

}  // namespace

void World::take_comm_world(const PmpiCalls& calls) noexcept {
  if (group_ != MPI_GROUP_NULL) return;
  MPI_Group group = MPI_GROUP_NULL;
  if (calls.comm_group(MPI_COMM_WORLD, &group) == MPI_SUCCESS) group_ = group;
}

#ifdef MPI_SESSION_NULL

std::vector<std::int32_t> World::ranks(const PmpiCalls& calls, MPI_Group group, std::int32_t size) {
  if (group_ != MPI_GROUP_NULL) return translated(calls, group, size, group_);
  const WholeLock lock(mutex_);
  // The group is made for the moment: one that is kept would outlive its session.
  MPI_Group everyone = MPI_GROUP_NULL;
  if (sessions_.empty() || calls.group_from_session_pset == nullptr || calls.group_from_session_pset(sessions_.back(), "mpi://WORLD", &everyone) != MPI_SUCCESS) return {};
  auto world = translated(calls, group, size, everyone);
  calls.group_free(&everyone);
  return world;
}

void World::find_own(const PmpiCalls& calls, std::int32_t& rank, std::int32_t& size) noexcept {
  const WholeLock lock(mutex_);
  MPI_Group everyone = MPI_GROUP_NULL;
  if (sessions_.empty() || calls.group_from_session_pset == nullptr || calls.group_from_session_pset(sessions_.back(), "mpi://WORLD", &everyone) != MPI_SUCCESS) return;
  calls.group_rank(everyone, &rank);
  calls.group_size(everyone, &size);
  calls.group_free(&everyone);
}

void World::begin(MPI_Session session) noexcept try {
  const WholeLock lock(mutex_);
  began_ = true;
  sessions_.push_back(session);
} catch (...) {
  // World ranks of its groups stay unknown.
}

void World::end(MPI_Session session) noexcept {
  const WholeLock lock(mutex_);
  const auto found = std::find(sessions_.begin(), sessions_.end(), session);
  if (found != sessions_.end()) sessions_.erase(found);
}

bool World::finalize() noexcept {
  const WholeLock lock(mutex_);
  finalized_ = true;
  group_ = MPI_GROUP_NULL;  // process sets tell from now on
  return sessions_.empty();
}

bool World::over() noexcept {
  const WholeLock lock(mutex_);
  return finalized_ || (began_ && group_ == MPI_GROUP_NULL && sessions_.empty());
}

#else

bool World::finalize() noexcept { return finalized_ = true; }

bool World::over() noexcept { return finalized_; }

std::vector<std::int32_t> World::ranks(const PmpiCalls& calls, MPI_Group group, std::int32_t size) {
  if (group_ == MPI_GROUP_NULL) return {};
  return translated(calls, group, size, group_);
}

#endif

}  // namespace fallow::pmpi
