// What is done with whole trace files: merge parts into one, and write any source, or a cut of it, as a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trace/file_reader.hpp"
#include "trace/file_writer.hpp"
#include "trace/look.hpp"

namespace fallow::trace {

/// Told from time to time how many bytes of how many are done; what it throws ends the work.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Puts the parts of a run into the one file `out`, without unpacking them. Throws TraceFileError; `out` is removed then.
void merge_trace(const TraceReader& parts, const std::string& out, const Progress& progress = {});

struct CutOptions {
  std::uint64_t from_ns = 0, to_ns = ~std::uint64_t{0};  ///< calls that begin in [from, to)
  std::vector<std::uint32_t> ranks;                      ///< empty: all. Others stay in the trace without events
  Look look = {};
};

/// Writes the events of `source` as one merged file; from_ns becomes its 0. Throws TraceFileError.
void write_trace(EventSource& source, const std::string& out, const CutOptions& cut = {});

}  // namespace fallow::trace
