// What a thread knows of communicators and datatypes without asking the MPI library again.
#pragma once

#include <cstdint>

#include "pmpi/runtime.hpp"

/// A wrapper is entered for every message, and compilers grow shy of inlining in a file of hundreds of them.
#define FALLOW_HOT __attribute__((always_inline)) inline

namespace fallow::pmpi {

std::uint64_t type_size_slow(Thread& thread, MPI_Datatype type, TypeSlot& slot) noexcept;
const CommInfo* comm_info_slow(Thread& thread, MPI_Comm comm) noexcept;

template <class Integer>
inline std::uint64_t size_as_u64(Integer n) noexcept {
  return n > 0 ? static_cast<std::uint64_t>(n) : 0;
}

/// Null if the table is full.
inline const CommInfo* comm_info(Thread& thread, MPI_Comm comm) noexcept {
  if (thread.last_comm == handle_key(comm) && thread.comm_generation == runtime().comms.generation()) [[likely]] {
    return thread.last_info;
  }
  return comm_info_slow(thread, comm);
}

/// As events have it; 0 if the table is full.
inline std::uint16_t comm_id(Thread& thread, MPI_Comm comm) noexcept {
  if (thread.last_comm != handle_key(comm) || thread.comm_generation != runtime().comms.generation()) [[unlikely]] comm_info_slow(thread, comm);
  return comm != MPI_COMM_NULL ? thread.last_comm_id : std::uint16_t{0};
}

/// Ranks that a collective call has to do with.
inline std::int32_t peers_of(Thread& thread, MPI_Comm comm) noexcept {
  const CommInfo* const info = comm_info(thread, comm);
  return info != nullptr ? info->peers : 0;
}

/// Bytes of data in one element.
inline std::uint64_t type_size(Thread& thread, MPI_Datatype type) noexcept {
  const std::uint64_t key = handle_key(type);
  TypeSlot& slot = thread.types[((key >> 4) ^ key) % kTypeSlots];
  if (slot.handle == key && slot.generation == runtime().type_generation.load(std::memory_order_relaxed)) [[likely]] {
    return slot.size;
  }
  return type_size_slow(thread, type, slot);
}

/// What is known of a datatype, by its handle's key; null: nothing.
inline const TypeSlot* known_type(const Thread& thread, std::uint64_t key) noexcept {
  const TypeSlot& slot = thread.types[((key >> 4) ^ key) % kTypeSlots];
  const bool known = slot.handle == key && slot.generation == runtime().type_generation.load(std::memory_order_relaxed);
  return known ? &slot : nullptr;
}

/// Whether so many elements are known to be at most `most` bytes, without asking the library: it may refuse the type, and is to do
/// so in the program's own call, for whose communicator the program has chosen what happens then.
template <class Count>
inline bool is_at_most(std::uint64_t most, const Thread& thread, Count count, MPI_Datatype type) noexcept {
  if (count <= 0) return true;
  const TypeSlot* const known = known_type(thread, handle_key(type));
  return known != nullptr && size_as_u64(count) <= most && size_as_u64(count) * known->size <= most;
}

/// Bytes of so many elements. The type of no data is not asked for: libraries take any then, and their error handlers would
/// end the program.
template <class Count>
inline std::uint64_t data_size(Thread& thread, Count count, MPI_Datatype type) noexcept {
  return count > 0 && type != MPI_DATATYPE_NULL ? size_as_u64(count) * type_size(thread, type) : 0;
}

/// A window was made over the communicator.
inline void made_window(Thread& thread, MPI_Win win, MPI_Comm comm) noexcept {
  if (const CommInfo* const info = comm_info(thread, comm); info != nullptr) runtime().window_ranks.made(handle_key(win), info->world);
}

// A handle is being freed, or was just given to something new: its value may have meant something else before.
inline void forget_comm(MPI_Comm comm) noexcept {
  runtime().comms.forget(comm);
  runtime().handle_generation.fetch_add(1, std::memory_order_relaxed);
}
/// A communicator was made, with this topology (MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH) or MPI_UNDEFINED.
inline void made_comm(MPI_Comm comm, int topology) noexcept {
  forget_comm(comm);
  runtime().comms.keep_topology(comm, topology);
}
inline void copied_comm(MPI_Comm copy, MPI_Comm comm) noexcept { made_comm(copy, runtime().comms.topology_of(comm)); }
inline void forget_win(MPI_Win win) noexcept { runtime().window_ranks.forget(handle_key(win)); }
inline void forget_request(MPI_Request request) noexcept { runtime().prepared.freed(handle_key(request)); }
inline void forget_type(MPI_Datatype) noexcept {
  runtime().type_generation.fetch_add(1, std::memory_order_relaxed);
  runtime().handle_generation.fetch_add(1, std::memory_order_relaxed);
}
#ifdef MPI_SESSION_NULL
inline void forget_session(MPI_Session session) noexcept { runtime().world.end(session); }
#endif

}  // namespace fallow::pmpi
