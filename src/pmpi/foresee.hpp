// Brings the forecast up to the calls of its thread, from the events that lie in the thread's ring.
#pragma once

#include <cstdint>

#include "pmpi/thread_state.hpp"

namespace fallow::pmpi {

/// While the thread waits: learns its last `most` calls, and passes over what was before them.
void foresee(Thread& thread, std::uint32_t most) noexcept;

/// The last call in the ring, which came from there, has ended just now, and somebody wants to know how long its gap lasts.
void foresee_gap(Thread& thread, const void* caller) noexcept;

}  // namespace fallow::pmpi
