// Smaller and larger of two numbers in one instruction each. Of what compilers make of std::min and std::max some are branches,
// and which way gaps and scores go is what a processor cannot foresee.
#pragma once

#include <xmmintrin.h>

namespace fallow::predict {

/// As std::max(a, b).
inline float larger(float a, float b) noexcept { return _mm_cvtss_f32(_mm_max_ss(_mm_set_ss(b), _mm_set_ss(a))); }
/// As std::min(a, b).
inline float smaller(float a, float b) noexcept { return _mm_cvtss_f32(_mm_min_ss(_mm_set_ss(b), _mm_set_ss(a))); }

}  // namespace fallow::predict
