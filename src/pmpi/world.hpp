// Which world rank a member of a group is: by MPI_COMM_WORLD, or where a program starts MPI by sessions alone, by the
// process set that every session has of the same processes.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "pmpi/mpi_header.hpp"
#include "pmpi/pmpi_calls.hpp"

namespace fallow::pmpi {

class World {
 public:
  /// MPI_Init is done: MPI_COMM_WORLD can be asked from now on. `calls` must outlive this.
  void take_comm_world(const PmpiCalls& calls) noexcept;

  /// The group of MPI_COMM_WORLD, which stays; MPI_GROUP_NULL in the sessions model.
  MPI_Group group() const noexcept { return group_; }

  /// World ranks of the group's first `size` members, -1 for those of another world; empty if nothing tells. Local.
  /// Throws std::bad_alloc.
  std::vector<std::int32_t> ranks(const PmpiCalls& calls, MPI_Group group, std::int32_t size);

#ifdef MPI_SESSION_NULL
  /// Rank and size of the world by the process set of a session, if there is one.
  void find_own(const PmpiCalls& calls, std::int32_t& rank, std::int32_t& size) noexcept;
  /// A session is there until the program ends it.
  void begin(MPI_Session session) noexcept;
  void end(MPI_Session session) noexcept;
#endif
  /// MPI_Finalize has returned. Whether MPI is over with it: a session may outlive it.
  bool finalize() noexcept;
  /// Whether MPI was ended: MPI_Finalize was called, or all sessions of a program that uses nothing else have ended.
  bool over() noexcept;

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
  bool finalized_ = false;
#ifdef MPI_SESSION_NULL
  std::mutex mutex_;
  std::vector<MPI_Session> sessions_;
  bool began_ = false;
#endif
};

}  // namespace fallow::pmpi
