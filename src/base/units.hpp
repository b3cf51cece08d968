// Strong types for physical quantities. A bare number never stands for one in an interface.
#pragma once

#include <compare>
#include <cstdint>

namespace fallow {

/// A quantity with a unit: `Tag` names the unit, `Rep` holds the value in that unit.
template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() noexcept = default;
  constexpr explicit Quantity(Rep v) noexcept : value(v) {}

  constexpr auto operator<=>(const Quantity&) const noexcept = default;
  constexpr Quantity& operator+=(Quantity o) noexcept {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) noexcept {
    value -= o.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) noexcept { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) noexcept { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, Rep f) noexcept { return Quantity(a.value * f); }
  friend constexpr double operator/(Quantity a, Quantity b) noexcept {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Joules = Quantity<struct JoulesTag, double>;            ///< energy, J
using Watts = Quantity<struct WattsTag, double>;              ///< power, W
using Hertz = Quantity<struct HertzTag, double>;              ///< frequency, Hz
using Seconds = Quantity<struct SecondsTag, double>;          ///< time, s
using Nanoseconds = Quantity<struct NanosecondsTag, std::int64_t>;  ///< time, ns
using Bytes = Quantity<struct BytesTag, std::uint64_t>;       ///< size, B

/// Energy of a constant power over a time.
constexpr Joules operator*(Watts p, Seconds t) noexcept { return Joules(p.value * t.value); }

constexpr Seconds to_seconds(Nanoseconds t) noexcept { return Seconds(static_cast<double>(t.value) * 1e-9); }
constexpr Nanoseconds to_nanoseconds(Seconds t) noexcept {
  return Nanoseconds(static_cast<std::int64_t>(t.value * 1e9));
}

}  // namespace fallow
