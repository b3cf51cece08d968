// Algorithms along a ring, and the gathering ones whose partners are neighbours on it.
#include <algorithm>

#include "coll/families.hpp"

namespace fallow::coll::detail {
namespace {

std::uint64_t block(const Shape& s, std::uint32_t b) noexcept { return cut(s.bytes, s.size, b + 1) - cut(s.bytes, s.size, b); }

/// Block `out` goes to the right, the one before it comes from the left.
Step pass(const Shape& s, std::uint32_t out) noexcept {
  Step step;
  step.to = plus(s.rank, 1, s.size);
  step.from = minus(s.rank, 1, s.size);
  step.send_bytes = block(s, out);
  step.recv_bytes = block(s, minus(out, 1, s.size));
  return step;
}

}  // namespace

std::uint32_t ring_steps(const Shape& s) noexcept { return s.size - 1; }

Step allgather_ring_step(const Shape& s, std::uint32_t) noexcept {
  Step step;
  step.to = plus(s.rank, 1, s.size);
  step.from = minus(s.rank, 1, s.size);
  step.send_bytes = step.recv_bytes = s.bytes;
  return step;
}

std::uint32_t allreduce_ring_steps(const Shape& s) noexcept { return 2 * (s.size - 1); }

Step allreduce_ring_step(const Shape& s, std::uint32_t k) noexcept {
  if (k >= s.size - 1) return pass(s, minus(plus(s.rank, 1, s.size), k - (s.size - 1), s.size));
  Step step = pass(s, minus(s.rank, k, s.size));
  step.reduce_bytes = step.recv_bytes;
  return step;
}

Step reduce_scatter_ring_step(const Shape& s, std::uint32_t k) noexcept {
  Step step = pass(s, minus(minus(s.rank, 1, s.size), k, s.size));
  step.reduce_bytes = step.recv_bytes;
  return step;
}

std::uint32_t neighbor_steps(const Shape& s) noexcept { return s.size % 2 == 0 ? s.size / 2 : ring_steps(s); }

// Pairs exchange their blocks, then pass two blocks at a time to alternating neighbours (Chen et al., 2005).
Step neighbor_step(const Shape& s, std::uint32_t k) noexcept {
  if (s.size % 2 != 0) return allgather_ring_step(s, k);
  const bool right = ((s.rank & 1) == 0) == ((k & 1) == 0);
  Step step;
  step.to = step.from = right ? plus(s.rank, 1, s.size) : minus(s.rank, 1, s.size);
  step.send_bytes = step.recv_bytes = k == 0 ? s.bytes : 2 * s.bytes;
  return step;
}

std::uint32_t bruck_steps(const Shape& s) noexcept { return log2_ceil(s.size); }

Step allgather_bruck_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t distance = std::uint32_t{1} << k;
  Step step;
  step.to = minus(s.rank, distance, s.size);
  step.from = plus(s.rank, distance, s.size);
  step.send_bytes = step.recv_bytes = s.bytes * std::min(distance, s.size - distance);
  return step;
}

}  // namespace fallow::coll::detail
