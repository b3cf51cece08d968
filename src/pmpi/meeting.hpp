// Meetings: collective calls that nobody leaves before all have come to them. Who comes early need not wake those who sleep there;
// who comes last wakes them all, most of them through others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

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
