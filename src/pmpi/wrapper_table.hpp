// What the generated wrappers of a family offer the runtime.
#pragma once

#include <cstdint>
#include <span>

namespace fallow::pmpi {

struct WrapperEntry {
  std::uint16_t op;        ///< index into RankHeader::ops and into the table of next functions
  const char* name;        ///< "MPI_Send"
  std::uint8_t kind;       ///< trace::OpKind
  bool blocks;
  bool counted;            ///< whether its wrapper can count it only, see CountedCalls
  bool asks_own;           ///< whether the next function is the library's own: it has a twin (twins.hpp), or is a test
  void* wrapper;           ///< called as MPI_Send
  void* profiling_wrapper; ///< called as PMPI_Send
};

/// Every wrapper of this family, sorted by name. Generated.
std::span<const WrapperEntry> wrapper_entries() noexcept;

}  // namespace fallow::pmpi
