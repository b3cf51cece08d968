// Division by a number that is known at run time only, and again and again.
#pragma once

#include <cstdint>

namespace fallow::sim {

/// Division by a constant through a multiplication, exact for 32-bit numbers (Lemire, Kaser, Kurz 2019).
class Divider {
 public:
  explicit Divider(std::uint32_t divisor = 1) noexcept
      : magic_(divisor == 1 ? 0 : ~std::uint64_t{0} / divisor + 1), divisor_(divisor) {}
  std::uint32_t divide(std::uint32_t n) const noexcept {
    return magic_ == 0 ? n : static_cast<std::uint32_t>(static_cast<unsigned __int128>(magic_) * n >> 64);
  }
  std::uint32_t modulo(std::uint32_t n) const noexcept { return n - divide(n) * divisor_; }

 private:
  std::uint64_t magic_;
  std::uint32_t divisor_;
};

}  // namespace fallow::sim
