// Brings the forecast up to the calls of its thread, from the events that lie in the thread's ring.
#pragma once

#include <cstdint>

#include "pmpi/thread_state.hpp"

namespace fallow::pmpi {

/// While the thread waits: learns its last `most` calls, and passes over what was before them.
void foresee(Thread& thread, std::uint32_t most) noexcept;

/// The last call in the ring has ended just now, and the forecast said that it matters.
void foresee_gap(Thread& thread) noexcept;

}  // namespace fallow::pmpi
