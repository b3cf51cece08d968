// A calendar queue: buckets of equal width for what is near, a heap for the far future. A bucket is sorted before
// its time comes, so early that the next thirty-two events are known, which the engine fetches by; what is pushed into
// the buckets that are sorted already goes to a small heap beside them.
//
// The order is total: (time, target rank, origin rank, the origin's count), so that what comes out does not
// depend on the order of pushes (docs/adr/0031). Memory: 16 bytes per pending event plus half-empty chunks;
// chunks are used again, nothing is allocated once the peak has been reached.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/event.hpp"
#include "sim/event_sorter.hpp"
#include "base/huge.hpp"
#include "sim/time.hpp"

namespace fallow::sim {

class EventQueue {
 public:
  EventQueue() : heads_(kBuckets, kNone), occupied_(kBuckets / 64, 0) {}

  void push(const Event& event) {
    ++size_;
    const Time bucket = event.time >> kWidthBits;
    if (bucket <= current_) {
      near_.push_back(event);
      std::push_heap(near_.begin(), near_.end(), std::greater<>());
    } else if (bucket - current_ < kBuckets) {
      add(bucket, event);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), std::greater<>());
    }
  }

  bool empty() const noexcept { return size_ == 0; }
  /// The time of the earliest event; kNever if there is none.
  Time next_time() {
    while (next_ == sorted_.size() && near_.empty()) {
      if (size_ == 0) return kNever;
      advance();
    }
    const Time sorted = next_ < sorted_.size() ? base_ + sorted_[next_].time() : kNever;
    return near_.empty() ? sorted : std::min(sorted, near_.front().time);
  }

  /// Takes the earliest event; false if there is none before `end`.
  bool pop(Event& event, Time end = kNever) {
    while (next_ == sorted_.size() && near_.empty()) {
      if (size_ == 0) return false;
      advance();
    }
    if (near_.empty() || (next_ < sorted_.size() && sorted_[next_].after(base_) < near_.front())) {
      const ShortEvent& first = sorted_[next_];
      const Time time = base_ + first.time();
      if (time >= end) return false;
      --size_;
      ++next_;
      event.time = time;
      event.tie = first.tie();
      event.index = first.index();
      event.kind = first.kind();
      if (sorted_.size() - next_ < kAhead) look_ahead(event.time);
      return true;
    }
    if (near_.front().time >= end) return false;
    --size_;
    event = near_.front();
    std::pop_heap(near_.begin(), near_.end(), std::greater<>());
    near_.pop_back();
    return true;
  }

  /// Takes the earliest event if it comes before `limit`. Does not look where nothing can be.
  bool pop_before(Event& event, const Event& limit) {
    const Time bucket = limit.time >> kWidthBits;
    if (near_.empty() && bucket > current_ && next_ == sorted_.size()) {
      const auto slot = static_cast<std::size_t>(bucket & (kBuckets - 1));
      const bool none = (occupied_[slot / 64] >> (slot % 64) & 1) == 0 && bucket == current_ + 1;
      if (none && (far_.empty() || far_.front().time >> kWidthBits > bucket)) return false;
    }
    if (next_time() > limit.time) return false;
    const Event first = near_.empty() || (next_ < sorted_.size() && sorted_[next_].after(base_) < near_.front()) ? sorted_[next_].after(base_) : near_.front();
    return first < limit && pop(event);
  }

  /// What pop would take next from the sorted part, for prefetching.
  std::span<const ShortEvent> known() const noexcept { return {sorted_.data() + next_, sorted_.size() - next_}; }

  std::uint64_t size() const noexcept { return size_; }
  std::size_t memory_bytes() const noexcept {
    return made_ * sizeof(Chunk) + (near_.capacity() + far_.capacity()) * sizeof(Event) +
           (sorted_.capacity() + sorter_.capacity()) * sizeof(ShortEvent) + heads_.capacity() * sizeof(Head);
  }

 private:
  static constexpr int kWidthBits = 17;       ///< a bucket is 131 ns: a fraction of a message's latency
  static constexpr std::uint32_t kWidth = 1u << kWidthBits;
  static constexpr Time kBuckets = 16384;     ///< 2.1 ms in all: beyond a usual time step's computation
  static constexpr std::uint32_t kChunkEvents = 7;
  static constexpr std::size_t kAhead = 32;   ///< events to be known in order, if they come within ...
  static constexpr Time kAheadBuckets = 8;    ///< ... 1 us: what is pushed below that takes the heap
  static constexpr Time kBaseReach = Time{1} << (ShortEvent::kTimeBits - 1);

  /// Of a bucket: its first chunk and, in the last bits, the events in that. They stand here, as a chunk that is added to
  /// is not at hand.
  using Head = std::uint32_t;
  static constexpr int kCountBits = 3;
  static constexpr std::uint32_t kCounts = (1u << kCountBits) - 1, kNoChunk = kNone >> kCountBits;
  static_assert(kChunkEvents == kCounts);
  /// All but the first of a bucket's chunks are full. Two cache lines.
  struct alignas(128) Chunk {
    std::uint64_t next = kNoChunk;
    ShortEvent events[kChunkEvents];  ///< times within the bucket
  };
  static_assert(sizeof(Chunk) == 128);
  static_assert(std::is_trivially_destructible_v<Chunk>);

  // In blocks of a large page, which never move: growing does not double what is resident.
  static constexpr std::uint32_t kBlockBits = 14;
  struct Free {
    void operator()(Chunk* block) const noexcept { HugeAllocator<Chunk>().deallocate(block, 0); }
  };
  Chunk& chunk(std::uint32_t i) noexcept { return blocks_[i >> kBlockBits][i & ((1u << kBlockBits) - 1)]; }

  void add(Time bucket, const Event& event) {
    const auto slot = static_cast<std::size_t>(bucket & (kBuckets - 1));
    Head& head = heads_[slot];
    if ((head & kCounts) == kChunkEvents) {
      const std::uint32_t fresh = take_chunk();
      chunk(fresh).next = head >> kCountBits;
      head = fresh << kCountBits;
      occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
    chunk(head >> kCountBits).events[head & kCounts] = {static_cast<std::uint32_t>(event.time) & (kWidth - 1), event.tie, event.index, event.kind};
    ++head;
  }

  std::uint32_t take_chunk() {
    if (free_ == kNone) {
      if (made_ >> kBlockBits == blocks_.size()) blocks_.emplace_back(HugeAllocator<Chunk>().allocate(std::size_t{1} << kBlockBits));
      new (&chunk(made_)) Chunk;
      return made_++;
    }
    const std::uint32_t taken = free_;
    free_ = static_cast<std::uint32_t>(chunk(taken).next);
    return taken;
  }

  /// Distance from `current_` to the next bucket in use; kBuckets if all are empty.
  Time distance_to_next() const noexcept {
    const auto start = static_cast<std::size_t>((current_ + 1) & (kBuckets - 1));
    const std::size_t words = occupied_.size();
    std::uint64_t word = occupied_[start / 64] & (~std::uint64_t{0} << (start % 64));
    for (std::size_t i = 0, at = start / 64; i <= words; ++i, at = (at + 1) % words, word = occupied_[at]) {
      if (word == 0) continue;
      const auto slot = static_cast<Time>(at * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      return ((slot - current_ - 1) & (kBuckets - 1)) + 1;
    }
    return kBuckets;
  }

  /// The same of the next 64 buckets only, with at least as much if they are all empty.
  Time nearby() const noexcept {
    const auto start = static_cast<std::size_t>((current_ + 1) & (kBuckets - 1));
    const std::size_t at = start / 64, shift = start % 64;
    std::uint64_t bits = occupied_[at] >> shift;
    if (shift != 0) bits |= occupied_[(at + 1) % occupied_.size()] << (64 - shift);
    return std::countr_zero(bits) + 1;
  }

  /// Goes to the next bucket in use and sorts it, fetching from the far heap what has come into reach.
  void advance() {
    const Time distance = distance_to_next();
    Time target = distance < kBuckets ? current_ + distance : kNever;
    if (!far_.empty()) target = std::min(target, far_.front().time >> kWidthBits);
    current_ = target;
    base_ = current_ << kWidthBits;
    sorted_.clear();
    next_ = 0;
    while (!far_.empty() && (far_.front().time >> kWidthBits) - current_ < kBuckets) {
      const Event event = far_.front();
      std::pop_heap(far_.begin(), far_.end(), std::greater<>());
      far_.pop_back();
      if (event.time >> kWidthBits == current_) {
        sorted_.emplace_back(static_cast<std::uint32_t>(event.time - base_), event.tie, event.index, event.kind);
      } else {
        add(event.time >> kWidthBits, event);
      }
    }
    drain();
    sorter_.sort(sorted_, 0);
  }

  /// Sorts the next bucket in use as well, if it is near enough and nothing from the far heap belongs before its end.
  void look_ahead(Time now) {
    const Time distance = nearby();
    if (current_ + distance > (now >> kWidthBits) + kAheadBuckets) return;
    if (!far_.empty() && far_.front().time >> kWidthBits <= current_ + distance) return;
    current_ += distance;
    sorted_.erase(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
    if ((current_ << kWidthBits) - base_ > kBaseReach) [[unlikely]] rebase(now >> kWidthBits << kWidthBits);
    const std::size_t rest = sorted_.size();
    drain();
    sorter_.sort(std::span(sorted_).subspan(rest), static_cast<std::uint32_t>((current_ << kWidthBits) - base_));
  }

  /// The times of the sorted part count from `base` from now on, which is no later than they are.
  void rebase(Time base) noexcept {
    for (ShortEvent& e : sorted_) e = {static_cast<std::uint32_t>(base_ + e.time() - base), e.tie(), e.index(), e.kind()};
    base_ = base;
  }

  /// Moves the present bucket's events to the sorted part.
  void drain() {
    const auto slot = static_cast<std::size_t>(current_ & (kBuckets - 1));
    const auto begin = static_cast<std::uint32_t>((current_ << kWidthBits) - base_);
    Head& head = heads_[slot];
    std::uint32_t count = head & kCounts;
    for (std::uint32_t i = head >> kCountBits; i != kNoChunk; count = kChunkEvents) {
      Chunk& c = chunk(i);
      std::size_t at = sorted_.size();
      if (at + count > sorted_.capacity()) [[unlikely]] make_room(i, count);
      sorted_.resize(at + count);
      for (const ShortEvent& e : std::span(c.events, count)) sorted_[at++] = e.later(begin);
      const auto next = static_cast<std::uint32_t>(c.next);
      c.next = free_;
      free_ = i;
      i = next;
    }
    head = kNone;
    occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    prefetch_bucket();
  }

  /// Room in the sorted part for the rest of a bucket: `count` events in chunk `i`, and what is in those behind it.
  void make_room(std::uint32_t i, std::size_t count) {
    std::size_t all = sorted_.size() + count;
    while ((i = static_cast<std::uint32_t>(chunk(i).next)) != kNoChunk) all += kChunkEvents;
    sorted_.reserve(all + all / 16);
  }

  /// Brings the next bucket nearer that has events, if it is not far.
  void prefetch_bucket() const noexcept {
    const std::uint32_t first = heads_[static_cast<std::size_t>((current_ + nearby()) & (kBuckets - 1))] >> kCountBits;
    if (first == kNoChunk) return;
    const auto* chunk = reinterpret_cast<const char*>(&blocks_[first >> kBlockBits][first & ((1u << kBlockBits) - 1)]);
    for (std::size_t at = 0; at < sizeof(Chunk); at += 64) __builtin_prefetch(chunk + at);
  }

  std::vector<Head> heads_;
  std::vector<std::uint64_t> occupied_;
  std::vector<std::unique_ptr<Chunk[], Free>> blocks_;
  std::uint32_t made_ = 0;
  std::vector<ShortEvent> sorted_;  ///< times count from base_
  std::vector<Event> near_, far_;
  EventSorter sorter_;
  std::size_t next_ = 0;
  Time current_ = -1;
  Time base_ = 0;
  std::uint32_t free_ = kNone;
  std::uint64_t size_ = 0;
};

}  // namespace fallow::sim
