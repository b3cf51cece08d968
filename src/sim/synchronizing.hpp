// What calls of MPI have to wait for, and what they may wait for.
#pragma once

#include "trace/op.hpp"

namespace fallow::sim {

using trace::makes_topology;

/// Calls that wait for the whole communicator without moving data worth counting.
inline bool synchronizes(trace::Op op) noexcept {
  using trace::Op;
  switch (op) {
    case Op::win_fence:
    case Op::win_create:
    case Op::win_create_dynamic:
    case Op::win_allocate:
    case Op::win_allocate_shared:
    case Op::win_free:
    case Op::comm_dup:
    case Op::comm_dup_with_info:
    case Op::comm_split:
    case Op::comm_split_type:
    case Op::comm_create: return true;
    default: return makes_topology(op);
  }
}

/// Calls that first do something of their own, which waits for no call of another rank, and then may wait for all ranks.
inline bool synchronizes_after(trace::Op op) noexcept {
  const bool all = trace::has(op, trace::kOpCollective) && trace::has(op, trace::kOpBlocks);
  return op == trace::Op::win_fence || (all && trace::traits(op).kind == trace::OpKind::io);
}

/// Blocking calls that libraries may end before any other rank has come, or long before all have: it depends on their algorithms and limits.
inline bool may_end_early(trace::Op op) noexcept {
  using trace::Op;
  switch (op) {
    case Op::send:
    case Op::rsend:
    case Op::bcast:
    case Op::reduce:
    case Op::gather:
    case Op::gatherv:
    case Op::scatter:
    case Op::scatterv:
    case Op::scan:
    case Op::exscan:
    case Op::reduce_scatter:  // from here on, who takes nothing from the others
    case Op::allgatherv:
    case Op::alltoallv:
    case Op::alltoallw: return true;
    default: return synchronizes_after(op);  // which the standard does not ask to wait for others: by assertions of the fence, by file system
  }
}

}  // namespace fallow::sim
