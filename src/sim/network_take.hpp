// What every message does most often, for the sources that make up Network.
#pragma once

#include "sim/network.hpp"

namespace fallow::sim {

/// Takes a link at `at`, the earliest, and moves `tail` to its far end. Returns when the head gets there. Without a
/// branch on whether it rested or is taken: in programs whose ranks go out of step neither can be foreseen.
inline Time Network::take(std::uint32_t number, Time at, Time& tail, std::uint64_t bytes, Manner manner) noexcept {
  if (!plain_) [[unlikely]] {
    if (!recorded_) return take_any(number, at, tail, bytes, manner);
    tell_take(number, at);
  }
  const bool bulk = manner.bulk;
  Link& link = links_[number];
  const RestState& rest = machine_.link.rest;
  const Time begin = link.free + timers_[number >= edge_links_ ? 1 : 0];  // as detail::after_timer has it
  const Time low_from = begin + rest.down;
  const Time rested = at > begin ? -1 : 0;  // all bits
  const Time wake = std::max(at, low_from);
  const Time taken = std::max(at, link.free);
  const Time start = taken + ((wake + rest.up - taken) & rested);
  link.low += (wake - low_from) & rested;
  link.delay += (start - at) & rested;
  link.rests -= static_cast<std::uint32_t>(rested);
  link.bulk &= 0u - static_cast<std::uint32_t>(at <= link.free);  // `?` becomes a branch
  const Time duration = serialize(bytes, rate_);
  link.busy += duration;
  if (link.bulk != 0 && !bulk) [[unlikely]] return slip_in(number, at, tail, duration);
  const Time end = std::max(start + duration, tail);
  if (bulk) set_bulk(number, bulk_of(number) + end - start);
  link.free = end;
  tail = end + machine_.link.latency;
  return start + machine_.link.latency;
}

}  // namespace fallow::sim
