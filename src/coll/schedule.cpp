#include "coll/schedule.hpp"

#include "coll/families.hpp"

namespace fallow::coll {
namespace {

struct Row {
  Operation operation;
  const char* name;
  detail::Count count;
  detail::At at;
};

using enum Operation;
using namespace detail;

/// In the order of Algorithm.
constexpr Row kRows[kAlgorithms] = {
    {barrier, "dissemination", dissemination_steps, dissemination_step},
    {barrier, "recursive-doubling", doubling_steps, doubling_step},
    {bcast, "binomial", tree_down_steps, bcast_binomial_step},
    {bcast, "scatter-allgather", bcast_ring_steps, bcast_ring_step},
    {bcast, "scatter-doubling", bcast_doubling_steps, bcast_doubling_step},
    {bcast, "chain", chain_steps, chain_step},
    {reduce, "binomial", tree_down_steps, reduce_binomial_step},
    {reduce, "scatter-gather", reduce_halving_steps, reduce_halving_step},
    {allreduce, "recursive-doubling", doubling_steps, doubling_step},
    {allreduce, "ring", allreduce_ring_steps, allreduce_ring_step},
    {allreduce, "rabenseifner", rabenseifner_steps, rabenseifner_step},
    {gather, "binomial", tree_down_steps, gather_binomial_step},
    {gather, "linear", linear_steps, gather_linear_step},
    {scatter, "binomial", tree_down_steps, scatter_binomial_step},
    {scatter, "linear", linear_steps, scatter_linear_step},
    {allgather, "ring", ring_steps, allgather_ring_step},
    {allgather, "bruck", bruck_steps, allgather_bruck_step},
    {allgather, "recursive-doubling", gather_doubling_steps, gather_doubling_step},
    {allgather, "neighbor-exchange", neighbor_steps, neighbor_step},
    {alltoall, "linear", ring_steps, alltoall_linear_step},
    {alltoall, "pairwise", ring_steps, alltoall_pairwise_step},
    {alltoall, "bruck", bruck_steps, alltoall_bruck_step},
    {reduce_scatter, "recursive-halving", halving_steps, halving_step},
    {reduce_scatter, "ring", ring_steps, reduce_scatter_ring_step},
    {scan, "doubling", scan_steps, scan_step},
    {scan, "linear", scan_linear_steps, scan_linear_step},
};

constexpr const char* kOperationNames[kOperations] = {"barrier",   "bcast",    "reduce",         "allreduce", "gather", "scatter",
                                                      "allgather", "alltoall", "reduce_scatter", "scan",      "exscan"};

const Row& row(Algorithm algorithm) noexcept { return kRows[static_cast<int>(algorithm)]; }

}  // namespace

Operation operation_of(Algorithm algorithm) noexcept { return row(algorithm).operation; }
const char* name_of(Algorithm algorithm) noexcept { return row(algorithm).name; }
const char* name_of(Operation operation) noexcept { return kOperationNames[static_cast<int>(operation)]; }

std::uint32_t step_count(Algorithm algorithm, const Shape& shape) noexcept {
  return shape.size <= 1 ? 0 : row(algorithm).count(shape);
}

Step step_at(Algorithm algorithm, const Shape& shape, std::uint32_t k) noexcept { return row(algorithm).at(shape, k); }

}  // namespace fallow::coll
