#include "coll/select.hpp"

#include <bit>

namespace fallow::coll {
namespace {

using enum Algorithm;

constexpr std::uint64_t KiB = 1024;

Algorithm openmpi_rooted(Operation operation, std::uint32_t size, std::uint64_t bytes) noexcept {
  switch (operation) {
    case Operation::bcast:
      if (bytes < 2048 || size <= 4) return bcast_binomial;
      return bytes < 370728 ? bcast_scatter_doubling : bcast_chain;
    case Operation::gather: return bytes < 6000 && (size > 60 || (size > 10 && bytes < 1024)) ? gather_binomial : gather_linear;
    case Operation::scatter: return size > 10 && bytes < 300 ? scatter_binomial : scatter_linear;
    default: return reduce_binomial;
  }
}

Algorithm openmpi(Operation operation, std::uint32_t size, std::uint64_t bytes) noexcept {
  const bool power = std::has_single_bit(size);
  switch (operation) {
    case Operation::barrier: return power ? barrier_recursive_doubling : barrier_dissemination;
    case Operation::allreduce: return bytes < 10000 || bytes / 8 < size ? allreduce_recursive_doubling : allreduce_ring;
    case Operation::allgather:
      if (bytes * size < 50000) return power ? allgather_recursive_doubling : allgather_bruck;
      return size % 2 == 0 ? allgather_neighbor_exchange : allgather_ring;
    case Operation::alltoall:
      if (bytes < 200 && size > 12) return alltoall_bruck;
      return bytes < 3000 ? alltoall_linear : alltoall_pairwise;
    case Operation::reduce_scatter:
      return bytes <= 12 * KiB || (power && bytes <= 256 * KiB) ? reduce_scatter_halving : reduce_scatter_ring;
    case Operation::scan:
    case Operation::exscan: return scan_linear;
    default: return openmpi_rooted(operation, size, bytes);
  }
}

Algorithm mpich(Operation operation, std::uint32_t size, std::uint64_t bytes) noexcept {
  const bool power = std::has_single_bit(size);
  switch (operation) {
    case Operation::barrier: return barrier_dissemination;
    case Operation::bcast:
      if (bytes < 12288 || size < 8) return bcast_binomial;
      return bytes < 512 * KiB && power ? bcast_scatter_doubling : bcast_scatter_allgather;
    case Operation::reduce: return bytes > 2048 ? reduce_scatter_gather : reduce_binomial;
    case Operation::allreduce: return bytes <= 2048 ? allreduce_recursive_doubling : allreduce_rabenseifner;
    case Operation::gather: return gather_binomial;
    case Operation::scatter: return scatter_binomial;
    case Operation::allgather:
      if (bytes * size < 512 * KiB && power) return allgather_recursive_doubling;
      return bytes * size < 80 * KiB ? allgather_bruck : allgather_ring;
    case Operation::alltoall:
      if (bytes <= 256 && size >= 8) return alltoall_bruck;
      return bytes <= 32 * KiB ? alltoall_linear : alltoall_pairwise;
    case Operation::reduce_scatter: return bytes < 512 * KiB ? reduce_scatter_halving : reduce_scatter_ring;
    default: return scan_doubling;
  }
}

}  // namespace

Algorithm choose(Library library, Operation operation, std::uint32_t size, std::uint64_t bytes) noexcept {
  return library == Library::openmpi ? openmpi(operation, size, bytes) : mpich(operation, size, bytes);
}

std::uint64_t segment_of(Library, std::uint64_t bytes) noexcept { return bytes < 1024 * KiB ? 16 * KiB : 64 * KiB; }

}  // namespace fallow::coll
