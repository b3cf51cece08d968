// An array over a row of numbers that does not begin at 0.
#pragma once

#include <cstdint>

#include "base/huge.hpp"

namespace fallow::sim {

template <class T>
class Slice {
 public:
  Slice() = default;
  Slice(std::uint32_t first, std::uint32_t count) : data_(count), first_(first) {}

  T& operator[](std::uint32_t i) noexcept { return data_[i - first_]; }
  const T& operator[](std::uint32_t i) const noexcept { return data_[i - first_]; }
  void prefetch(std::uint32_t i) const noexcept {
    const auto* at = reinterpret_cast<const char*>(&data_[i - first_]);
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + sizeof(T) - 1, 1);
  }
  std::uint32_t first() const noexcept { return first_; }
  std::uint32_t last() const noexcept { return first_ + static_cast<std::uint32_t>(data_.size()); }
  bool empty() const noexcept { return data_.empty(); }
  bool holds(std::uint32_t i) const noexcept { return i - first_ < data_.size(); }
  auto begin() const noexcept { return data_.begin(); }
  auto end() const noexcept { return data_.end(); }
  std::size_t memory_bytes() const noexcept { return data_.capacity() * sizeof(T); }

 private:
  HugeVector<T> data_;
  std::uint32_t first_ = 0;
};

}  // namespace fallow::sim
