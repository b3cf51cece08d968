// What encoder and decoder of a block both expect of the next event: its template and values from the context of
// the last four events, or, where that is new, from what followed the last event before. They stay in step
// because each learns the same after each event.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/block_format.hpp"

namespace fallow::trace {

/// A duration's expectation, in time codes, and how far off the last ones were.
struct TimeState {
  std::uint64_t mean = 0;
  std::uint32_t spread = 0;  ///< mean of the zigzag residuals, in sixteenths
  std::uint32_t seen = 0;

  unsigned rice_parameter() const noexcept {
    // The best k is about log2(mean * ln 2); 11/16 stands for ln 2, and spread is in sixteenths.
    const std::uint64_t mean_residual = seen == 0 ? kUnseenSpread : spread;
    return static_cast<unsigned>(std::bit_width((mean_residual * 11) >> 8));
  }

  void learn(std::uint64_t code, std::uint64_t residual, unsigned time_bits) noexcept {
    if (seen == 0) [[unlikely]] {
      mean = code;
      spread = 1u << time_bits;  // a sixteenth of the duration, in sixteenths of a step
      seen = 1;
      return;
    }
    // The first few count more, so that the mean settles soon.
    const unsigned weight = std::min(seen, kSlow);
    mean = static_cast<std::uint64_t>(static_cast<std::int64_t>(mean) + (static_cast<std::int64_t>(code - mean) >> weight));
    const auto r = static_cast<std::int64_t>(std::min(residual, kLargestResidual) << 4);
    spread = static_cast<std::uint32_t>(spread + ((r - static_cast<std::int64_t>(spread)) >> kSpreadSlow));
    ++seen;
  }

 private:
  static constexpr std::uint64_t kLargestResidual = 1u << 24;  // longer ones teach no more about the spread
  static constexpr std::uint32_t kUnseenSpread = 16u << 12;
  static constexpr unsigned kSlow = 2, kSpreadSlow = 3;        // weights of a new value: 1/4 and 1/8
};

struct Expectation {
  std::uint32_t event_template = ~0u;
  std::uint32_t check = 0;
  Values values;
  TimeState gap, duration, wait, compute;
};

class BlockModel {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  /// The encoder takes all memory here. The decoder's starts small and grows.
  explicit BlockModel(bool fixed);

  /// Forgets everything.
  void begin(unsigned context_bits);

  /// The template expected next; kNone: no idea.
  std::uint32_t expected() noexcept {
    std::uint64_t h = kMix;
    for (const std::uint32_t r : recent_) h = (std::rotl(h, 17) ^ r) * kMix;
    slot_ = h >> (64 - context_bits_);
    check_ = static_cast<std::uint32_t>(h);
    const std::uint16_t place = slots_[slot_];
    context_valid_ = place != 0 && contexts_[place - 1u].check == check_;
    if (context_valid_) [[likely]] return contexts_[place - 1u].event_template;
    return previous_ == kNone ? kNone : known_[previous_].successor;
  }

  /// What is expected of the values and times of an event with this known template; after expected(). The caller
  /// puts what the event had in their place and ends with learned().
  Expectation& expectation(std::uint32_t event_template) {
    const std::uint16_t place = slots_[slot_];
    if (context_valid_ && contexts_[place - 1u].event_template == event_template) [[likely]] {
      known_[event_template].place = place;
      return contexts_[place - 1u];
    }
    return take_context(event_template);
  }

  /// The event has this template and these bytes.
  void learned(std::uint32_t event_template, std::uint64_t bytes) noexcept {
    if (previous_ != kNone) known_[previous_].successor = event_template;
    previous_ = event_template;
    for (std::size_t i = 1; i < kOrder; ++i) recent_[i - 1] = recent_[i];
    const std::uint64_t h = (event_template ^ std::rotl(bytes, 29)) * kMix;
    recent_[kOrder - 1] = static_cast<std::uint32_t>(h >> 32);
  }

  std::uint32_t templates() const noexcept { return templates_; }
  const Template& event_template(std::uint32_t i) const noexcept { return known_[i].fields; }
  /// False if there are too many. Allocates where the memory is not fixed.
  bool add_template(const Template& t);

  /// Contexts in use now and contexts that others pushed out: for choosing the next block's size.
  std::uint32_t contexts_used() const noexcept { return used_; }
  std::uint32_t contexts_replaced() const noexcept { return replaced_; }

 private:
  struct Known {
    Template fields;
    std::uint32_t successor = kNone;
    std::uint16_t place = 0;  // 1 + place in contexts_ of its newest expectation; 0: it is `last`
    Expectation last;         // kept up to date only when the context is taken by another template
  };
  static constexpr std::size_t kOrder = 4;
  static constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

  Expectation& take_context(std::uint32_t event_template);

  std::vector<Known> known_;
  // The table of contexts is sparse: a loop of a program has few. So it holds places in a dense array, and what is
  // touched of a reader's memory stays small, where thousands of ranks stand side by side.
  std::vector<std::uint16_t> slots_;  // 1 + place in contexts_; 0: none in this block
  std::vector<Expectation> contexts_;
  std::uint32_t templates_ = 0;
  unsigned context_bits_ = kMinContextBits;
  std::array<std::uint32_t, kOrder> recent_{};  ///< of the last events, oldest first
  std::uint32_t previous_ = kNone;
  std::size_t slot_ = 0;
  std::uint32_t check_ = 0;
  bool context_valid_ = false;
  std::uint32_t used_ = 0, replaced_ = 0;
};

}  // namespace fallow::trace
