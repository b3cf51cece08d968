// Meetings: collective calls that nobody leaves before all have come to them. Who comes early need not wake those who sleep there;
// who comes last wakes them all, most of them through others.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pmpi/wait_state.hpp"

namespace fallow::pmpi {

/// Whether an MPI function is one, if there is anything to send. Not those whose sizes differ between ranks: some rank may have
/// nothing to wait for.
inline bool is_meeting(std::string_view function) noexcept {
  constexpr std::array<std::string_view, 5> kMeetings = {"MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block"};
  if (function.ends_with("_c")) function.remove_suffix(2);
  return std::find(kMeetings.begin(), kMeetings.end(), function) != kMeetings.end();
}

/// A number that tells these ranks, in this order, from others; never 0.
inline std::uint32_t number_of(std::span<const std::int32_t> ranks) noexcept {
  std::uint64_t hash = ranks.size();
  for (const std::int32_t rank : ranks) hash = (hash ^ static_cast<std::uint32_t>(rank)) * 0x9e3779b97f4a7c15u;
  return static_cast<std::uint32_t>(hash >> 32) | 1u;
}

/// When the last rank came to the latest meetings of each group of ranks, as far as it found somebody asleep. What others wait after
/// that is for those who woke late, and no measure of how long the next meeting is to be waited for.
///
/// Lies in the node's page: all zero at first, any process may call any member at any time.
class Arrivals {
 public:
  /// The last one has come at this tick; `members`: see number_of().
  void last_came(std::uint32_t members, std::uint64_t tick) noexcept {
    place(members).store((tick & ~kMark) | (members & kMark), std::memory_order_relaxed);
  }

  /// Tick at which that was, give or take 1023; 0: another group has had its place since, or there was none.
  std::uint64_t latest(std::uint32_t members) const noexcept {
    const std::uint64_t kept = place(members).load(std::memory_order_relaxed);
    return (kept & kMark) == (members & kMark) ? kept & ~kMark : 0;
  }

 private:
  static constexpr std::uint64_t kMark = 1023;  // bits of a tick that tell the group instead
  static constexpr unsigned kMarkBits = 10;
  static constexpr std::size_t kPlaces = 16;

  std::atomic<std::uint64_t>& place(std::uint32_t members) noexcept { return latest_[(members >> kMarkBits) % kPlaces]; }
  const std::atomic<std::uint64_t>& place(std::uint32_t members) const noexcept { return latest_[(members >> kMarkBits) % kPlaces]; }

  std::array<std::atomic<std::uint64_t>, kPlaces> latest_{};
};

/// Where a call that may be a meeting is made.
struct Venue {
  bool shared_cores = false;      ///< ranks that are ready may not run: what they do says nothing
  bool started_here = true;       ///< all ranks that were started together are seen
  bool several_threads = false;   ///< in MPI, in some rank of the node: what it does is not told by one
};

/// Whether by what each rank does there those that have come to a meeting can be told from those that have not.
constexpr bool tells_who_came(const Venue& venue) noexcept { return !venue.shared_cores && venue.started_here && !venue.several_threads; }

/// Whether a rank in a blocking call that has moved data for `busy_ns` leaves those asleep who sleep in meetings. `collective`: with all of
/// the call's ranks. In a meeting that is not told nobody may be there to wake them all, and long data are to be passed on.
constexpr bool leaves_meetings_asleep(bool collective, bool meets, bool told, double busy_ns) noexcept {
  return collective && (!meets || (told && busy_ns <= kColdPollNs));
}

/// Ranks [from, to) in one word, all zero if there are none; for those that have a `to` of 1 at least.
constexpr std::uint64_t range_of(std::int32_t from, std::int32_t to) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(to)} << 32 | static_cast<std::uint32_t>(from);
}
constexpr std::int32_t begin_of(std::uint64_t range) noexcept { return static_cast<std::int32_t>(range & 0xffff'ffffu); }
constexpr std::int32_t end_of(std::uint64_t range) noexcept { return static_cast<std::int32_t>(range >> 32); }

/// Wakes those of [from, to) that sleep, and hands each a part of those behind it: `wake(i, end)` wakes i, which is to do the same with
/// [i + 1, end), and returns false if i does not sleep. Of n sleepers each is woken after at most log2(n) + 1 others, one after the other.
template <class Wake>
void wake_by_halves(std::int32_t from, std::int32_t to, Wake wake) {
  while (from < to) {
    const std::int32_t middle = from + (to - from) / 2;
    for (std::int32_t i = middle; i < to && !wake(i, to);) ++i;
    to = middle;
  }
}

}  // namespace fallow::pmpi
