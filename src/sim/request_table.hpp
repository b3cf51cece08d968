// A rank's request numbers, which are small and used again, to what stands behind them. All ranks' tables lie in one
// array in sizes of powers of two; a table that has grown leaves its old place to others.
#pragma once

#include <array>
#include <vector>

#include "base/huge.hpp"
#include "sim/time.hpp"

namespace fallow::sim {

class RequestTables {
 public:
  struct Table {
    std::uint32_t at = 0;
    std::uint8_t bits = 0;  ///< 0: none yet; else 2^bits entries
  };
  static constexpr std::uint32_t kMaxNumber = 1u << 24;

  /// Room for the first requests of so many ranks.
  void reserve(std::uint32_t ranks) { entries_.reserve(std::size_t{ranks} << kFirstBits); }

  /// What `number` stands for; kNone if nothing. The reference is valid until the next call.
  std::uint32_t& entry(Table& table, std::uint32_t number) {
    if (table.bits == 0 || number >> table.bits != 0) grow(table, number);
    return entries_[table.at + number];
  }
  void prefetch(const Table& table) const noexcept { __builtin_prefetch(entries_.data() + table.at, 1); }
  std::size_t memory_bytes() const noexcept { return entries_.capacity() * sizeof(entries_[0]); }

 private:
  void grow(Table& table, std::uint32_t number) {
    std::uint8_t bits = table.bits == 0 ? kFirstBits : table.bits;
    while (number >> bits != 0) ++bits;
    const std::uint32_t size = std::uint32_t{1} << bits;
    std::uint32_t at = 0;
    if (!free_[bits].empty()) {
      at = free_[bits].back();
      free_[bits].pop_back();
    } else {
      at = static_cast<std::uint32_t>(entries_.size());
      entries_.resize(entries_.size() + size);
    }
    const std::uint32_t old = table.bits == 0 ? 0 : std::uint32_t{1} << table.bits;
    for (std::uint32_t i = 0; i < size; ++i) entries_[at + i] = i < old ? entries_[table.at + i] : kNone;
    if (old != 0) free_[table.bits].push_back(table.at);
    table = {at, bits};
  }

  static constexpr std::uint8_t kFirstBits = 4;  ///< a cache line

  HugeVector<std::uint32_t> entries_;
  std::array<std::vector<std::uint32_t>, 32> free_;
};

}  // namespace fallow::sim
