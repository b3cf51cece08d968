#include "pmpi/comm_table.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/signal_guard.hpp"
#include "pmpi/meeting.hpp"
#include "pmpi/runtime.hpp"

namespace fallow::pmpi {

CommTable::CommTable() {
  tables_.push_back(std::make_unique<Slots>(kFirstSlots));
  slots_.store(tables_.back().get());
}

namespace {
constexpr std::uint32_t kRememberedSizes = 0xffff;  // numbers that an event can hold

/// By number, kept when the communicator is freed. Read without the lock: a signal's handler may end the process while its own
/// thread holds that.
constinit std::array<std::atomic<std::uint32_t>, kRememberedSizes> g_sizes{};
}  // namespace

std::size_t CommTable::Slots::first(std::uint64_t key) const noexcept {
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 40) & (count - 1);  // golden-ratio hashing
}

const CommInfo* CommTable::known(std::uint64_t handle) const noexcept {
  const std::uint64_t key = handle + 1;
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  for (std::size_t i = slots.first(key);; i = slots.after(i)) {
    const std::uint64_t found = slots.at[i].key.load(std::memory_order_acquire);
    if (found == key) return slots.at[i].info.load(std::memory_order_acquire);
    if (found == 0) return nullptr;
  }
}

const CommInfo* CommTable::find(MPI_Comm comm) noexcept {
  const CommInfo* const info = known(handle_key(comm));
  return info != nullptr ? info : insert(handle_key(comm) + 1, comm, {});
}

const CommInfo* CommTable::insert(std::uint64_t key, MPI_Comm comm, const trace::CommOrigin& origin) noexcept try {
  // The library is asked before the lock is taken: it may wait for a lock of its own, whose holder may want ours.
  auto filled = std::make_unique<CommInfo>();
  CommMembers members{.origin = origin};
  fill(*filled, members, comm);
  return put(key, comm, std::move(filled), members);
} catch (...) {
  return nullptr;
}

void CommTable::insert_made(MPI_Comm made, const trace::CommOrigin& origin) noexcept {
  if (made == MPI_COMM_NULL) return;
  drop(handle_key(made) + 1);
  insert(handle_key(made) + 1, made, origin);
}

void CommTable::insert_copy(MPI_Comm copy, MPI_Comm comm, const trace::CommOrigin& origin) noexcept try {
  if (copy == MPI_COMM_NULL) return;
  auto filled = std::make_unique<CommInfo>();
  CommMembers members{.origin = origin};
  fill(*filled, members, comm);
  filled->handle = handle_key(copy);
  put(handle_key(copy) + 1, copy, std::move(filled), members);
} catch (...) {
  // It is registered when it is used.
}

const CommInfo* CommTable::put(std::uint64_t key, MPI_Comm comm, std::unique_ptr<CommInfo> filled, const CommMembers& members) {
  const WholeLock lock(mutex_);
  if (used_ + 1 >= slots_.load(std::memory_order_relaxed)->count * 3 / 4) grow();
  Slots& slots = *slots_.load(std::memory_order_relaxed);
  Slot* target = nullptr;
  for (std::size_t i = slots.first(key);; i = slots.after(i)) {
    const std::uint64_t found = slots.at[i].key.load(std::memory_order_relaxed);
    if (found == key) return slots.at[i].info.load(std::memory_order_relaxed);  // another thread was first
    if (target == nullptr && (found == kTombstone || found == 0)) target = &slots.at[i];
    if (found == 0) break;
  }
  if (runtime().tracer.active()) filled->traced = runtime().tracer.define(comm, members);
  CommInfo* info = nullptr;
  if (free_.size() <= kKept) {
    all_.push_back(std::move(filled));
    info = all_.back().get();
  } else {
    info = free_.front();
    free_.pop_front();
    *info = std::move(*filled);
  }
  info->id = next_id_++;
  if (info->id < kRememberedSizes) {
    g_sizes[info->id].store(static_cast<std::uint32_t>(info->size), std::memory_order_relaxed);
  }
  if (target->key.load(std::memory_order_relaxed) == 0) ++used_;
  target->info.store(info, std::memory_order_release);
  target->key.store(key, std::memory_order_release);
  return info;
}

/// Twice as many slots. Those that were used until now stay: another thread may be reading them.
void CommTable::grow() {
  const Slots& old = *slots_.load(std::memory_order_relaxed);
  tables_.push_back(std::make_unique<Slots>(old.count * 2));
  Slots& larger = *tables_.back();
  used_ = 0;
  for (std::size_t i = 0; i < old.count; ++i) {
    const std::uint64_t key = old.at[i].key.load(std::memory_order_relaxed);
    if (key == 0 || key == kTombstone) continue;
    std::size_t to = larger.first(key);
    while (larger.at[to].key.load(std::memory_order_relaxed) != 0) to = larger.after(to);
    larger.at[to].info.store(old.at[i].info.load(std::memory_order_relaxed), std::memory_order_relaxed);
    larger.at[to].key.store(key, std::memory_order_relaxed);
    ++used_;
  }
  slots_.store(&larger, std::memory_order_release);
}

void find_neighbors(MPI_Comm comm, const CommInfo& info, std::vector<int>& to, std::vector<int>& from) {
  const PmpiCalls& mpi = runtime().mpi;
  to.assign(static_cast<std::size_t>(info.neighbors), MPI_PROC_NULL);
  from.assign(static_cast<std::size_t>(info.in_neighbors), MPI_PROC_NULL);
  if (info.topology == MPI_CART) {
    for (int d = 0; 2 * d + 1 < info.neighbors; ++d) mpi.cart_shift(comm, d, 1, &to[static_cast<std::size_t>(2 * d)], &to[static_cast<std::size_t>(2 * d + 1)]);
    from = to;
  } else if (info.topology == MPI_GRAPH) {
    mpi.graph_neighbors(comm, info.rank, info.neighbors, to.data());
    from = to;
  } else if (info.topology == MPI_DIST_GRAPH) {
    std::vector<int> weights(std::max(to.size(), from.size()) + 1), other(weights);
    mpi.dist_graph_neighbors(comm, info.in_neighbors, from.data(), weights.data(), info.neighbors, to.data(), other.data());
  }
}

namespace {

/// World ranks of the neighbours, each once; and which of them are none.
void take_neighbors(MPI_Comm comm, CommInfo& info) {
  std::vector<int> to, from;
  find_neighbors(comm, info, to, from);
  for (std::size_t i = 0; i < std::min(to.size(), kMaxNowhere); ++i) {
    if (to[i] == MPI_PROC_NULL) info.nowhere |= std::uint64_t{1} << i;
  }
  to.insert(to.end(), from.begin(), from.end());
  std::vector<std::int32_t>& partners = info.partners;
  for (const int rank : to) {
    if (rank >= 0 && static_cast<std::size_t>(rank) < info.world.size()) partners.push_back(info.world[static_cast<std::size_t>(rank)]);
  }
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
}

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
  info.rank = -1;
  mpi.comm_rank(comm, &info.rank);
  if (info.rank < 0) throw std::invalid_argument("freed: a library may return success once the program's error handler was called");
  mpi.comm_test_inter(comm, &inter);
  mpi.comm_size(comm, &info.size);
  info.peers = info.size;
  MPI_Group group = MPI_GROUP_NULL;
  info.inter = inter != 0;
  if (info.inter) {
    mpi.comm_remote_size(comm, &info.peers);
    mpi.comm_remote_group(comm, &group);
  } else {
    mpi.comm_group(comm, &group);
    info.topology = topology_of(comm);
    int weighted = 0;
    if (info.topology == MPI_GRAPH) mpi.graph_neighbors_count(comm, info.rank, &info.neighbors);
    if (info.topology == MPI_CART) {
      int dimensions = 0;
      mpi.cartdim_get(comm, &dimensions);
      info.neighbors = 2 * dimensions;
    }
    info.in_neighbors = info.neighbors;
    if (info.topology == MPI_DIST_GRAPH) mpi.dist_graph_neighbors_count(comm, &info.in_neighbors, &info.neighbors, &weighted);
  }
  info.world = runtime().world.ranks(mpi, group, info.peers);
  mpi.group_free(&group);
  if (info.neighbors + info.in_neighbors != 0) take_neighbors(comm, info);
  // Ranks that were spawned, or that it connected to, have a page of their own and wake nobody here.
  const bool strangers = std::find(info.world.begin(), info.world.end(), -1) != info.world.end();
  if (!strangers) info.members = number_of(info.world);
  if (strangers) runtime().whole_job_here.store(false, std::memory_order_relaxed);
  if (runtime().tracer.active()) find_members(info, members, comm);
}

std::uint32_t CommTable::size_of(std::uint32_t id) noexcept {
  return id < kRememberedSizes ? g_sizes[id].load(std::memory_order_relaxed) : 0;
}

void CommTable::keep_topology(MPI_Comm made, int topology) noexcept try {
  if (made == MPI_COMM_NULL || topology == MPI_UNDEFINED) return;
  const WholeLock lock(mutex_);
  topologies_[handle_key(made)] = topology;
} catch (...) {
  // Its neighbours stay unknown.
}

int CommTable::topology_of(MPI_Comm comm) noexcept {
  const WholeLock lock(mutex_);
  const auto found = topologies_.find(handle_key(comm));
  return found != topologies_.end() ? found->second : MPI_UNDEFINED;
}

void CommTable::forget(MPI_Comm comm) noexcept {
  {
    const WholeLock lock(mutex_);
    topologies_.erase(handle_key(comm));
  }
  drop(handle_key(comm) + 1);
}

void CommTable::drop(std::uint64_t key) noexcept {
  const WholeLock lock(mutex_);
  Slots& slots = *slots_.load(std::memory_order_relaxed);
  std::size_t i = slots.first(key);
  for (std::uint64_t found; (found = slots.at[i].key.load(std::memory_order_relaxed)) != key; i = slots.after(i)) {
    if (found == 0) return;
  }
  free_.push_back(slots.at[i].info.load(std::memory_order_relaxed));
  slots.at[i].key.store(kTombstone, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  // Nobody looks on from a slot whose next one is empty, so it may be empty as well: what comes and goes does not fill the table.
  if (slots.at[slots.after(i)].key.load(std::memory_order_relaxed) != 0) return;
  for (; slots.at[i].key.load(std::memory_order_relaxed) == kTombstone; i = (i - 1) & (slots.count - 1)) {
    slots.at[i].key.store(0, std::memory_order_release);
    --used_;
  }
}

}  // namespace fallow::pmpi
