// Algorithms in which the distance between partners doubles or halves from step to step.
#include "coll/families.hpp"

namespace fallow::coll::detail {
namespace {

/// Where a rank stands once the ranks beyond a power of two have been folded into their neighbours (Thakur et al.,
/// section 4.5): of the first 2 * extra ranks the even ones sit out, the odd ones act for both.
struct Folded {
  std::uint32_t power;  ///< ranks that take part
  std::uint32_t extra;  ///< ranks that sit out
  std::uint32_t rank;   ///< among those that take part; kNobody: sits out
};

Folded fold(const Shape& s) noexcept {
  const std::uint32_t power = std::uint32_t{1} << log2_floor(s.size);
  const std::uint32_t extra = s.size - power;
  if (s.rank >= 2 * extra) return {power, extra, s.rank - extra};
  return {power, extra, (s.rank & 1) != 0 ? s.rank / 2 : kNobody};
}

std::uint32_t unfold(const Folded& f, std::uint32_t rank) noexcept {
  return rank < f.extra ? 2 * rank + 1 : rank + f.extra;
}

/// The step before: the ranks that sit out hand their vector over.
Step fold_in(const Shape& s, const Folded& f) noexcept {
  Step step;
  if (s.rank >= 2 * f.extra) return step;
  if (f.rank == kNobody) {
    step.to = s.rank + 1;
    step.send_bytes = s.bytes;
  } else {
    step.from = s.rank - 1;
    step.recv_bytes = step.reduce_bytes = s.bytes;
  }
  return step;
}

/// The step after: they get `bytes` of the result.
Step fold_out(const Shape& s, const Folded& f, std::uint64_t bytes) noexcept {
  Step step;
  if (s.rank >= 2 * f.extra) return step;
  if (f.rank == kNobody) {
    step.from = s.rank + 1;
    step.recv_bytes = bytes;
  } else {
    step.to = s.rank - 1;
    step.send_bytes = bytes;
  }
  return step;
}

/// Step i of recursive halving over the whole vector: the half that is not ours goes to the partner.
Step halve(const Shape& s, const Folded& f, std::uint32_t i) noexcept {
  if (f.rank == kNobody) return {};
  const std::uint32_t distance = f.power >> (i + 1);
  const std::uint32_t base = f.rank & ~(2 * distance - 1);
  const std::uint32_t middle = base + distance;
  const std::uint64_t low = cut(s.bytes, f.power, middle) - cut(s.bytes, f.power, base);
  const std::uint64_t high = cut(s.bytes, f.power, middle + distance) - cut(s.bytes, f.power, middle);
  const bool upper = (f.rank & distance) != 0;
  Step step;
  step.to = step.from = unfold(f, f.rank ^ distance);
  step.send_bytes = upper ? low : high;
  step.recv_bytes = step.reduce_bytes = upper ? high : low;
  return step;
}

/// The reverse of halve(s, f, i), without combining.
Step double_back(const Shape& s, const Folded& f, std::uint32_t i) noexcept {
  Step step = halve(s, f, i);
  const std::uint64_t sent = step.send_bytes;
  step.send_bytes = step.recv_bytes;
  step.recv_bytes = sent;
  step.reduce_bytes = 0;
  return step;
}

}  // namespace

std::uint32_t dissemination_steps(const Shape& s) noexcept { return log2_ceil(s.size); }

Step dissemination_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t distance = std::uint32_t{1} << k;
  Step step;
  step.to = plus(s.rank, distance, s.size);
  step.from = minus(s.rank, distance, s.size);
  return step;
}

std::uint32_t doubling_steps(const Shape& s) noexcept { return log2_floor(s.size) + 2; }

Step doubling_step(const Shape& s, std::uint32_t k) noexcept {
  const Folded f = fold(s);
  if (k == 0) return fold_in(s, f);
  if (k == log2_floor(s.size) + 1) return fold_out(s, f, s.bytes);
  Step step;
  if (f.rank == kNobody) return step;
  step.to = step.from = unfold(f, f.rank ^ (std::uint32_t{1} << (k - 1)));
  step.send_bytes = step.recv_bytes = step.reduce_bytes = s.bytes;
  return step;
}

std::uint32_t rabenseifner_steps(const Shape& s) noexcept { return 2 * log2_floor(s.size) + 2; }

Step rabenseifner_step(const Shape& s, std::uint32_t k) noexcept {
  const Folded f = fold(s);
  const std::uint32_t levels = log2_floor(s.size);
  if (k == 0) return fold_in(s, f);
  if (k <= levels) return halve(s, f, k - 1);
  if (k <= 2 * levels) return double_back(s, f, 2 * levels - k);
  return fold_out(s, f, s.bytes);
}

std::uint32_t halving_steps(const Shape& s) noexcept { return log2_floor(s.size) + 2; }

Step halving_step(const Shape& s, std::uint32_t k) noexcept {
  const Folded f = fold(s);
  const std::uint32_t levels = log2_floor(s.size);
  if (k == 0) return fold_in(s, f);
  if (k <= levels) return halve(s, f, k - 1);
  return fold_out(s, f, s.bytes / s.size);
}

std::uint32_t reduce_halving_steps(const Shape& s) noexcept { return 2 * log2_floor(s.size) + 2; }

// Halving as above; then a binomial gather of the pieces to the rank that acts for the root, and from it to the
// root if that one sat out.
Step reduce_halving_step(const Shape& s, std::uint32_t k) noexcept {
  const Folded f = fold(s);
  const std::uint32_t levels = log2_floor(s.size);
  if (k == 0) return fold_in(s, f);
  if (k <= levels) return halve(s, f, k - 1);
  Shape at_root = s;
  at_root.rank = s.root;
  Folded root = fold(at_root);
  const bool root_out = root.rank == kNobody;
  if (root_out) root.rank = s.root / 2;
  Step step;
  if (k <= 2 * levels) {
    if (f.rank == kNobody) return step;
    const std::uint32_t i = 2 * levels - k;
    const std::uint32_t distance = f.power >> (i + 1);
    const std::uint32_t apart = f.rank ^ root.rank;
    if ((apart & (distance - 1)) != 0) return step;  // gathered already
    const Step back = double_back(s, f, i);
    if ((apart & distance) != 0) {
      step.to = back.to;
      step.send_bytes = back.send_bytes;
    } else {
      step.from = back.from;
      step.recv_bytes = back.recv_bytes;
    }
    return step;
  }
  if (root_out && (s.rank == s.root || s.rank == s.root + 1)) return fold_out(s, f, s.bytes);
  return step;
}

std::uint32_t gather_doubling_steps(const Shape& s) noexcept {
  return std::has_single_bit(s.size) ? log2_floor(s.size) : bruck_steps(s);
}

Step gather_doubling_step(const Shape& s, std::uint32_t k) noexcept {
  if (!std::has_single_bit(s.size)) return allgather_bruck_step(s, k);
  Step step;
  step.to = step.from = s.rank ^ (std::uint32_t{1} << k);
  step.send_bytes = step.recv_bytes = s.bytes << k;
  return step;
}

std::uint32_t scan_steps(const Shape& s) noexcept { return log2_ceil(s.size); }

Step scan_step(const Shape& s, std::uint32_t k) noexcept {
  const std::uint32_t distance = std::uint32_t{1} << k;
  Step step;
  if (s.size - s.rank > distance) {
    step.to = s.rank + distance;
    step.send_bytes = s.bytes;
  }
  if (s.rank >= distance) {
    step.from = s.rank - distance;
    step.recv_bytes = step.reduce_bytes = s.bytes;
  }
  return step;
}

std::uint32_t scan_linear_steps(const Shape&) noexcept { return 2; }

Step scan_linear_step(const Shape& s, std::uint32_t k) noexcept {
  Step step;
  if (k == 0 && s.rank > 0) {
    step.from = s.rank - 1;
    step.recv_bytes = step.reduce_bytes = s.bytes;
  }
  if (k == 1 && s.rank + 1 < s.size) {
    step.to = s.rank + 1;
    step.send_bytes = s.bytes;
  }
  return step;
}

}  // namespace fallow::coll::detail
