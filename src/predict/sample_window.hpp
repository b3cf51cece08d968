// The last 16 durations of one kind, in order of arrival and in order of size: one cache line.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <cstring>

#include "predict/log_code.hpp"

namespace fallow::predict {

struct alignas(64) SampleWindow {
  static constexpr unsigned kSize = 16;
  static constexpr std::uint16_t kNothing = 0xffff;  ///< fills `sorted` behind the last sample
  std::uint16_t ring[kSize];
  std::uint16_t sorted[kSize];  ///< the first `count` are valid, ascending

  /// Before the first sample.
  void clear() noexcept { std::memset(sorted, 0xff, sizeof sorted); }

  /// Adds a sample; beyond kSize the oldest goes. `count` and `head` belong to the window but live with its
  /// owner, so that a look at them does not cost a cache line. Without a branch: where in the order a sample lies
  /// is what cannot be predicted.
  void insert(std::uint16_t code, std::uint8_t& count, std::uint8_t& head) noexcept {
    const std::uint16_t gone = count == kSize ? ring[head] : kNothing;
    count = static_cast<std::uint8_t>(count + (count != kSize));
    replace(gone, code);
    ring[head] = code;
    head = static_cast<std::uint8_t>((head + 1U) % kSize);
  }

 private:
  /// Takes one `gone` out of the order and puts `code` in.
  void replace(std::uint16_t gone, std::uint16_t code) noexcept {
    // There are only comparisons with a sign: all codes are moved by half of their range.
    constexpr int kHalf = 0x8000, kLeast = -0x8000, kMost = 0x7fff, kBytes = 2, kOthers = 14;
    const __m128i half = _mm_set1_epi16(static_cast<short>(kHalf));
    auto* const at = reinterpret_cast<__m128i*>(sorted);
    const __m128i low = _mm_xor_si128(_mm_load_si128(at), half), high = _mm_xor_si128(_mm_load_si128(at + 1), half);
    // From the first `gone` on, all come one place down.
    const __m128i old = _mm_set1_epi16(static_cast<short>(gone ^ kHalf));
    const __m128i low_next = _mm_or_si128(_mm_srli_si128(low, kBytes), _mm_slli_si128(high, kOthers));
    const __m128i high_next = _mm_insert_epi16(_mm_srli_si128(high, kBytes), kMost, kSize / 2 - 1);
    const __m128i low_left = choose(_mm_cmplt_epi16(low, old), low, low_next);
    const __m128i high_left = choose(_mm_cmplt_epi16(high, old), high, high_next);
    // From the first that is not smaller than `code` on, all go one place up; that place is the code's.
    const __m128i own = _mm_set1_epi16(static_cast<short>(code ^ kHalf));
    const __m128i low_before = _mm_insert_epi16(_mm_slli_si128(low_left, kBytes), kLeast, 0);
    const __m128i high_before = _mm_or_si128(_mm_slli_si128(high_left, kBytes), _mm_srli_si128(low_left, kOthers));
    const __m128i low_new = choose(_mm_cmplt_epi16(low_left, own), low_left, _mm_max_epi16(own, low_before));
    const __m128i high_new = choose(_mm_cmplt_epi16(high_left, own), high_left, _mm_max_epi16(own, high_before));
    _mm_store_si128(at, _mm_xor_si128(low_new, half));
    _mm_store_si128(at + 1, _mm_xor_si128(high_new, half));
  }
  static __m128i choose(__m128i mask, __m128i yes, __m128i no) noexcept {
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
  }
};

}  // namespace fallow::predict
