#include <algorithm>
#include <bit>

#include "predict/hash.hpp"
#include "predict/pps.hpp"

namespace fallow::predict {

GramArray::GramArray(std::uint32_t max_grams, std::uint32_t max_events)
    : grams_(std::bit_ceil(std::max(16U, max_grams))), events_(std::bit_ceil(std::max(16U, max_events))) {}

void GramArray::append(std::uint32_t call) noexcept {
  events_[events_seen_++ & (events_.size() - 1)] = call;
  running_.hash = extend_hash(running_.hash, call);
  ++running_.length;
}

void GramArray::close(Nanoseconds gap) noexcept {
  running_.gap = gap;
  grams_[closed_++ & (grams_.size() - 1)] = running_;
  running_ = {};
  running_.first_event = events_seen_;
}

void GramArray::clear() noexcept {
  closed_ = events_seen_ = 0;
  running_ = {};
}

bool GramArray::call_at(const Gram& gram, std::uint32_t index, std::uint32_t& call) const noexcept {
  const std::uint64_t event = gram.first_event + index;
  if (index >= gram.length || event + events_.size() < events_seen_) return false;
  call = events_[event & (events_.size() - 1)];
  return true;
}

std::size_t GramArray::memory_bytes() const noexcept {
  return grams_.size() * sizeof(Gram) + events_.size() * sizeof(std::uint32_t);
}

PatternList::PatternList(std::uint32_t max_patterns, std::uint32_t max_positions)
    : table_(std::bit_ceil(std::max(16U, max_patterns)) * std::size_t{2}), positions_(std::max(16U, max_positions)) {}

void PatternList::clear() noexcept {
  std::fill(table_.begin(), table_.end(), Pattern{});
  used_ = free_position_ = 0;
  recycled_ = kNone;
}

PatternList::Pattern* PatternList::find(std::uint64_t hash, std::uint32_t length) noexcept {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = mix(hash) & mask; table_[i].length != 0; i = (i + 1) & mask)
    if (table_[i].hash == hash && table_[i].length == length) return &table_[i];
  return nullptr;
}

bool PatternList::update(std::uint64_t hash, std::uint32_t length, std::uint64_t position,
                         const GramArray& grams) noexcept {
  Pattern* pattern = find(hash, length);
  if (pattern != nullptr && pattern->latest == position) return false;  // counted already
  const bool no_position = recycled_ == kNone && free_position_ == positions_.size();
  if (no_position || (pattern == nullptr && used_ == table_.size() / 2)) {
    clear();
    ++overflows_;
    pattern = nullptr;
  }
  const bool is_new = pattern == nullptr;
  if (is_new) {
    const std::size_t mask = table_.size() - 1;
    std::size_t i = mix(hash) & mask;
    while (table_[i].length != 0) i = (i + 1) & mask;
    pattern = &table_[i];
    *pattern = Pattern{.hash = hash, .length = length};
    for (std::uint32_t k = 0; k < length; ++k) pattern->calls += grams[position + k].length;
    ++used_;
  }
  std::uint32_t slot = recycled_;
  if (slot != kNone) {
    recycled_ = positions_[slot].older;
  } else {
    slot = free_position_++;
  }
  positions_[slot] = {position, pattern->newest};
  pattern->newest = slot;
  pattern->latest = position;
  ++pattern->frequency;
  return is_new;
}

void PatternList::remove(std::uint64_t hash, std::uint32_t length) noexcept {
  const Pattern* found = find(hash, length);
  if (found == nullptr) return;
  if (found->newest != kNone) {
    std::uint32_t oldest = found->newest;
    while (positions_[oldest].older != kNone) oldest = positions_[oldest].older;
    positions_[oldest].older = recycled_;
    recycled_ = found->newest;
  }
  --used_;
  const std::size_t mask = table_.size() - 1;
  auto hole = static_cast<std::size_t>(found - table_.data());
  for (std::size_t i = (hole + 1) & mask; table_[i].length != 0; i = (i + 1) & mask) {  // close the gap it leaves
    const std::size_t home = mix(table_[i].hash) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = Pattern{};
}

std::size_t PatternList::memory_bytes() const noexcept {
  return table_.size() * sizeof(Pattern) + positions_.size() * sizeof(Position);
}

}  // namespace fallow::predict
