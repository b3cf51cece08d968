// Keeps our floating-point arithmetic out of the program's sight: its flags, rounding mode and traps stay as they are.
#pragma once

#include <xmmintrin.h>

namespace fallow {

/// While it lives, floating-point arithmetic rounds to nearest and traps nothing; then the program's control and
/// status register is put back. About 10 ns, so for slow paths only. x87 is not touched: x86-64 code has no use for it.
class FloatGuard {
 public:
  FloatGuard() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FloatGuard() { _mm_setcsr(saved_); }
  FloatGuard(const FloatGuard&) = delete;
  FloatGuard& operator=(const FloatGuard&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, no flags, round to nearest (Intel SDM 1, 10.2.3)
  unsigned saved_;
};

}  // namespace fallow
