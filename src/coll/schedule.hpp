// Collective operations as schedules: which messages a rank exchanges in which step. A step is a pure function
// of (algorithm, shape, number of the step), so that a rank in the middle of a collective needs no more state
// than that number, and so that the simulator and the runtime carry out the same messages.
//
// Whoever carries a schedule out does, for step 0 .. step_count-1: post the receive, start the send, and, if
// `wait` is set, wait for everything started so far; then combine `reduce_bytes`. After the last step it waits
// for everything. Between two ranks messages of one collective arrive in the order in which they were sent.
//
// Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005; J. Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective
// Operations", IPDPS 2005; J. Bruck et al., IEEE TPDS 8(11), 1997.
//
// All functions are pure and safe from any thread or signal.
#pragma once

#include <cstdint>

namespace fallow::coll {

enum class Operation : std::uint8_t {
  barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter, scan, exscan,
};
inline constexpr int kOperations = 11;

enum class Algorithm : std::uint8_t {
  barrier_dissemination,
  barrier_recursive_doubling,
  bcast_binomial,
  bcast_scatter_allgather,       ///< binomial scatter, then ring allgather (van de Geijn)
  bcast_scatter_doubling,        ///< the same with recursive doubling; ring unless the size is a power of two
  bcast_chain,                   ///< pipeline of segments along a chain
  reduce_binomial,
  reduce_scatter_gather,         ///< Rabenseifner: recursive halving, then binomial gather
  allreduce_recursive_doubling,
  allreduce_ring,
  allreduce_rabenseifner,        ///< recursive halving, then recursive doubling
  gather_binomial,
  gather_linear,
  scatter_binomial,
  scatter_linear,
  allgather_ring,
  allgather_bruck,
  allgather_recursive_doubling,  ///< Bruck unless the size is a power of two
  allgather_neighbor_exchange,   ///< ring unless the size is even
  alltoall_linear,               ///< everything at once
  alltoall_pairwise,
  alltoall_bruck,
  reduce_scatter_halving,
  reduce_scatter_ring,
  scan_doubling,
  scan_linear,
};
inline constexpr int kAlgorithms = 26;

inline constexpr std::uint32_t kNobody = 0xffffffff;
inline constexpr std::uint64_t kDefaultSegment = 65536;  ///< bytes of a pipeline's segment

/// One rank's view of one collective.
struct Shape {
  std::uint32_t rank = 0;  ///< in the communicator
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  /// What one rank gives to one rank (gather, scatter, allgather, alltoall), or the whole vector (bcast, reduce,
  /// allreduce, reduce_scatter, scan).
  std::uint64_t bytes = 0;
  std::uint64_t segment = kDefaultSegment;
};

struct Step {
  std::uint32_t to = kNobody;    ///< rank in the communicator
  std::uint32_t from = kNobody;
  std::uint64_t send_bytes = 0;
  std::uint64_t recv_bytes = 0;
  std::uint64_t reduce_bytes = 0;  ///< combined once the receive is complete
  bool wait = true;
};

Operation operation_of(Algorithm algorithm) noexcept;
const char* name_of(Algorithm algorithm) noexcept;
const char* name_of(Operation operation) noexcept;

/// Number of steps of this rank; 0 for one rank alone.
std::uint32_t step_count(Algorithm algorithm, const Shape& shape) noexcept;

/// Step `k` < step_count. It may be empty (nobody to send to or to receive from).
Step step_at(Algorithm algorithm, const Shape& shape, std::uint32_t k) noexcept;

}  // namespace fallow::coll
