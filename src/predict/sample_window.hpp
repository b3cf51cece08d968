// The last 16 durations of one kind, in order of arrival and in order of size: one cache line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "predict/log_code.hpp"

namespace fallow::predict {

struct alignas(64) SampleWindow {
  static constexpr unsigned kSize = 16;
  std::uint16_t ring[kSize];
  std::uint16_t sorted[kSize];  ///< the first `count` are valid, ascending

  /// Adds a sample; beyond kSize the oldest goes. `count` and `head` belong to the window but live with its
  /// owner, so that a look at them does not cost a cache line.
  void insert(std::uint16_t code, std::uint8_t& count, std::uint8_t& head) noexcept {
    unsigned hole = count;
    if (count == kSize) {
      const std::uint16_t old = ring[head];
      for (hole = 0; sorted[hole] != old; ++hole) {
      }
    } else {
      ++count;
    }
    while (hole > 0 && sorted[hole - 1] > code) {
      sorted[hole] = sorted[hole - 1];
      --hole;
    }
    while (hole + 1U < count && sorted[hole + 1] < code) {
      sorted[hole] = sorted[hole + 1];
      ++hole;
    }
    sorted[hole] = code;
    ring[head] = code;
    head = static_cast<std::uint8_t>((head + 1U) % kSize);
  }
};

}  // namespace fallow::predict
