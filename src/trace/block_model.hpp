// What encoder and decoder of a block both expect of the next event: its template and values from the context of
// the last four events, or, where that is new, from what followed the last event before. They stay in step
// because each learns the same after each event.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/block_format.hpp"

namespace fallow::trace {

/// A duration's expectation, in time codes, and how far off the last ones were.
struct TimeState {
  std::uint64_t mean = 0;
  std::uint32_t spread = 0;  ///< mean of the zigzag residuals, in sixteenths
  std::uint32_t seen = 0;

  unsigned rice_parameter() const noexcept;
  void learn(std::uint64_t code, std::uint64_t residual, unsigned time_bits) noexcept;
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
  std::uint32_t expected() noexcept;
  /// Expectation of the values of an event with this known template; after expected().
  const Expectation& expectation(std::uint32_t event_template) const noexcept;
  /// The event was `learned.event_template` with these values and times.
  void learn(Expectation& learned);

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
    Expectation last;
  };
  static constexpr std::size_t kOrder = 4;

  std::vector<Known> known_;
  // The table of contexts is sparse: a loop of a program has few. So it holds places in a dense array, and what is
  // touched of a reader's memory stays small, where thousands of ranks stand side by side.
  std::vector<std::uint16_t> slots_;  // 1 + place in contexts_; 0: none in this block
  std::vector<Expectation> contexts_;
  std::uint32_t templates_ = 0;
  unsigned context_bits_ = kMinContextBits;
  std::array<std::uint32_t, kOrder> recent_{};
  std::uint32_t at_ = 0;  ///< events learned
  std::uint32_t previous_ = kNone;
  std::size_t slot_ = 0;
  std::uint32_t check_ = 0;
  bool context_valid_ = false;
  std::uint32_t used_ = 0, replaced_ = 0;
};

}  // namespace fallow::trace
