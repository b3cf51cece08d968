// Which algorithm an MPI library would take by default, by operation, size of the communicator and message.
//
// Sources: for Open MPI the fixed decision rules of its "tuned" component, as published by J. Pjesivac-Grbovic
// et al. (IPDPS 2005) and in the library's documentation of coll_tuned parameters; for MPICH R. Thakur et al.
// (IJHPCA 2005) and the descriptions of its MPIR_CVAR_* thresholds. Where a library uses a variant that is not
// here (split binary trees, segmented rings), the nearest one stands for it.
#pragma once

#include "coll/schedule.hpp"

namespace fallow::coll {

enum class Library : std::uint8_t { openmpi, mpich };

/// `bytes` as in Shape::bytes. Pure.
Algorithm choose(Library library, Operation operation, std::uint32_t size, std::uint64_t bytes) noexcept;

/// Segment of a pipeline for this size, bytes.
std::uint64_t segment_of(Library library, std::uint64_t bytes) noexcept;

}  // namespace fallow::coll
