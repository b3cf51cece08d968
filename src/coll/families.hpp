// The algorithms by family, for schedule.cpp: `*_steps` counts, `*_step` gives one.
#pragma once

#include <bit>

#include "coll/schedule.hpp"

namespace fallow::coll::detail {

constexpr std::uint32_t log2_floor(std::uint32_t n) noexcept { return static_cast<std::uint32_t>(std::bit_width(n)) - 1; }
constexpr std::uint32_t log2_ceil(std::uint32_t n) noexcept { return n <= 1 ? 0 : log2_floor(n - 1) + 1; }
/// (a + b) mod n for a, b < n.
constexpr std::uint32_t plus(std::uint32_t a, std::uint32_t b, std::uint32_t n) noexcept {
  return a >= n - b ? a - (n - b) : a + b;
}
constexpr std::uint32_t minus(std::uint32_t a, std::uint32_t b, std::uint32_t n) noexcept {
  return a >= b ? a - b : a + (n - b);
}
/// First byte of block `block` when `bytes` are cut into `blocks` as evenly as possible.
constexpr std::uint64_t cut(std::uint64_t bytes, std::uint32_t blocks, std::uint32_t block) noexcept {
  return bytes / blocks * block + bytes % blocks * block / blocks;
}
constexpr std::uint32_t relative(const Shape& s) noexcept { return minus(s.rank, s.root, s.size); }
constexpr std::uint32_t absolute(const Shape& s, std::uint32_t v) noexcept { return plus(v, s.root, s.size); }

using Count = std::uint32_t (*)(const Shape&) noexcept;
using At = Step (*)(const Shape&, std::uint32_t) noexcept;

// doubling.cpp
std::uint32_t dissemination_steps(const Shape& s) noexcept;
Step dissemination_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t doubling_steps(const Shape& s) noexcept;
Step doubling_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t rabenseifner_steps(const Shape& s) noexcept;
Step rabenseifner_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t halving_steps(const Shape& s) noexcept;
Step halving_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t reduce_halving_steps(const Shape& s) noexcept;
Step reduce_halving_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t gather_doubling_steps(const Shape& s) noexcept;
Step gather_doubling_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t scan_steps(const Shape& s) noexcept;
Step scan_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t scan_linear_steps(const Shape& s) noexcept;
Step scan_linear_step(const Shape& s, std::uint32_t k) noexcept;

// tree.cpp
std::uint32_t tree_down_steps(const Shape& s) noexcept;
Step bcast_binomial_step(const Shape& s, std::uint32_t k) noexcept;
Step scatter_binomial_step(const Shape& s, std::uint32_t k) noexcept;
Step reduce_binomial_step(const Shape& s, std::uint32_t k) noexcept;
Step gather_binomial_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t linear_steps(const Shape& s) noexcept;
Step gather_linear_step(const Shape& s, std::uint32_t k) noexcept;
Step scatter_linear_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t chain_steps(const Shape& s) noexcept;
Step chain_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t bcast_ring_steps(const Shape& s) noexcept;
Step bcast_ring_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t bcast_doubling_steps(const Shape& s) noexcept;
Step bcast_doubling_step(const Shape& s, std::uint32_t k) noexcept;

// ring.cpp
std::uint32_t ring_steps(const Shape& s) noexcept;
Step allgather_ring_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t allreduce_ring_steps(const Shape& s) noexcept;
Step allreduce_ring_step(const Shape& s, std::uint32_t k) noexcept;
Step reduce_scatter_ring_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t neighbor_steps(const Shape& s) noexcept;
Step neighbor_step(const Shape& s, std::uint32_t k) noexcept;
std::uint32_t bruck_steps(const Shape& s) noexcept;
Step allgather_bruck_step(const Shape& s, std::uint32_t k) noexcept;

// alltoall.cpp
Step alltoall_linear_step(const Shape& s, std::uint32_t k) noexcept;
Step alltoall_pairwise_step(const Shape& s, std::uint32_t k) noexcept;
Step alltoall_bruck_step(const Shape& s, std::uint32_t k) noexcept;

}  // namespace fallow::coll::detail
