// What encoder and decoder of a block both expect of the next event: its template and values from the context of
// the last four events, or, where that is new, from what followed the last event before. They stay in step
// because each learns the same after each event.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "trace/block_format.hpp"
#include "trace/coding.hpp"

namespace fallow::trace {

/// A duration's expectation, in time codes, and how far off the last ones were. Small: readers of thousands of ranks
/// keep dozens of them for each.
struct TimeState {
  std::uint32_t mean = 0;
  std::uint32_t spread : 30 = 0;  ///< mean of the zigzag residuals, in sixteenths
  std::uint32_t seen : 2 = 0;     ///< times learned, up to kSlow

  static constexpr std::uint64_t kLargestResidual = 1u << 24;  ///< longer ones teach no more about the spread
  static constexpr std::uint32_t kUnseenSpread = 16u << 12;
  static constexpr unsigned kSlow = 2, kSpreadSlow = 3;        ///< weights of a new value: 1/4 and 1/8

  /// At most 24.
  unsigned rice_parameter() const noexcept {
    // The best k is about log2(mean * ln 2); 11/16 stands for ln 2, and spread is in sixteenths.
    const std::uint64_t mean_residual = seen == 0 ? kUnseenSpread : spread;
    return static_cast<unsigned>(std::bit_width((mean_residual * 11) >> 8));
  }
  /// learn() of what was expected, by one that has learned before.
  void confirm() noexcept {
    const auto s = static_cast<std::int32_t>(spread);
    if (s != 0) spread = static_cast<std::uint32_t>(s + (-s >> kSpreadSlow)) & kSpreadMask;
    seen = kSlow;
  }
  void learn(std::uint64_t code, std::uint64_t residual, unsigned time_bits) noexcept {
    if (seen == 0) [[unlikely]] {
      mean = static_cast<std::uint32_t>(code);
      spread = (1u << time_bits) & kSpreadMask;  // a sixteenth of the duration, in sixteenths of a step
      seen = 1;
      return;
    }
    // The first few count more, so that the mean settles soon.
    mean = static_cast<std::uint32_t>(mean + ((static_cast<std::int64_t>(code) - mean) >> seen));
    const auto r = static_cast<std::int32_t>(std::min(residual, kLargestResidual) << 4);
    const auto s = static_cast<std::int32_t>(spread);
    spread = static_cast<std::uint32_t>(s + ((r - s) >> kSpreadSlow)) & kSpreadMask;
    seen = kSlow;
  }

 private:
  static constexpr std::uint32_t kSpreadMask = (1u << 30) - 1;
};
static_assert(time_code_max(kMaxTimeBits) < ~0u && TimeState::kLargestResidual << 4 < 1u << 30 && TimeState::kSlow == 2);

struct Expectation {
  std::uint32_t check = 0;
  std::uint16_t event_template = 0;
  std::uint16_t slot = 0;    ///< of the table of contexts
  std::uint16_t next = ~0;   ///< place of the context that followed
  std::uint32_t shape = 0;   ///< of template and values, for readers that number them; 0: not looked up
  Values values;
  TimeState gap, duration, wait, compute;
};
static_assert(sizeof(Expectation) == 80);

class BlockModel {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  /// The encoder takes all memory here. The decoder's starts small and grows.
  explicit BlockModel(bool fixed);

  /// Forgets everything.
  void begin(unsigned context_bits);

  /// The template expected next; kNone: no idea.
  std::uint32_t expected() noexcept;
  /// What to expect of an event with this known template; once after expected(). It is the context's own entry, which
  /// the caller brings up to date with the event's values and times. Allocates where the memory is not fixed.
  Expectation& expectation(std::uint32_t event_template);
  /// In place of both: the entry of the present context; null where that is new.
  Expectation* expected_context() noexcept {
    expected();
    return context_valid_ ? &contexts_[place_] : nullptr;
  }
  /// Where the present context's entry stands, and that of the event that was learned last. Below 2^kMaxContextBits.
  std::uint16_t place() const noexcept { return place_; }
  std::uint16_t last_place() const noexcept { return previous_place_; }
  /// The event has this template and these bytes; its entry is up to date.
  void learned(std::uint32_t event_template, std::uint64_t bytes) noexcept;

  std::uint32_t templates() const noexcept { return templates_; }
  const Template& event_template(std::uint32_t i) const noexcept { return known_[i].fields; }
  /// False if there are too many. Allocates where the memory is not fixed.
  bool add_template(const Template& t);

  /// Brings nearer what the next events of a loop will touch.
  void prefetch() const noexcept {
    constexpr std::size_t kAhead = 1024, kLine = 64;  // a dozen contexts
    if (previous_place_ == kNowhere) return;
    const std::uint16_t next = contexts_[previous_place_].next;
    const auto* at = reinterpret_cast<const char*>(&contexts_[next < used_ ? next : previous_place_]);
    const auto* end = reinterpret_cast<const char*>(contexts_.data() + used_);
    for (std::size_t i = 0; i < kAhead && at + i < end; i += kLine) __builtin_prefetch(at + i, 1);
    const auto* known = reinterpret_cast<const char*>(known_.data());
    for (std::size_t i = 0; i < kAhead / 2 && i < templates_ * sizeof(Known); i += kLine) __builtin_prefetch(known + i);
  }

  /// Contexts in use now and contexts that others pushed out: for choosing the next block's size.
  std::uint32_t contexts_used() const noexcept { return used_; }
  std::uint32_t contexts_replaced() const noexcept { return replaced_; }

 private:
  static constexpr std::uint16_t kNowhere = 0xffff, kSaved = 0xfffe;
  struct Known {
    Template fields;
    std::uint32_t successor = kNone;
    std::uint16_t place = kNowhere;  ///< context with the template's last event; kSaved: in saved_
  };
  Expectation last_of(std::uint32_t event_template) const noexcept;
  std::uint16_t place_for(std::uint32_t event_template);

  static constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  static std::uint32_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t h = (a ^ std::rotl(b, 29)) * kMix;
    return static_cast<std::uint32_t>(h >> 32);
  }
  static constexpr std::size_t kOrder = 4;

  std::vector<Known> known_;
  // The table of contexts is sparse: a loop of a program has few. So it holds places in a dense array, and what is
  // touched of a reader's memory stays small, where thousands of ranks stand side by side.
  std::vector<std::uint16_t> slots_;  // 1 + place in contexts_; 0: none in this block
  std::vector<Expectation> contexts_;
  std::vector<Expectation> saved_;    // by template: the last event, once another has taken its context
  std::uint32_t templates_ = 0;
  unsigned context_bits_ = kMinContextBits;
  std::array<std::uint32_t, kOrder> recent_{};  ///< of the last events, oldest first
  std::uint32_t previous_ = kNone;
  std::size_t slot_ = 0;
  std::uint32_t check_ = 0;
  std::uint16_t place_ = kNowhere;  ///< of the present context, where it is valid; then of the event's
  std::uint16_t previous_place_ = kNowhere;
  bool context_valid_ = false;
  std::uint32_t used_ = 0, replaced_ = 0;
};

inline std::uint32_t BlockModel::expected() noexcept {
  std::uint64_t h = kMix;
  for (const std::uint32_t r : recent_) h = (std::rotl(h, 17) ^ r) * kMix;
  slot_ = h >> (64 - context_bits_);
  check_ = static_cast<std::uint32_t>(h);
  // A loop's contexts follow each other: then the table, which is large, need not be asked.
  place_ = previous_place_ == kNowhere ? kNowhere : contexts_[previous_place_].next;
  if (place_ < used_ && contexts_[place_].slot == slot_) [[likely]] {
    context_valid_ = contexts_[place_].check == check_;
  } else {
    place_ = static_cast<std::uint16_t>(slots_[slot_] - 1);  // 0: kNowhere
    context_valid_ = place_ != kNowhere && contexts_[place_].check == check_;
  }
  if (context_valid_) return contexts_[place_].event_template;
  return previous_ == kNone ? kNone : known_[previous_].successor;
}

inline Expectation& BlockModel::expectation(std::uint32_t event_template) {
  if (!context_valid_ || contexts_[place_].event_template != event_template) [[unlikely]] place_ = place_for(event_template);
  return contexts_[place_];
}

inline void BlockModel::learned(std::uint32_t t, std::uint64_t bytes) noexcept {
  // What stays as it was is not written: with many ranks every touched line counts.
  if (known_[t].place != place_) known_[t].place = place_;
  if (previous_ != kNone) {
    if (known_[previous_].successor != t) known_[previous_].successor = t;
    if (contexts_[previous_place_].next != place_) contexts_[previous_place_].next = place_;
  }
  previous_ = t;
  previous_place_ = place_;
  for (std::size_t i = 1; i < kOrder; ++i) recent_[i - 1] = recent_[i];
  recent_[kOrder - 1] = fold(t, bytes);
  // What the next event will ask for comes nearer while the caller deals with this one.
  if (const std::uint16_t next = contexts_[place_].next; next < used_) __builtin_prefetch(&contexts_[next], 1);
  if (known_[t].successor != kNone) __builtin_prefetch(&known_[known_[t].successor]);
}

}  // namespace fallow::trace
