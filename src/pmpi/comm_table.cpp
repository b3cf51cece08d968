#include "pmpi/comm_table.hpp"

#include <algorithm>

#include "pmpi/runtime.hpp"

namespace fallow::pmpi {

CommTable::CommTable() : slots_(std::make_unique<Slot[]>(kSlots)) {}

namespace {
constexpr std::uint32_t kRememberedSizes = 0xffff;  // numbers that an event can hold

std::size_t first_slot(std::uint64_t key, std::size_t slots) noexcept {
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 40) & (slots - 1);  // golden-ratio hashing
}
}  // namespace

const CommInfo* CommTable::find(MPI_Comm comm) noexcept {
  const std::uint64_t key = handle_key(comm) + 1;
  std::size_t i = first_slot(key, kSlots);
  for (std::size_t probes = 0; probes < kSlots; ++probes, i = (i + 1) & (kSlots - 1)) {
    const std::uint64_t found = slots_[i].key.load(std::memory_order_acquire);
    if (found == key) return slots_[i].info.load(std::memory_order_acquire);
    if (found == 0) break;
  }
  return insert(key, comm);
}

const CommInfo* CommTable::insert(std::uint64_t key, MPI_Comm comm) noexcept try {
  // The library is asked before the lock is taken: it may wait for a lock of its own, whose holder may want ours.
  auto filled = std::make_unique<CommInfo>();
  CommMembers members;
  fill(*filled, members, comm);
  return put(key, comm, std::move(filled), members);
} catch (...) {
  return nullptr;
}

void CommTable::insert_copy(MPI_Comm copy, MPI_Comm comm) noexcept try {
  if (copy == MPI_COMM_NULL) return;
  auto filled = std::make_unique<CommInfo>();
  CommMembers members;
  fill(*filled, members, comm);
  filled->handle = handle_key(copy);
  put(handle_key(copy) + 1, copy, std::move(filled), members);
} catch (...) {
  // It is registered when it is used.
}

const CommInfo* CommTable::put(std::uint64_t key, MPI_Comm comm, std::unique_ptr<CommInfo> filled, const CommMembers& members) {
  const std::lock_guard lock(mutex_);
  std::size_t target = kSlots;
  std::size_t i = first_slot(key, kSlots);
  for (std::size_t probes = 0; probes < kSlots; ++probes, i = (i + 1) & (kSlots - 1)) {
    const std::uint64_t found = slots_[i].key.load(std::memory_order_relaxed);
    if (found == key) return slots_[i].info.load(std::memory_order_relaxed);  // another thread was first
    if (found == kTombstone && target == kSlots) target = i;
    if (found == 0) {
      if (target == kSlots && used_ + 1 < kSlots * 3 / 4) {
        target = i;
        ++used_;
      }
      break;
    }
  }
  if (target == kSlots) return nullptr;
  if (runtime().tracer.active()) filled->traced = runtime().tracer.define(comm, members);
  CommInfo* info = nullptr;
  if (free_.empty()) {
    all_.push_back(std::move(filled));
    info = all_.back().get();
  } else {
    info = free_.back();
    free_.pop_back();
    *info = std::move(*filled);
  }
  info->id = next_id_++;
  if (info->id < kRememberedSizes) {
    sizes_.resize(info->id + 1);
    sizes_[info->id] = static_cast<std::uint32_t>(info->size);
  }
  slots_[target].info.store(info, std::memory_order_release);
  slots_[target].key.store(key, std::memory_order_release);
  return info;
}

namespace {

bool all_known(const std::vector<std::int32_t>& world) noexcept {
  return !world.empty() && std::none_of(world.begin(), world.end(), [](std::int32_t r) { return r < 0; });
}

/// Who takes part, for the trace; `info` is filled.
void find_members(const CommInfo& info, CommMembers& members, MPI_Comm comm) {
  const PmpiCalls& mpi = runtime().mpi;
  if (!all_known(info.world)) return;
  members.known = true;
  if (!info.inter) {
    members.group = trace::Group(info.world);
    return;
  }
  members.remote = trace::Group(info.world);
  MPI_Group group = MPI_GROUP_NULL;
  mpi.comm_group(comm, &group);
  const auto local = runtime().world.ranks(mpi, group, info.size);
  mpi.group_free(&group);
  members.known = all_known(local);
  members.group = trace::Group(local);
}

}  // namespace

void CommTable::fill(CommInfo& info, CommMembers& members, MPI_Comm comm) {
  const PmpiCalls& mpi = runtime().mpi;
  info = CommInfo{};
  info.handle = handle_key(comm);
  int inter = 0;
  mpi.comm_test_inter(comm, &inter);
  mpi.comm_rank(comm, &info.rank);
  mpi.comm_size(comm, &info.size);
  info.peers = info.size;
  MPI_Group group = MPI_GROUP_NULL;
  info.inter = inter != 0;
  if (info.inter) {
    mpi.comm_remote_size(comm, &info.peers);
    mpi.comm_remote_group(comm, &group);
  } else {
    mpi.comm_group(comm, &group);
    int topology = MPI_UNDEFINED;
    mpi.topo_test(comm, &topology);
    int weighted = 0;
    if (topology == MPI_GRAPH) mpi.graph_neighbors_count(comm, info.rank, &info.neighbors);
    if (topology == MPI_CART) {
      int dimensions = 0;
      mpi.cartdim_get(comm, &dimensions);
      info.neighbors = 2 * dimensions;
    }
    info.in_neighbors = info.neighbors;
    if (topology == MPI_DIST_GRAPH) mpi.dist_graph_neighbors_count(comm, &info.in_neighbors, &info.neighbors, &weighted);
  }
  info.world = runtime().world.ranks(mpi, group, info.peers);
  mpi.group_free(&group);
  // Ranks that were spawned, or that it connected to, have a page of their own and wake nobody here.
  const bool strangers = std::find(info.world.begin(), info.world.end(), -1) != info.world.end();
  if (strangers) runtime().whole_job_here.store(false, std::memory_order_relaxed);
  if (runtime().tracer.active()) find_members(info, members, comm);
}

std::uint32_t CommTable::size_of(std::uint32_t id) noexcept {
  const std::lock_guard lock(mutex_);
  return id < sizes_.size() ? sizes_[id] : 0;
}

void CommTable::forget(MPI_Comm comm) noexcept {
  const std::uint64_t key = handle_key(comm) + 1;
  const std::lock_guard lock(mutex_);
  std::size_t i = first_slot(key, kSlots);
  for (std::size_t probes = 0; probes < kSlots; ++probes, i = (i + 1) & (kSlots - 1)) {
    const std::uint64_t found = slots_[i].key.load(std::memory_order_relaxed);
    if (found == 0) return;
    if (found != key) continue;
    free_.push_back(slots_[i].info.load(std::memory_order_relaxed));
    slots_[i].key.store(kTombstone, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    return;
  }
}

}  // namespace fallow::pmpi
