// Every MPI operation that a trace tells apart, what each does, and the names of both. Numbers are part of the
// trace file: append, never reorder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/rank_file.hpp"

namespace fallow::trace {

/// What an operation does, as bits.
enum OpBits : std::uint32_t {
  kOpBlocks = 1u << 0,      ///< may wait inside for another rank
  kOpSends = 1u << 1,       ///< moves data to `peer` (for start, startall: whatever the request was made for)
  kOpReceives = 1u << 2,    ///< takes data from `peer`, or from `recv_peer` where it sends as well
  kOpCreates = 1u << 3,     ///< creates requests
  kOpStarts = 1u << 4,      ///< data moves from here on: blocking and non-blocking calls, start, startall
  kOpPersistent = 1u << 5,  ///< creates persistent requests (the data moves with start)
  kOpCompletes = 1u << 6,   ///< may complete requests
  kOpCollective = 1u << 7,  ///< every rank of the communicator takes part
  kOpRooted = 1u << 8,      ///< `root` has a meaning
  kOpVector = 1u << 9,      ///< may have counts per peer
  kOpNeighbor = 1u << 10,   ///< data goes along the communicator's topology
  kOpReduces = 1u << 11,    ///< combines data by an operator
  kOpPartitioned = 1u << 12,
  kOpSynchronous = 1u << 13,///< the send completes only when matched (ssend)
};

// X(enumerator, MPI name, OpKind, bits, blocking form)
#define FALLOW_P2P_OPS(X)                                                                               \
  X(send, "MPI_Send", send, kOpBlocks | kOpSends | kOpStarts, send)                                     \
  X(ssend, "MPI_Ssend", send, kOpBlocks | kOpSends | kOpStarts | kOpSynchronous, ssend)                 \
  X(rsend, "MPI_Rsend", send, kOpBlocks | kOpSends | kOpStarts, rsend)                                  \
  X(bsend, "MPI_Bsend", send, kOpBlocks | kOpSends | kOpStarts, bsend)                                  \
  X(recv, "MPI_Recv", recv, kOpBlocks | kOpReceives | kOpStarts, recv)                                  \
  X(mrecv, "MPI_Mrecv", recv, kOpBlocks | kOpReceives | kOpStarts, mrecv)                               \
  X(sendrecv, "MPI_Sendrecv", recv, kOpBlocks | kOpSends | kOpReceives | kOpStarts, sendrecv)           \
  X(sendrecv_replace, "MPI_Sendrecv_replace", recv, kOpBlocks | kOpSends | kOpReceives | kOpStarts, sendrecv_replace) \
  X(isend, "MPI_Isend", start, kOpSends | kOpCreates | kOpStarts, send)                                 \
  X(issend, "MPI_Issend", start, kOpSends | kOpCreates | kOpStarts | kOpSynchronous, ssend)             \
  X(irsend, "MPI_Irsend", start, kOpSends | kOpCreates | kOpStarts, rsend)                              \
  X(ibsend, "MPI_Ibsend", start, kOpSends | kOpCreates | kOpStarts, bsend)                              \
  X(irecv, "MPI_Irecv", start, kOpReceives | kOpCreates | kOpStarts, recv)                              \
  X(imrecv, "MPI_Imrecv", start, kOpReceives | kOpCreates | kOpStarts, mrecv)                           \
  X(isendrecv, "MPI_Isendrecv", start, kOpSends | kOpReceives | kOpCreates | kOpStarts, sendrecv)       \
  X(isendrecv_replace, "MPI_Isendrecv_replace", start, kOpSends | kOpReceives | kOpCreates | kOpStarts, sendrecv_replace) \
  X(send_init, "MPI_Send_init", start, kOpSends | kOpCreates | kOpPersistent, send)                     \
  X(ssend_init, "MPI_Ssend_init", start, kOpSends | kOpCreates | kOpPersistent | kOpSynchronous, ssend) \
  X(rsend_init, "MPI_Rsend_init", start, kOpSends | kOpCreates | kOpPersistent, rsend)                  \
  X(bsend_init, "MPI_Bsend_init", start, kOpSends | kOpCreates | kOpPersistent, bsend)                  \
  X(recv_init, "MPI_Recv_init", start, kOpReceives | kOpCreates | kOpPersistent, recv)                  \
  X(psend_init, "MPI_Psend_init", start, kOpSends | kOpCreates | kOpPersistent | kOpPartitioned, send)  \
  X(precv_init, "MPI_Precv_init", start, kOpReceives | kOpCreates | kOpPersistent | kOpPartitioned, recv) \
  X(start, "MPI_Start", start, kOpStarts, start)                                                        \
  X(startall, "MPI_Startall", start, kOpStarts, startall)                                               \
  X(pready, "MPI_Pready", start, kOpPartitioned, pready)                                                \
  X(pready_range, "MPI_Pready_range", start, kOpPartitioned, pready_range)                              \
  X(pready_list, "MPI_Pready_list", start, kOpPartitioned, pready_list)                                 \
  X(parrived, "MPI_Parrived", test, kOpPartitioned, parrived)                                           \
  X(wait, "MPI_Wait", wait, kOpBlocks | kOpCompletes, wait)                                             \
  X(waitall, "MPI_Waitall", wait, kOpBlocks | kOpCompletes, waitall)                                    \
  X(waitany, "MPI_Waitany", wait, kOpBlocks | kOpCompletes, waitany)                                    \
  X(waitsome, "MPI_Waitsome", wait, kOpBlocks | kOpCompletes, waitsome)                                 \
  X(test, "MPI_Test", test, kOpCompletes, test)                                                         \
  X(testall, "MPI_Testall", test, kOpCompletes, testall)                                                \
  X(testany, "MPI_Testany", test, kOpCompletes, testany)                                                \
  X(testsome, "MPI_Testsome", test, kOpCompletes, testsome)                                             \
  X(request_get_status, "MPI_Request_get_status", test, 0, request_get_status)                          \
  X(request_get_status_all, "MPI_Request_get_status_all", test, 0, request_get_status_all)              \
  X(request_get_status_any, "MPI_Request_get_status_any", test, 0, request_get_status_any)              \
  X(request_get_status_some, "MPI_Request_get_status_some", test, 0, request_get_status_some)           \
  X(request_free, "MPI_Request_free", other, 0, request_free)                                           \
  X(cancel, "MPI_Cancel", start, 0, cancel)                                                             \
  X(probe, "MPI_Probe", probe, kOpBlocks, probe)                                                        \
  X(iprobe, "MPI_Iprobe", test, 0, probe)                                                               \
  X(mprobe, "MPI_Mprobe", probe, kOpBlocks, mprobe)                                                     \
  X(improbe, "MPI_Improbe", test, 0, mprobe)                                                            \
  X(grequest_start, "MPI_Grequest_start", start, kOpCreates, grequest_start)                            \
  X(grequest_complete, "MPI_Grequest_complete", start, 0, grequest_complete)                            \
  X(buffer_detach, "MPI_Buffer_detach", wait, kOpBlocks, buffer_detach)                                 \
  X(buffer_flush, "MPI_Buffer_flush", wait, kOpBlocks, buffer_flush)                                    \
  X(buffer_iflush, "MPI_Buffer_iflush", start, kOpCreates, buffer_flush)

// A collective, its non-blocking and its persistent form.
#define FALLOW_COLLECTIVE(X, name, Title, bits)                                                                       \
  X(name, "MPI_" Title, collective, kOpBlocks | kOpCollective | kOpStarts | (bits), name)                             \
  X(i##name, "MPI_I" #name, start, kOpCollective | kOpCreates | kOpStarts | (bits), name)                             \
  X(name##_init, "MPI_" Title "_init", start, kOpCollective | kOpCreates | kOpPersistent | (bits), name)

#define FALLOW_COLLECTIVE_OPS(X)                                                                                      \
  FALLOW_COLLECTIVE(X, barrier, "Barrier", 0)                                                                         \
  FALLOW_COLLECTIVE(X, bcast, "Bcast", kOpRooted)                                                                     \
  FALLOW_COLLECTIVE(X, reduce, "Reduce", kOpRooted | kOpReduces)                                                      \
  FALLOW_COLLECTIVE(X, allreduce, "Allreduce", kOpReduces)                                                            \
  FALLOW_COLLECTIVE(X, reduce_scatter, "Reduce_scatter", kOpReduces | kOpVector)                                      \
  FALLOW_COLLECTIVE(X, reduce_scatter_block, "Reduce_scatter_block", kOpReduces)                                      \
  FALLOW_COLLECTIVE(X, scan, "Scan", kOpReduces)                                                                      \
  FALLOW_COLLECTIVE(X, exscan, "Exscan", kOpReduces)                                                                  \
  FALLOW_COLLECTIVE(X, gather, "Gather", kOpRooted)                                                                   \
  FALLOW_COLLECTIVE(X, gatherv, "Gatherv", kOpRooted | kOpVector)                                                     \
  FALLOW_COLLECTIVE(X, scatter, "Scatter", kOpRooted)                                                                 \
  FALLOW_COLLECTIVE(X, scatterv, "Scatterv", kOpRooted | kOpVector)                                                   \
  FALLOW_COLLECTIVE(X, allgather, "Allgather", 0)                                                                     \
  FALLOW_COLLECTIVE(X, allgatherv, "Allgatherv", kOpVector)                                                           \
  FALLOW_COLLECTIVE(X, alltoall, "Alltoall", 0)                                                                       \
  FALLOW_COLLECTIVE(X, alltoallv, "Alltoallv", kOpVector)                                                             \
  FALLOW_COLLECTIVE(X, alltoallw, "Alltoallw", kOpVector)                                                             \
  FALLOW_COLLECTIVE(X, neighbor_allgather, "Neighbor_allgather", kOpNeighbor)                                         \
  FALLOW_COLLECTIVE(X, neighbor_allgatherv, "Neighbor_allgatherv", kOpNeighbor | kOpVector)                           \
  FALLOW_COLLECTIVE(X, neighbor_alltoall, "Neighbor_alltoall", kOpNeighbor)                                           \
  FALLOW_COLLECTIVE(X, neighbor_alltoallv, "Neighbor_alltoallv", kOpNeighbor | kOpVector)                             \
  FALLOW_COLLECTIVE(X, neighbor_alltoallw, "Neighbor_alltoallw", kOpNeighbor | kOpVector)

#define FALLOW_RMA_OPS(X)                                                                        \
  X(put, "MPI_Put", rma, kOpSends | kOpStarts, put)                                              \
  X(get, "MPI_Get", rma, kOpReceives | kOpStarts, get)                                           \
  X(accumulate, "MPI_Accumulate", rma, kOpSends | kOpStarts | kOpReduces, accumulate)            \
  X(get_accumulate, "MPI_Get_accumulate", rma, kOpSends | kOpReceives | kOpStarts | kOpReduces, get_accumulate)    \
  X(fetch_and_op, "MPI_Fetch_and_op", rma, kOpSends | kOpReceives | kOpStarts | kOpReduces, fetch_and_op)          \
  X(compare_and_swap, "MPI_Compare_and_swap", rma, kOpSends | kOpReceives | kOpStarts, compare_and_swap)           \
  X(rput, "MPI_Rput", rma, kOpSends | kOpCreates | kOpStarts, put)                               \
  X(rget, "MPI_Rget", rma, kOpReceives | kOpCreates | kOpStarts, get)                            \
  X(raccumulate, "MPI_Raccumulate", rma, kOpSends | kOpCreates | kOpStarts | kOpReduces, accumulate)               \
  X(rget_accumulate, "MPI_Rget_accumulate", rma, kOpSends | kOpReceives | kOpCreates | kOpStarts | kOpReduces, get_accumulate) \
  X(win_fence, "MPI_Win_fence", rma_sync, kOpBlocks | kOpCollective, win_fence)                  \
  X(win_start, "MPI_Win_start", rma_sync, kOpBlocks, win_start)                                  \
  X(win_complete, "MPI_Win_complete", rma_sync, kOpBlocks, win_complete)                         \
  X(win_post, "MPI_Win_post", rma_sync, kOpBlocks, win_post)                                     \
  X(win_wait, "MPI_Win_wait", rma_sync, kOpBlocks, win_wait)                                     \
  X(win_test, "MPI_Win_test", rma_sync, 0, win_wait)                                             \
  X(win_lock, "MPI_Win_lock", rma_sync, kOpBlocks, win_lock)                                     \
  X(win_unlock, "MPI_Win_unlock", rma_sync, kOpBlocks, win_unlock)                               \
  X(win_lock_all, "MPI_Win_lock_all", rma_sync, kOpBlocks, win_lock_all)                         \
  X(win_unlock_all, "MPI_Win_unlock_all", rma_sync, kOpBlocks, win_unlock_all)                   \
  X(win_flush, "MPI_Win_flush", rma_sync, kOpBlocks, win_flush)                                  \
  X(win_flush_local, "MPI_Win_flush_local", rma_sync, kOpBlocks, win_flush_local)                \
  X(win_flush_all, "MPI_Win_flush_all", rma_sync, kOpBlocks, win_flush_all)                      \
  X(win_flush_local_all, "MPI_Win_flush_local_all", rma_sync, kOpBlocks, win_flush_local_all)    \
  X(win_sync, "MPI_Win_sync", rma_sync, 0, win_sync)                                             \
  X(win_create, "MPI_Win_create", other, kOpBlocks | kOpCollective, win_create)                  \
  X(win_create_dynamic, "MPI_Win_create_dynamic", other, kOpBlocks | kOpCollective, win_create_dynamic)            \
  X(win_allocate, "MPI_Win_allocate", other, kOpBlocks | kOpCollective, win_allocate)            \
  X(win_allocate_shared, "MPI_Win_allocate_shared", other, kOpBlocks | kOpCollective, win_allocate_shared)         \
  X(win_free, "MPI_Win_free", other, kOpBlocks | kOpCollective, win_free)                        \
  X(win_attach, "MPI_Win_attach", other, 0, win_attach)                                          \
  X(win_detach, "MPI_Win_detach", other, 0, win_detach)

#define FALLOW_SPLIT_IO(X, name, Title)                                                          \
  X(name, "MPI_" Title, io, kOpBlocks | kOpCollective, name)                                     \
  X(name##_begin, "MPI_" Title "_begin", io, kOpCollective, name##_begin)                        \
  X(name##_end, "MPI_" Title "_end", io, kOpBlocks | kOpCollective, name##_end)

#define FALLOW_IO_OPS(X)                                                                         \
  X(file_open, "MPI_File_open", io, kOpBlocks | kOpCollective, file_open)                        \
  X(file_close, "MPI_File_close", io, kOpBlocks | kOpCollective, file_close)                     \
  X(file_delete, "MPI_File_delete", io, 0, file_delete)                                          \
  X(file_set_size, "MPI_File_set_size", io, kOpBlocks | kOpCollective, file_set_size)            \
  X(file_get_size, "MPI_File_get_size", io, 0, file_get_size)                                    \
  X(file_preallocate, "MPI_File_preallocate", io, kOpBlocks | kOpCollective, file_preallocate)   \
  X(file_set_view, "MPI_File_set_view", io, kOpBlocks | kOpCollective, file_set_view)            \
  X(file_sync, "MPI_File_sync", io, kOpBlocks | kOpCollective, file_sync)                        \
  X(file_set_atomicity, "MPI_File_set_atomicity", io, kOpBlocks | kOpCollective, file_set_atomicity) \
  X(file_seek, "MPI_File_seek", io, 0, file_seek)                                                \
  X(file_seek_shared, "MPI_File_seek_shared", io, kOpBlocks | kOpCollective, file_seek_shared)   \
  X(file_read, "MPI_File_read", io, 0, file_read)                                                \
  X(file_read_at, "MPI_File_read_at", io, 0, file_read_at)                                       \
  X(file_read_shared, "MPI_File_read_shared", io, 0, file_read_shared)                           \
  X(file_write, "MPI_File_write", io, 0, file_write)                                             \
  X(file_write_at, "MPI_File_write_at", io, 0, file_write_at)                                    \
  X(file_write_shared, "MPI_File_write_shared", io, 0, file_write_shared)                        \
  X(file_iread, "MPI_File_iread", io, kOpCreates, file_read)                                     \
  X(file_iread_at, "MPI_File_iread_at", io, kOpCreates, file_read_at)                            \
  X(file_iread_shared, "MPI_File_iread_shared", io, kOpCreates, file_read_shared)                \
  X(file_iread_all, "MPI_File_iread_all", io, kOpCreates | kOpCollective, file_read_all)         \
  X(file_iread_at_all, "MPI_File_iread_at_all", io, kOpCreates | kOpCollective, file_read_at_all)    \
  X(file_iwrite, "MPI_File_iwrite", io, kOpCreates, file_write)                                  \
  X(file_iwrite_at, "MPI_File_iwrite_at", io, kOpCreates, file_write_at)                         \
  X(file_iwrite_shared, "MPI_File_iwrite_shared", io, kOpCreates, file_write_shared)             \
  X(file_iwrite_all, "MPI_File_iwrite_all", io, kOpCreates | kOpCollective, file_write_all)      \
  X(file_iwrite_at_all, "MPI_File_iwrite_at_all", io, kOpCreates | kOpCollective, file_write_at_all) \
  FALLOW_SPLIT_IO(X, file_read_all, "File_read_all")                                             \
  FALLOW_SPLIT_IO(X, file_read_at_all, "File_read_at_all")                                       \
  FALLOW_SPLIT_IO(X, file_read_ordered, "File_read_ordered")                                     \
  FALLOW_SPLIT_IO(X, file_write_all, "File_write_all")                                           \
  FALLOW_SPLIT_IO(X, file_write_at_all, "File_write_at_all")                                     \
  FALLOW_SPLIT_IO(X, file_write_ordered, "File_write_ordered")

#define FALLOW_SETUP_OPS(X)                                                                      \
  X(init, "MPI_Init", setup, kOpBlocks | kOpCollective, init)                                    \
  X(init_thread, "MPI_Init_thread", setup, kOpBlocks | kOpCollective, init_thread)               \
  X(finalize, "MPI_Finalize", setup, kOpBlocks | kOpCollective, finalize)                        \
  X(abort, "MPI_Abort", setup, 0, abort)                                                         \
  X(session_init, "MPI_Session_init", setup, kOpBlocks, session_init)                            \
  X(session_finalize, "MPI_Session_finalize", setup, kOpBlocks, session_finalize)                \
  X(comm_create, "MPI_Comm_create", other, kOpBlocks | kOpCollective, comm_create)               \
  X(comm_create_group, "MPI_Comm_create_group", other, kOpBlocks | kOpCollective, comm_create_group)  \
  X(comm_create_from_group, "MPI_Comm_create_from_group", other, kOpBlocks | kOpCollective, comm_create_from_group) \
  X(comm_dup, "MPI_Comm_dup", other, kOpBlocks | kOpCollective, comm_dup)                        \
  X(comm_dup_with_info, "MPI_Comm_dup_with_info", other, kOpBlocks | kOpCollective, comm_dup_with_info) \
  X(comm_idup, "MPI_Comm_idup", other, kOpCreates | kOpCollective, comm_dup)                     \
  X(comm_idup_with_info, "MPI_Comm_idup_with_info", other, kOpCreates | kOpCollective, comm_dup_with_info) \
  X(comm_split, "MPI_Comm_split", other, kOpBlocks | kOpCollective, comm_split)                  \
  X(comm_split_type, "MPI_Comm_split_type", other, kOpBlocks | kOpCollective, comm_split_type)   \
  X(comm_free, "MPI_Comm_free", other, kOpBlocks | kOpCollective, comm_free)                     \
  X(comm_disconnect, "MPI_Comm_disconnect", setup, kOpBlocks | kOpCollective, comm_disconnect)   \
  X(comm_accept, "MPI_Comm_accept", setup, kOpBlocks | kOpCollective, comm_accept)               \
  X(comm_connect, "MPI_Comm_connect", setup, kOpBlocks | kOpCollective, comm_connect)            \
  X(comm_join, "MPI_Comm_join", setup, kOpBlocks, comm_join)                                     \
  X(comm_spawn, "MPI_Comm_spawn", setup, kOpBlocks | kOpCollective, comm_spawn)                  \
  X(comm_spawn_multiple, "MPI_Comm_spawn_multiple", setup, kOpBlocks | kOpCollective, comm_spawn_multiple) \
  X(intercomm_create, "MPI_Intercomm_create", other, kOpBlocks | kOpCollective, intercomm_create) \
  X(intercomm_create_from_groups, "MPI_Intercomm_create_from_groups", other, kOpBlocks | kOpCollective, intercomm_create_from_groups) \
  X(intercomm_merge, "MPI_Intercomm_merge", other, kOpBlocks | kOpCollective, intercomm_merge)   \
  X(cart_create, "MPI_Cart_create", other, kOpBlocks | kOpCollective, cart_create)               \
  X(cart_sub, "MPI_Cart_sub", other, kOpBlocks | kOpCollective, cart_sub)                        \
  X(graph_create, "MPI_Graph_create", other, kOpBlocks | kOpCollective, graph_create)            \
  X(dist_graph_create, "MPI_Dist_graph_create", other, kOpBlocks | kOpCollective, dist_graph_create) \
  X(dist_graph_create_adjacent, "MPI_Dist_graph_create_adjacent", other, kOpBlocks | kOpCollective, dist_graph_create_adjacent) \
  X(type_free, "MPI_Type_free", other, 0, type_free)                                             \
  X(comm_detach_buffer, "MPI_Comm_detach_buffer", wait, kOpBlocks, comm_detach_buffer)           \
  X(comm_flush_buffer, "MPI_Comm_flush_buffer", wait, kOpBlocks, comm_flush_buffer)              \
  X(comm_iflush_buffer, "MPI_Comm_iflush_buffer", start, kOpCreates, comm_flush_buffer)          \
  X(session_detach_buffer, "MPI_Session_detach_buffer", wait, kOpBlocks, session_detach_buffer)  \
  X(session_flush_buffer, "MPI_Session_flush_buffer", wait, kOpBlocks, session_flush_buffer)     \
  X(session_iflush_buffer, "MPI_Session_iflush_buffer", start, kOpCreates, session_flush_buffer) \
  X(comm_agree, "MPIX_Comm_agree", other, kOpBlocks | kOpCollective, comm_agree)                  \
  X(comm_iagree, "MPIX_Comm_iagree", other, kOpCreates | kOpCollective, comm_agree)               \
  X(comm_shrink, "MPIX_Comm_shrink", other, kOpBlocks | kOpCollective, comm_shrink)               \
  X(comm_revoke, "MPIX_Comm_revoke", other, 0, comm_revoke)

#define FALLOW_OPS(X)                                \
  X(other, "MPI_(other)", other, 0, other)           \
  FALLOW_P2P_OPS(X)                                  \
  FALLOW_COLLECTIVE_OPS(X)                           \
  FALLOW_RMA_OPS(X)                                  \
  FALLOW_IO_OPS(X)                                   \
  FALLOW_SETUP_OPS(X)

/// One MPI operation; the large-count (_c) form is the same operation.
enum class Op : std::uint16_t {
#define X(name, mpi, kind, bits, blocking) name,
  FALLOW_OPS(X)
#undef X
};

struct OpTraits {
  std::string_view name;  ///< "MPI_Allreduce"
  OpKind kind;
  std::uint32_t bits;     ///< OpBits
  Op blocking;            ///< the blocking operation that moves the same data: iallreduce -> allreduce; else itself
};

inline constexpr OpTraits kOpTraits[] = {
#define X(name, mpi, kind, bits, blocking) {mpi, OpKind::kind, (bits), Op::blocking},
    FALLOW_OPS(X)
#undef X
};
inline constexpr std::size_t kOps = sizeof(kOpTraits) / sizeof(kOpTraits[0]);

#undef FALLOW_P2P_OPS
#undef FALLOW_COLLECTIVE
#undef FALLOW_COLLECTIVE_OPS
#undef FALLOW_RMA_OPS
#undef FALLOW_SPLIT_IO
#undef FALLOW_IO_OPS
#undef FALLOW_SETUP_OPS
#undef FALLOW_OPS

/// `op` must be below kOps, as every Op out of a reader is.
constexpr const OpTraits& traits(Op op) noexcept { return kOpTraits[static_cast<std::size_t>(op)]; }
constexpr std::string_view op_name(Op op) noexcept { return traits(op).name; }
constexpr bool has(Op op, std::uint32_t bits) noexcept { return (traits(op).bits & bits) != 0; }

/// They make communicators with a topology: traces tell the neighbours with them.
constexpr bool makes_topology(Op op) noexcept {
  return op == Op::cart_create || op == Op::cart_sub || op == Op::graph_create || op == Op::dist_graph_create || op == Op::dist_graph_create_adjacent;
}

/// Operation of an MPI function: "MPI_Send", "MPI_Send_c", "PMPI_Send", "MPIX_Bcast_init"; Op::other if unknown.
/// Linear in the number of operations: for set-up.
constexpr Op op_from_name(std::string_view name) noexcept {
  if (name.starts_with('P')) name.remove_prefix(1);
  const bool extension = name.starts_with("MPIX_");
  name.remove_prefix(extension ? 5 : name.starts_with("MPI_") ? 4 : 0);
  if (name.ends_with("_c")) name.remove_suffix(2);
  for (std::size_t i = 1; i < kOps; ++i) {
    if (kOpTraits[i].name.substr(kOpTraits[i].name.find('_') + 1) == name) return static_cast<Op>(i);
  }
  return Op::other;
}

}  // namespace fallow::trace
