// Which loaded objects belong to the MPI library: calls from there are its own business.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace fallow::pmpi {

class MpiModules {
 public:
  /// True if the address lies in the MPI library, its Fortran layer, its plug-ins or what it is built on. The first
  /// question about an object asks the dynamic linker; the answer is kept.
  bool contains(const void* address) noexcept;

 private:
  struct Range {
    std::uint64_t begin, end;
    bool mpi;
  };
  std::array<Range, 64> ranges_{};
  std::atomic<std::uint32_t> used_{0};
  std::mutex mutex_;
};

}  // namespace fallow::pmpi
