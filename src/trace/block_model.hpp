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
  std::uint32_t spread_and_seen = kUnseenSpread;  ///< see there

  static constexpr std::uint64_t kLargestResidual = 1u << 24;  ///< longer ones teach no more about the spread
  static constexpr std::uint32_t kUnseenSpread = 16u << 12;
  static constexpr unsigned kSlow = 2, kSpreadSlow = 3;        ///< weights of a new value: 1/4 and 1/8

  /// Mean of the zigzag residuals, in sixteenths.
  std::uint32_t spread() const noexcept { return spread_and_seen & kSpreadMask; }
  /// Times learned, up to kSlow.
  unsigned seen() const noexcept { return spread_and_seen >> kSpreadBits; }

  /// At most 24.
  unsigned rice_parameter() const noexcept {
    // The best k is about log2(mean * ln 2); 11/16 stands for ln 2, and the spread is in sixteenths. That is the width of the
    // product without its last 8 bits, which are set for a product of fewer.
    return (63u ^ static_cast<unsigned>(std::countl_zero(std::uint64_t{spread()} * 11 | 0xff))) - 7;
  }
  /// learn() of what was expected, by one that has learned before.
  void confirm() noexcept {
    const auto s = static_cast<std::int32_t>(spread());
    set(kSlow, s + (-s >> kSpreadSlow));
  }
  /// The code of a duration that is kept to the nanosecond, and learns it, where it is a short code of a state that has
  /// settled: at most half of BitWriter::kMostAtOnce. Else none, and nothing is learned. `kDrops`: the duration may have more
  /// than `time_bits` bits.
  template <bool kDrops>
  Bits settled(std::uint64_t duration, unsigned time_bits) noexcept {
    constexpr unsigned kMostCoded = 24;  // then the residual is below kLargestResidual
    const TimeCode c = kDrops ? time_code_floor(duration, time_bits) : TimeCode{duration, 0};
    const auto off = static_cast<std::int64_t>(c.code - mean);
    const std::uint64_t residual = zigzag(off);
    const unsigned k = rice_parameter();
    const std::uint64_t quotient = residual >> k;
    const auto q = static_cast<unsigned>(quotient), coded = q + 1 + k;
    if (seen() != kSlow || quotient >= kRiceEscape || coded > kMostCoded) [[unlikely]] return {};
    if (kDrops && coded + c.dropped > BitWriter::kMostAtOnce / 2) [[unlikely]] return {};
    const auto r = static_cast<std::int32_t>(residual << 4), s = static_cast<std::int32_t>(spread());
    mean = static_cast<std::uint32_t>(mean + (off >> kSlow));
    set(kSlow, s + ((r - s) >> kSpreadSlow));
    const std::uint64_t value = ((2 * (residual - (quotient << k)) + 1) << q) - 1;  // as write_long_rice() has it
    if constexpr (!kDrops) return {value, coded};
    return {value | (duration & ((std::uint64_t{1} << c.dropped) - 1)) << coded, coded + c.dropped};
  }
  void learn(std::uint64_t code, std::uint64_t residual, unsigned time_bits) noexcept {
    const unsigned before = seen();
    if (before == 0) [[unlikely]] {
      mean = static_cast<std::uint32_t>(code);
      set(1, static_cast<std::int32_t>(1u << time_bits));  // a sixteenth of the duration, in sixteenths of a step
      return;
    }
    // The first few count more, so that the mean settles soon.
    mean = static_cast<std::uint32_t>(mean + ((static_cast<std::int64_t>(code) - mean) >> before));
    const auto r = static_cast<std::int32_t>(std::min(residual, kLargestResidual) << 4);
    const auto s = static_cast<std::int32_t>(spread());
    set(kSlow, s + ((r - s) >> kSpreadSlow));
  }

 private:
  static constexpr unsigned kSpreadBits = 30;
  static constexpr std::uint32_t kSpreadMask = (1u << kSpreadBits) - 1;
  /// `spread` is between 0 and the largest residual's, as both that it comes from are.
  void set(unsigned seen, std::int32_t spread) noexcept { spread_and_seen = seen << kSpreadBits | static_cast<std::uint32_t>(spread); }
};

static_assert(time_code_max(kMaxTimeBits) < ~0u && TimeState::kLargestResidual << 4 < 1u << 30 && TimeState::kSlow == 2);

struct Expectation {
  static constexpr std::uint16_t kNoSuccessor = (1u << 13) - 1;
  std::uint32_t check = 0;
  std::uint16_t event_template = 0;
  std::uint16_t slot = 0;    ///< of the table of contexts
  std::uint16_t next = ~0;   ///< place of the context that followed
  std::uint16_t successor : 13 = kNoSuccessor;  ///< what learned_seldom() has written as its template's, while `newest`
  std::uint16_t newest : 1 = 0;                 ///< for learned_seldom(): it has the last event of its template
  std::uint16_t cpu_time : 1 = 0;               ///< the template's kEventCpuTime
  std::uint32_t shape = 0;   ///< of template and values, for readers that number them; 0: not looked up
  Values values;
  TimeState gap, duration, wait, compute;
};
static_assert(sizeof(Expectation) == 80 && kTemplates <= Expectation::kNoSuccessor);

class BlockModel {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::uint16_t kNowhere = 0xffff;

  /// The encoder takes all memory here. The decoder's starts small and grows.
  explicit BlockModel(bool fixed);

  /// Forgets everything.
  void begin(unsigned context_bits);

  /// The template expected next; kNone: no idea.
  std::uint32_t expected() noexcept;
  /// What to expect of an event with this known template; once after expected(). It is the context's own entry, which
  /// the caller brings up to date with the event's values and times. Allocates where the memory is not fixed.
  Expectation& expectation(std::uint32_t event_template);
  /// In place of expected() and expectation(), after an event of the block: where the present context's entry stands,
  /// below 2^kMaxContextBits; kNowhere: it is new. Changes nothing.
  std::uint16_t present_place() const noexcept;
  Expectation& at(std::uint16_t place) noexcept { return contexts_[place]; }
  /// learned() then: the event was the one that the entry at present_place() says. Writes without looking what was there, as
  /// suits an encoder, which has one of these models, and readers, which have thousands, not.
  void learned_again(std::uint16_t place) noexcept;
  /// Where the entry of the event stands that was learned last.
  std::uint16_t last_place() const noexcept { return previous_place_; }
  /// The event has this template and these bytes; its entry is up to date. For encoders.
  void learned(std::uint32_t event_template, std::uint64_t bytes) noexcept;
  /// The same for readers: looks at nothing but the context's entry where that repeats what came before, so that what they
  /// know of templates stays out of the cache. A model is told in this way of all its events, or of none.
  void learned_seldom(std::uint32_t event_template, std::uint64_t bytes) noexcept;

  std::uint32_t templates() const noexcept { return templates_; }
  const Template& event_template(std::uint32_t i) const noexcept { return known_[i].fields; }
  /// False if there are too many. Allocates where the memory is not fixed.
  bool add_template(const Template& t);

  /// Brings nearer what the next events of a loop will touch.
  void prefetch() const noexcept {
    constexpr std::size_t kAhead = 1152, kLine = 64;  // a loop of fourteen
    if (previous_place_ == kNowhere) return;
    const std::uint16_t next = contexts_[previous_place_].next;
    const auto* at = reinterpret_cast<const char*>(&contexts_[next < used_ ? next : previous_place_]);
    const auto* end = reinterpret_cast<const char*>(contexts_.data() + used_);
    for (std::size_t i = 0; i < kAhead && at + i < end; i += kLine) __builtin_prefetch(at + i, 1);
  }

  /// Contexts in use now and contexts that others pushed out: for choosing the next block's size.
  std::uint32_t contexts_used() const noexcept { return used_; }
  std::uint32_t contexts_replaced() const noexcept { return replaced_; }

 private:
  static constexpr std::uint16_t kSaved = 0xfffe;
  struct Known {
    Template fields;
    std::uint32_t successor = kNone;
    std::uint16_t place = kNowhere;  ///< context with the template's last event; kSaved: in saved_
  };
  Expectation last_of(std::uint32_t event_template) const noexcept;
  std::uint16_t place_for(std::uint32_t event_template);
  void take_over(std::uint32_t event_template) noexcept;
  void follow(std::uint32_t event_template) noexcept;

  static constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  static std::uint32_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t h = (a ^ std::rotl(b, 29)) * kMix;
    return static_cast<std::uint32_t>(h >> 32);
  }
  static constexpr std::size_t kOrder = 4;
  std::uint64_t recent_hash() const noexcept;
  /// Of the context that has this slot of the table; kNowhere: none has.
  std::uint16_t place_at(std::size_t slot) const noexcept;
  std::size_t slot_of(std::uint64_t hash) const noexcept { return hash >> (64 - context_bits_); }
  void remember(std::uint32_t event_template, std::uint64_t bytes) noexcept {
    for (std::size_t i = 1; i < kOrder; ++i) recent_[i - 1] = recent_[i];
    recent_[kOrder - 1] = fold(event_template, bytes);
  }

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

inline std::uint64_t BlockModel::recent_hash() const noexcept {
  std::uint64_t h = kMix;
  for (const std::uint32_t r : recent_) h = (std::rotl(h, 17) ^ r) * kMix;
  return h;
}

inline std::uint16_t BlockModel::place_at(std::size_t slot) const noexcept {
  // A loop's contexts follow each other: then the table, which is large, need not be asked.
  const std::uint16_t next = previous_place_ == kNowhere ? kNowhere : contexts_[previous_place_].next;
  if (next < used_ && contexts_[next].slot == slot) [[likely]] return next;
  return static_cast<std::uint16_t>(slots_[slot] - 1);  // 0: kNowhere
}

inline std::uint16_t BlockModel::present_place() const noexcept {
  const std::uint64_t h = recent_hash();
  const std::uint16_t place = place_at(slot_of(h));
  return place != kNowhere && contexts_[place].check == static_cast<std::uint32_t>(h) ? place : kNowhere;
}

inline std::uint32_t BlockModel::expected() noexcept {
  const std::uint64_t h = recent_hash();
  slot_ = slot_of(h);
  check_ = static_cast<std::uint32_t>(h);
  place_ = place_at(slot_);
  context_valid_ = place_ != kNowhere && contexts_[place_].check == check_;
  if (context_valid_) return contexts_[place_].event_template;
  return previous_ == kNone ? kNone : known_[previous_].successor;
}

inline Expectation& BlockModel::expectation(std::uint32_t event_template) {
  if (!context_valid_ || contexts_[place_].event_template != event_template) [[unlikely]] place_ = place_for(event_template);
  return contexts_[place_];
}

inline void BlockModel::learned(std::uint32_t t, std::uint64_t bytes) noexcept {
  known_[t].place = place_;
  if (previous_ != kNone) {
    known_[previous_].successor = t;
    contexts_[previous_place_].next = place_;
  }
  previous_ = t;
  previous_place_ = place_;
  remember(t, bytes);
}

inline void BlockModel::learned_seldom(std::uint32_t t, std::uint64_t bytes) noexcept {
  Expectation& x = contexts_[place_];
  if (x.newest == 0) [[unlikely]] take_over(t);
  if (previous_ != kNone) [[likely]] {
    const Expectation& p = contexts_[previous_place_];
    if (p.next != place_ || p.successor != t || p.newest == 0) [[unlikely]] follow(t);
  }
  previous_ = t;
  previous_place_ = place_;
  remember(t, bytes);
  if (x.next < used_) __builtin_prefetch(&contexts_[x.next], 1);
}

inline void BlockModel::learned_again(std::uint16_t place) noexcept {
  Expectation& x = contexts_[place];
  const std::uint32_t t = x.event_template;
  known_[t].place = place;
  known_[previous_].successor = t;
  contexts_[previous_place_].next = place;
  previous_ = t;
  previous_place_ = place;
  remember(t, x.values.bytes);
  if (x.next < used_) __builtin_prefetch(&contexts_[x.next], 1);
}

}  // namespace fallow::trace
