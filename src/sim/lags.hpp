// How much later everything is than if nothing had ever rested: by links, switches and cards at rest a message comes to lag,
// by the message a link that it takes and a rank that waits for it, by the rank what it sends. Of two that meet, the later
// goes on; had nothing rested, it might have been the other: so waiting for something else hides a lag, and what is left of
// it at the end is what the program is slower by. Messages carry their lag as those of a transparent clock carry how
// long they were held (IEEE 1588); nobody looks ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/time.hpp"

namespace fallow::sim {

class Lags {
 public:
  /// Lag of what goes on when both are there, at `a` and at `b`.
  static constexpr Time joined(Time a, Time lag_a, Time b, Time lag_b) noexcept {
    return std::max(a, b) - std::max(a - lag_a, b - lag_b);
  }

  Time& rank(std::uint32_t i) { return entry(ranks_, i); }
  Time& message(std::uint32_t i) { return entry(messages_, i); }
  Time& request(std::uint32_t i) { return entry(requests_, i); }
  Time& collective(std::uint32_t i) { return entry(collectives_, i); }
  Time& link(std::uint32_t i) { return entry(links_, i); }
  /// A message comes to a link at `at`, which the ones before hold until `free`, and takes it at `start`. A link never hides
  /// a lag, as somebody else goes first then.
  void take(std::uint32_t link_number, std::uint32_t message_number, Time free, Time at, Time start) {
    Time& mine = message(message_number);
    Time& before = link(link_number);
    mine = before = std::max(mine, start - std::max(at - mine, free - before));
  }
  /// The most of ranks `first` to `last`, which is not among them.
  Time most(std::uint32_t first, std::uint32_t last) {
    Time most = 0;
    for (std::uint32_t r = first; r < last; ++r) most = std::max(most, rank(r));
    return most;
  }
  std::size_t memory_bytes() const noexcept {
    return (ranks_.capacity() + messages_.capacity() + requests_.capacity() + collectives_.capacity() + links_.capacity()) * sizeof(Time);
  }

 private:
  static Time& entry(std::vector<Time>& all, std::uint32_t i) {
    if (i >= all.size()) [[unlikely]] all.resize(std::size_t{i} + 1 + i / 2);
    return all[i];
  }

  std::vector<Time> ranks_, messages_, requests_, collectives_, links_;  // by number
};

}  // namespace fallow::sim
