// Mathematical functions of the C library under names that no program gives to functions of its own.
#pragma once

#include <cmath>

namespace fallow::libm {

// The runtime is in the scope of the program, whose executable and libraries come first there: many an old program has an `int log2(int)`,
// which the runtime would call for the C library's. These names for the same functions (ISO/IEC TS 18661-3) nobody uses by chance.
#ifdef __GLIBC__
inline double log1p(double x) noexcept { return static_cast<double>(::log1pf64(x)); }
inline double log2(double x) noexcept { return static_cast<double>(::log2f64(x)); }
inline double sqrt(double x) noexcept { return static_cast<double>(::sqrtf64(x)); }
#else
inline double log1p(double x) noexcept { return std::log1p(x); }
inline double log2(double x) noexcept { return std::log2(x); }
inline double sqrt(double x) noexcept { return std::sqrt(x); }
#endif

}  // namespace fallow::libm
