// Programs that were never recorded: their calls are computed when asked for, so that any number of ranks needs no
// storage beyond a few words each. A generator is one function in synth.cpp's table.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "trace/event.hpp"

namespace fallow::sim {

struct SynthOptions {
  std::uint32_t ranks = 64;
  std::uint32_t iterations = 100;
  std::uint64_t bytes = 8192;            ///< of a message to a neighbour, of the vector of fft and alltoall per pair
  std::uint64_t reduce_bytes = 8;
  Nanoseconds compute{1'000'000};        ///< per iteration
  double jitter = 0;                     ///< computation varies evenly by this share up and down
  std::uint64_t seed = 1;
};

struct SynthInfo {
  const char* name;
  const char* help;
};

/// stencil3d, cg, fft, alltoall, random.
std::span<const SynthInfo> synth_programs() noexcept;

/// Throws std::invalid_argument if there is no such program or the options are out of range.
std::unique_ptr<trace::EventSource> synthesize(std::string_view program, const SynthOptions& options);

}  // namespace fallow::sim
