// How slow this core is at interpreting: a loop of an interpreter has no length of its own, it takes what the machine makes of it.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace fallow::pmpi {

/// Runs a small program of a byte code, some 200 steps long, that begins with `seed`. Returns what it computes.
std::uint32_t interpret(std::uint32_t seed) noexcept;

/// How many times as long it takes on this core now as where the limit of Python's loops was measured: the shortest of a few runs, a
/// microsecond together. No less than 1: a faster core is no reason to take a loop for work.
double slowness_of_interpreting(const TickClock& clock) noexcept;

}  // namespace fallow::pmpi
