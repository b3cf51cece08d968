// Algorithms along a tree or chain from or to a root.
#include <algorithm>

#include "coll/families.hpp"

namespace fallow::coll::detail {
namespace {

/// The bit by which a rank hangs below its parent; for the root the first power of two not below the size.
std::uint32_t low_bit(const Shape& s, std::uint32_t v) noexcept {
  return v == 0 ? std::uint32_t{1} << log2_ceil(s.size) : v & (~v + 1);
}

/// Ranks in the subtree of `v`, itself included.
std::uint32_t subtree(const Shape& s, std::uint32_t v) noexcept { return std::min(low_bit(s, v), s.size - v); }

/// Bytes of the blocks that a scatter over `s.bytes` in all moves to the subtree of `v`.
std::uint64_t subtree_bytes(const Shape& s, std::uint32_t v) noexcept {
  return cut(s.bytes, s.size, v + subtree(s, v)) - cut(s.bytes, s.size, v);
}

/// Step k down the binomial tree: 0 receives from the parent, the next ones send to the children, largest first.
template <class BytesOf>
Step down(const Shape& s, std::uint32_t k, BytesOf bytes_of) noexcept {
  const std::uint32_t v = relative(s);
  const std::uint32_t low = low_bit(s, v);
  Step step;
  if (k == 0) {
    if (v == 0) return step;
    step.from = absolute(s, v - low);
    step.recv_bytes = bytes_of(v);
    return step;
  }
  const std::uint32_t child = v + (low >> k);
  if (child >= s.size) return step;
  step.to = absolute(s, child);
  step.send_bytes = bytes_of(child);
  return step;
}

template <class BytesOf>
Step up(const Shape& s, std::uint32_t k, BytesOf bytes_of) noexcept {
  const Step mirror = down(s, tree_down_steps(s) - 1 - k, bytes_of);
  Step step;
  step.to = mirror.from;
  step.send_bytes = mirror.recv_bytes;
  step.from = mirror.to;
  step.recv_bytes = mirror.send_bytes;
  return step;
}

/// A step of the second half of a broadcast, in which every rank sends and receives, with partners counted from the root.
Step turn_back(const Shape& s, Step step) noexcept {
  step.to = absolute(s, step.to);
  step.from = absolute(s, step.from);
  return step;
}

}  // namespace

std::uint32_t tree_down_steps(const Shape& s) noexcept { return log2_floor(low_bit(s, relative(s))) + 1; }

Step bcast_binomial_step(const Shape& s, std::uint32_t k) noexcept {
  return down(s, k, [&](std::uint32_t) { return s.bytes; });
}

Step scatter_binomial_step(const Shape& s, std::uint32_t k) noexcept {
  return down(s, k, [&](std::uint32_t v) { return s.bytes * subtree(s, v); });
}

Step reduce_binomial_step(const Shape& s, std::uint32_t k) noexcept {
  Step step = up(s, k, [&](std::uint32_t) { return s.bytes; });
  step.reduce_bytes = step.recv_bytes;
  return step;
}

Step gather_binomial_step(const Shape& s, std::uint32_t k) noexcept {
  return up(s, k, [&](std::uint32_t v) { return s.bytes * subtree(s, v); });
}

std::uint32_t linear_steps(const Shape& s) noexcept { return s.rank == s.root ? s.size - 1 : 1; }

Step scatter_linear_step(const Shape& s, std::uint32_t k) noexcept {
  Step step;
  if (s.rank == s.root) {
    step.to = absolute(s, k + 1);
    step.send_bytes = s.bytes;
    step.wait = false;
  } else {
    step.from = s.root;
    step.recv_bytes = s.bytes;
  }
  return step;
}

Step gather_linear_step(const Shape& s, std::uint32_t k) noexcept {
  Step step;
  if (s.rank == s.root) {
    step.from = absolute(s, k + 1);
    step.recv_bytes = s.bytes;
    step.wait = false;
  } else {
    step.to = s.root;
    step.send_bytes = s.bytes;
  }
  return step;
}

// Step k receives segment k and passes segment k - 1 on.
std::uint32_t chain_steps(const Shape& s) noexcept {
  const std::uint64_t segment = std::max<std::uint64_t>(s.segment, 1);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (s.bytes + segment - 1) / segment)) + 1;
}

Step chain_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t v = relative(s);
  const std::uint32_t segments = chain_steps(s) - 1;
  const auto bytes_of = [&](std::uint32_t i) { return std::min(s.segment, s.bytes - std::min(s.bytes, s.segment * i)); };
  Step step;
  if (v > 0 && k < segments) {
    step.from = absolute(s, v - 1);
    step.recv_bytes = bytes_of(k);
  }
  if (v + 1 < s.size && k > 0) {
    step.to = absolute(s, v + 1);
    step.send_bytes = bytes_of(k - 1);
  }
  return step;
}

std::uint32_t bcast_ring_steps(const Shape& s) noexcept { return tree_down_steps(s) + s.size - 1; }

// Scatter the vector's blocks down the tree, then pass them round.
Step bcast_ring_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t scatter = tree_down_steps(s);
  if (k < scatter) return down(s, k, [&](std::uint32_t v) { return subtree_bytes(s, v); });
  k -= scatter;
  const std::uint32_t v = relative(s);
  const std::uint32_t out = minus(v, k, s.size);
  const std::uint32_t in = minus(out, 1, s.size);
  Step step;
  step.to = plus(v, 1, s.size);
  step.from = minus(v, 1, s.size);
  step.send_bytes = cut(s.bytes, s.size, out + 1) - cut(s.bytes, s.size, out);
  step.recv_bytes = cut(s.bytes, s.size, in + 1) - cut(s.bytes, s.size, in);
  return turn_back(s, step);
}

std::uint32_t bcast_doubling_steps(const Shape& s) noexcept {
  if (!std::has_single_bit(s.size)) return bcast_ring_steps(s);
  return tree_down_steps(s) + log2_floor(s.size);
}

Step bcast_doubling_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t scatter = tree_down_steps(s);
  if (!std::has_single_bit(s.size) || k < scatter) return bcast_ring_step(s, k);
  k -= scatter;
  const std::uint32_t v = relative(s);
  const std::uint32_t distance = std::uint32_t{1} << k;
  const std::uint32_t mine = v & ~(distance - 1);
  const std::uint32_t theirs = mine ^ distance;
  Step step;
  step.to = step.from = v ^ distance;
  step.send_bytes = cut(s.bytes, s.size, mine + distance) - cut(s.bytes, s.size, mine);
  step.recv_bytes = cut(s.bytes, s.size, theirs + distance) - cut(s.bytes, s.size, theirs);
  return turn_back(s, step);
}

}  // namespace fallow::coll::detail
