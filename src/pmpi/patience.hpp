// How long a wait is left alone: at a place where waits end too soon to be slept in, nothing is decided before they last
// longer than they usually do. Deciding, and learning from it, takes as long as a message of some kilobytes does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace fallow::pmpi {

/// What one thread knows of the short waits at each place. Integers only, so that the program's floating-point state is
/// left alone; places that share an entry forget each other.
class Patience {
 public:
  /// Idle polls that a wait at this place may take before it is looked at; 0: it is looked at right away.
  std::uint32_t polls(std::uint64_t place) const noexcept {
    const Entry& e = entry(place);
    return e.place == place && e.run >= kRun ? 2 * e.longest : 0;
  }

  /// A wait that was looked at ended before a sleep would have paid. `polls`: how many it took in all.
  void short_wait(std::uint64_t place, std::uint64_t polls) noexcept {
    Entry& e = entry(place);
    if (e.place != place) e = {.place = place};
    if (e.run < kRun) ++e.run;
    const std::uint32_t forgotten = e.longest - e.longest / kRun;
    e.longest = std::max(forgotten, static_cast<std::uint32_t>(std::min<std::uint64_t>(polls, kMostPolls)));
  }

  /// A wait slept, or lasted long enough for it.
  void long_wait(std::uint64_t place) noexcept {
    if (Entry& e = entry(place); e.place == place) e = {};
  }

 private:
  static constexpr std::uint32_t kRun = 8;            // short waits in a row before the next is left alone
  static constexpr std::uint32_t kMostPolls = 50'000; // milliseconds of the fastest polls
  static constexpr std::size_t kEntries = 64;

  struct Entry {
    std::uint64_t place = 0;
    std::uint32_t run = 0, longest = 0;
  };

  const Entry& entry(std::uint64_t place) const noexcept { return entries_[place >> 58]; }
  Entry& entry(std::uint64_t place) noexcept { return entries_[place >> 58]; }

  std::array<Entry, kEntries> entries_{};
};

}  // namespace fallow::pmpi
