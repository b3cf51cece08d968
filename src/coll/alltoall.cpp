// Complete exchanges.
#include "coll/families.hpp"

namespace fallow::coll::detail {

Step alltoall_linear_step(const Shape& s, std::uint32_t k) noexcept {
  Step step = alltoall_pairwise_step(s, k);
  step.wait = false;
  return step;
}

Step alltoall_pairwise_step(const Shape& s, std::uint32_t k) noexcept {
  Step step;
  step.to = plus(s.rank, k + 1, s.size);
  step.from = minus(s.rank, k + 1, s.size);
  step.send_bytes = step.recv_bytes = s.bytes;
  return step;
}

// Step k moves every block whose distance has bit k set.
Step alltoall_bruck_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t distance = std::uint32_t{1} << k;
  const std::uint32_t whole = s.size / (2 * distance) * distance;
  const std::uint32_t part = s.size % (2 * distance);
  const std::uint32_t blocks = whole + (part > distance ? part - distance : 0);
  Step step;
  step.to = plus(s.rank, distance, s.size);
  step.from = minus(s.rank, distance, s.size);
  step.send_bytes = step.recv_bytes = s.bytes * blocks;
  return step;
}

}  // namespace fallow::coll::detail
