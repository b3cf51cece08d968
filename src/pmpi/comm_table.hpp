// Communicators by handle: number, size, and which world ranks they hold. Reading takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "pmpi/mpi_header.hpp"
#include "trace/comm_groups.hpp"

namespace fallow::pmpi {

struct CommMembers;

/// Neighbours that may be MPI_PROC_NULL are those in a grid, of which MPI libraries allow no more than 32 dimensions.
inline constexpr std::size_t kMaxNowhere = 64;

struct CommInfo {
  std::uint64_t handle = 0;
  std::uint32_t id = 0;         ///< local number, in the order of first use; 1 is the first
  std::int32_t rank = 0;
  std::int32_t size = 0;        ///< of the local group
  std::int32_t peers = 0;       ///< ranks that data goes to in a collective: remote size of an intercommunicator
  int topology = MPI_UNDEFINED; ///< or MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH
  std::int32_t neighbors = 0;   ///< out-neighbours of the topology
  std::int32_t in_neighbors = 0;
  std::uint64_t nowhere = 0;    ///< bit i: out-neighbour i is MPI_PROC_NULL, as at the edges of a grid
  bool inter = false;
  std::uint32_t members = 0;    ///< tells its ranks, in their order, from those of others, and is the same on all of them; 0: unknown
  std::uint32_t traced = 0;     ///< number in the trace, trace::kCommNone where there is none
  std::vector<std::int32_t> world;  ///< world rank of each peer; empty: unknown
  std::vector<std::int32_t> partners;  ///< world ranks of the neighbours in the topology, as far as they are known

  /// As events have it: the last number stands for all beyond.
  std::uint16_t event_id() const noexcept { return static_cast<std::uint16_t>(id < 0xffff ? id : 0xffff); }
  bool leads_nowhere(std::int32_t neighbor) const noexcept {
    return static_cast<std::size_t>(neighbor) < kMaxNowhere && (nowhere >> neighbor & 1) != 0;
  }
};

/// Neighbours of the caller in the communicator's order, of MPI_PROC_NULL what MPI calls it.
void find_neighbors(MPI_Comm comm, const CommInfo& info, std::vector<int>& to, std::vector<int>& from);

class CommTable {
 public:
  CommTable();

  /// Looks up a communicator that the MPI library has just accepted; registers it at first use (a lock and some
  /// local MPI calls). Null if there is no memory.
  const CommInfo* find(MPI_Comm comm) noexcept;

  /// The same of a handle that the library may yet refuse, and that it is therefore not asked about: null if it was not used before.
  const CommInfo* known(std::uint64_t handle) const noexcept;

  /// Registers a communicator that was just made. One that had the same handle before is gone.
  void insert_made(MPI_Comm made, const trace::CommOrigin& origin) noexcept;
  /// `copy` is being made of `comm`, without its topology, and cannot be asked itself yet.
  void insert_copy(MPI_Comm copy, MPI_Comm comm, const trace::CommOrigin& origin) noexcept;

  /// The handle is being freed: its value may come back for another communicator.
  void forget(MPI_Comm comm) noexcept;

  /// What a communicator has that was just made. The library is not asked: Open MPI (4.1 to 5.0) ascribes the topology of the communicator
  /// that they were made from to some that have none (MPI_Comm_create_group) or another (MPI_Dist_graph_create_adjacent, 5.0),
  /// and crashes when it is asked more about it.
  void keep_topology(MPI_Comm made, int topology) noexcept;
  int topology_of(MPI_Comm comm) noexcept;

  /// Size of the communicator with this number; 0 if there is none.
  static std::uint32_t size_of(std::uint32_t id) noexcept;

  /// Changes with every forget(): pointers taken before it may be stale.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kFirstSlots = 4096;
  static constexpr std::size_t kKept = 64;  ///< freed ones that are left as they are: another thread may be looking at one
  static constexpr std::uint64_t kTombstone = ~std::uint64_t{0};

  struct Slot {
    std::atomic<std::uint64_t> key{0};  ///< handle + 1; 0: empty
    std::atomic<CommInfo*> info{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t n) : count(n), at(std::make_unique<Slot[]>(n)) {}
    std::size_t first(std::uint64_t key) const noexcept;
    std::size_t after(std::size_t i) const noexcept { return (i + 1) & (count - 1); }
    const std::size_t count;  ///< a power of two; a quarter is always empty
    const std::unique_ptr<Slot[]> at;
  };
  const CommInfo* insert(std::uint64_t key, MPI_Comm comm, const trace::CommOrigin& origin) noexcept;
  const CommInfo* put(std::uint64_t key, MPI_Comm comm, std::unique_ptr<CommInfo> filled, const CommMembers& members);
  void fill(CommInfo& info, CommMembers& members, MPI_Comm comm);
  void drop(std::uint64_t key) noexcept;
  void grow();

  std::atomic<Slots*> slots_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slots>> tables_;  ///< the last is in use; others may still be read
  std::vector<std::unique_ptr<CommInfo>> all_;
  std::deque<CommInfo*> free_;
  std::uint32_t next_id_ = 1;
  std::size_t used_ = 0;  ///< slots that are not empty
  std::unordered_map<std::uint64_t, int> topologies_;  ///< by handle, of those that have one
  std::atomic<std::uint32_t> generation_{1};
};

/// A handle as a number, whatever the family's handles are (pointers or integers).
template <class Handle>
std::uint64_t handle_key(Handle handle) noexcept {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uint64_t>(handle);
  } else {
    return static_cast<std::uint32_t>(handle);
  }
}

}  // namespace fallow::pmpi
