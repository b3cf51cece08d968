// Packs the events of one thread into blocks. All memory is taken on construction; nothing below allocates or
// throws, so that it may run inside other people's programs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "trace/block_model.hpp"
#include "trace/coding.hpp"
#include "trace/event.hpp"
#include "trace/lz.hpp"

namespace fallow::trace {

struct EncoderOptions {
  unsigned time_bits = 11;          ///< significant bits of a duration's code
  bool exact_times = true;          ///< keep every nanosecond; else what the code holds: 11 bits are within 0.05 %
  std::uint32_t list_words = 8192;  ///< numbers in all lists of a block
  std::uint32_t max_events = kBlockEvents;
};

/// What the source of an event knows of it but its times. Two events with the same key are the same in all else.
struct EventKey {
  std::array<std::uint64_t, 10> words{};
};
inline constexpr std::uint64_t kNoKey = ~std::uint64_t{0};  ///< first word of a key that no event has

/// The times of an event, as in CallEvent.
struct EventTimes {
  std::uint64_t enter_ns = 0, exit_ns = 0, compute_ns = 0, wait_ns = 0;
  bool has_compute = false;  ///< kEventCpuTime
};

class BlockEncoder {
 public:
  /// Throws std::bad_alloc if there is no memory.
  BlockEncoder(std::uint32_t rank, std::uint16_t thread, const EncoderOptions& options);

  /// Adds the next event of this thread; its enter is not before the last one's exit (else it is moved there).
  /// False if the block is full: finish() it and add the event again, which then fits.
  bool add(const CallEvent& event) noexcept;
  /// The same; remembers the event by its key for add_again().
  bool add(const CallEvent& event, const EventKey& key) noexcept {
    if (!add(event)) return false;
    keys_[model_.last_place()] = key;
    return true;
  }
  /// Adds an event that is the last one in its context again but for its times, as most are in a loop, at half the
  /// cost. `is(key)`: whether it is the one that was added with this key. False if it is none; then nothing is added.
  template <class Is>
  bool add_again(const Is& is, const EventTimes& times) noexcept;

  /// Events dropped before the next one.
  void note_dropped(std::uint32_t events) noexcept { dropped_ += events; }

  std::uint32_t events() const noexcept { return head_.events; }
  std::uint64_t first_ns() const noexcept { return head_.first_ns; }

  /// Ends the block and starts the next. The bytes are valid until the next add(). Empty if there are no events.
  std::span<const std::byte> finish() noexcept;

  /// The head of the last finished block.
  const BlockHead& finished() const noexcept { return finished_; }

 private:
  void begin(unsigned context_bits) noexcept;
  void write(const CallEvent& event) noexcept;
  void write_first(const CallEvent& event) noexcept;
  bool has_room(const CallEvent& event) noexcept;
  bool fits(std::size_t words) const noexcept;
  std::uint32_t surely() const noexcept;
  std::uint32_t find_template(const Template& t) noexcept;
  template <class T>
  std::uint16_t find_numbers(std::span<const T> list) noexcept {
    if (list.empty()) return 0;
    if (list.size() != 1 || list[0] >= kSingles) return find_list(list);
    Slot& slot = singles_[list[0]];
    if (slot.epoch != epoch_) slot = {epoch_, find_list(list)};
    return static_cast<std::uint16_t>(slot.value);
  }
  template <class T>
  std::uint16_t find_list(std::span<const T> list) noexcept;
  void define(const Template& t) noexcept;
  void write_values(const Values& expected, const Values& actual, std::uint32_t miss) noexcept;
  void write_miss(std::uint32_t miss) noexcept;
  std::uint64_t write_time(std::uint64_t duration, TimeState& state, bool follow) noexcept;
  void write_times(const EventTimes& event, Expectation& e) noexcept;
  void write_exact_time(std::uint64_t duration, TimeState& state) noexcept;
  void write_moved_times(const EventTimes& event, Expectation& e) noexcept;
  template <bool kDrops>
  void write_settled(std::uint64_t gap, std::uint64_t duration, Expectation& e) noexcept;
  void write_other_times(const EventTimes& e, Expectation& x) noexcept {
    if ((head_.flags & kBlockWaits) != 0) write_wait(e.wait_ns, x.wait);
    if (e.has_compute) [[unlikely]] write_time(e.compute_ns, x.compute, false);
  }
  void write_wait(std::uint64_t wait, TimeState& state) noexcept {
    const Bits b = options_.exact_times && wait < kLatestNs ? state.settled<true>(wait, head_.time_bits) : Bits{};
    b.count != 0 ? bits_.bits(b) : static_cast<void>(write_time(wait, state, false));
  }
  /// Every nanosecond of the event's times is to be kept, and can be.
  bool exact(const EventTimes& e) const noexcept {
    return options_.exact_times && clock_ <= e.enter_ns && e.enter_ns <= e.exit_ns && e.exit_ns < kLatestNs && drift_ == 0;
  }

  struct List {
    std::uint32_t begin, count;
  };
  struct Slot {
    std::uint32_t epoch = 0, value = 0;
  };
  static constexpr std::size_t kSingles = 64;
  EncoderOptions options_;
  BlockModel model_{true};
  BlockHead head_{}, finished_{};
  std::uint32_t epoch_ = 0;      ///< of the hash tables below
  std::uint64_t clock_ = 0;      ///< exit of the last event, as the decoder will have it
  std::int64_t drift_ = 0;       ///< how far the decoder's clock is behind
  std::uint64_t next_event_ = 0;
  std::uint32_t dropped_ = 0;
  std::uint32_t run_ = 0;        ///< events in a row that were as expected
  bool waits_ = false;
  Template last_defined_{};
  std::uint32_t lists_ = 0, words_ = 0;
  std::uint32_t sure_ = 0;       ///< further events with short lists that certainly fit; 0 before a block's first event
  std::unique_ptr<std::byte[]> memory_;
  ByteWriter control_, literals_, definitions_;
  BitWriter bits_;
  std::span<std::byte> structure_, block_;
  std::unique_ptr<Slot[]> template_slots_, list_slots_;
  std::array<Slot, kSingles> singles_{};  ///< lists of one small number, as most requests are
  std::unique_ptr<List[]> list_table_;
  std::unique_ptr<std::uint64_t[]> list_words_;
  std::unique_ptr<EventKey[]> keys_;  ///< by context: of its last event
  std::unique_ptr<LzTable> lz_;
};

/// write_times() of most events.
template <bool kDrops>
inline void BlockEncoder::write_settled(std::uint64_t gap, std::uint64_t duration, Expectation& x) noexcept {
  const unsigned n = head_.time_bits;
  const Bits first = x.gap.settled<kDrops>(gap, n), second = x.duration.settled<kDrops>(duration, n);
  if (first.count != 0 && second.count != 0) [[likely]] return bits_.bits(first.value | second.value << first.count, first.count + second.count);
  first.count != 0 ? bits_.bits(first) : write_exact_time(gap, x.gap);
  second.count != 0 ? bits_.bits(second) : write_exact_time(duration, x.duration);
}

template <class Is>
inline bool BlockEncoder::add_again(const Is& is, const EventTimes& times) noexcept {
  if (sure_ == 0 || (times.wait_ns != 0 && !waits_)) [[unlikely]] return false;
  const std::uint16_t place = model_.present_place();
  if (place == BlockModel::kNowhere || !is(keys_[place])) [[unlikely]] return false;
  Expectation& x = model_.at(place);
  const std::uint64_t gap = times.enter_ns - clock_, duration = times.exit_ns - times.enter_ns;
  if (exact(times)) [[likely]] {
    clock_ = times.exit_ns;
    (gap | duration) >> head_.time_bits == 0 ? write_settled<false>(gap, duration, x) : write_settled<true>(gap, duration, x);
    write_other_times(times, x);
  } else {
    write_times(times, x);
  }
  --sure_;
  ++run_;
  model_.learned_again(place);
  ++head_.events;
  ++next_event_;
  return true;
}

}  // namespace fallow::trace
