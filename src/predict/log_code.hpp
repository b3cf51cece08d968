// A duration in 16 bits: 5 bits of exponent, 11 of mantissa, so that durations from 128 ns to 9 minutes keep
// a relative resolution of 1/2048 and compare as integers. Pure arithmetic, safe from any thread or signal.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace fallow::predict {

inline constexpr int kCodeMantissaBits = 11;
inline constexpr int kCodeFirstOctave = 7;  ///< code 0 stands for 2^7 = 128 ns and everything shorter
inline constexpr std::int64_t kCodeMinNs = std::int64_t{1} << kCodeFirstOctave;
inline constexpr std::int64_t kCodeMaxNs = (std::int64_t{1} << (kCodeFirstOctave + 32)) - 1;
inline constexpr std::uint16_t kCodeOctave = 1U << kCodeMantissaBits;  ///< codes per factor of two

/// The code of a duration in ns; out of range is clamped. Monotone.
constexpr std::uint16_t encode_ns(std::int64_t ns) noexcept {
  const auto v = static_cast<std::uint64_t>(std::clamp(ns, kCodeMinNs, kCodeMaxNs));
  const int exponent = static_cast<int>(std::bit_width(v)) - 1;
  const std::uint64_t mantissa = exponent >= kCodeMantissaBits ? v >> (exponent - kCodeMantissaBits)
                                                               : v << (kCodeMantissaBits - exponent);
  const auto octave = static_cast<std::uint64_t>(exponent - kCodeFirstOctave);
  return static_cast<std::uint16_t>((octave << kCodeMantissaBits) + (mantissa & (kCodeOctave - 1U)));
}

/// The shortest duration with this code, ns.
constexpr std::int64_t decode_ns(std::uint16_t code) noexcept {
  const int exponent = (code >> kCodeMantissaBits) + kCodeFirstOctave;
  const std::uint64_t mantissa = kCodeOctave | (code & (kCodeOctave - 1U));
  return static_cast<std::int64_t>(exponent >= kCodeMantissaBits ? mantissa << (exponent - kCodeMantissaBits)
                                                                 : mantissa >> (kCodeMantissaBits - exponent));
}

/// The same as a floating-point number: the code is the upper part of one.
constexpr double decode_double(std::uint16_t code) noexcept {
  constexpr std::uint64_t kBias = std::uint64_t{1023 + kCodeFirstOctave} << kCodeMantissaBits;
  return std::bit_cast<double>((kBias + code) << (52 - kCodeMantissaBits));
}

constexpr float decode_float(std::uint16_t code) noexcept {
  constexpr std::uint32_t kBias = std::uint32_t{127 + kCodeFirstOctave} << kCodeMantissaBits;
  return std::bit_cast<float>((kBias + code) << (23 - kCodeMantissaBits));
}

}  // namespace fallow::predict
