// The first thread that calls MPI, most often the only one: what its calls touch lies at fixed addresses of this library. Any other way to
// it goes through memory (the offset of a thread-local variable, that variable, what it points to), and where the program has computed since
// the last call each step is a miss of all caches that waits for the one before (docs/adr/0047).
#pragma once

#include <atomic>
#include <cstddef>

#include "pmpi/preload/preload.h"
#include "pmpi/thread_state.hpp"

namespace fallow::pmpi {

struct alignas(4096) FirstThread {
  void* owner = nullptr;  ///< its thread pointer. All threads look at it: what the first one writes to is not beside it
  alignas(128) fallow_tls_block block{};  ///< in place of `fallow_tls`
  alignas(Thread) std::byte thread[sizeof(Thread)]{};
};
__attribute__((visibility("hidden"))) extern FirstThread g_first asm("fallow_first");  // known to the entries of calls, see repeated_call.hpp

inline Thread* first_thread() noexcept { return reinterpret_cast<Thread*>(g_first.thread); }

/// What tells threads apart (System V ABI for x86-64, thread-local storage). Libraries read what lies beside it in their own calls.
inline void* thread_pointer() noexcept {
  void* pointer;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

/// What is known of the call that the calling thread makes.
inline fallow_tls_block& this_thread() noexcept {
  if (thread_pointer() == std::atomic_ref(g_first.owner).load(std::memory_order_relaxed)) [[likely]] return g_first.block;
  asm volatile("");  // so that it is a branch, which processors foresee: a choice of addresses would have to wait for the comparison
  return fallow_tls;
}

/// Null if there is no memory. The first that is made is that of the first thread.
Thread* make_thread() noexcept;
void dispose_of(Thread* thread) noexcept;

/// The calling thread's is first_thread(): its block is the first thread's from now on. `known`: see fallow_preload_api.
void own_first_block(fallow_known_thread& known) noexcept;
/// The calling thread ends: another one may get the same thread pointer.
void disown_first_block() noexcept;
/// The calling thread is the only one of a child: if it is not the first one there is none any more, but another may get its thread pointer.
void forget_first_of_parent() noexcept;

}  // namespace fallow::pmpi
