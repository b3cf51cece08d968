// The last calls of a rank that was killed: they lie in the ring of its file, but are not in the totals yet, which the
// runtime brings up to date now and then.
#pragma once

#include <span>
#include <vector>

#include "trace/rank_file.hpp"

namespace fallow::trace {

/// Whether all of a call was a wait though its event bears no mark of one: a blocking call that took long where ranks
/// outnumber processors polled too few times to look at the time. The totals count it so.
bool waited_unmarked(const RankHeader& header, const Event& e) noexcept;

/// The events in `ring` that follow the first `counters.events`, oldest first, at most kPendingEvents of them. What was
/// left of an earlier turn of the ring, or is torn by the kill, ends them.
std::vector<Event> ring_tail(const RankHeader& header, const ThreadCounters& counters, std::span<const Event> ring);

/// Adds `tail` to the totals of a thread and of its functions, as the runtime would have. An event tells its wait in
/// microseconds, its sleeps as one and nothing of delays, so that these are lower bounds.
/// @param ops  one for each of header.op_slots
void add_tail(const RankHeader& header, std::span<const Event> tail, ThreadCounters& counters, std::span<OpStats> ops);

/// The call in which the thread was when its record ended: that of `counters.open` if it is whole and began when the calls in
/// `ring` and `tail`, which follows them, were over. Its `enter` is 0 if there is none. `counters` is without `tail`.
OpenCall open_call(const RankHeader& header, const ThreadCounters& counters, std::span<const Event> ring, std::span<const Event> tail);

/// Adds it to the totals of the thread, which have the tail, and of its function, as a wait that ended when it was last seen. It
/// is no event. Returns it as its call site's only call; the address stands in a module of the header, or is 0.
SiteStats add_open(const RankHeader& header, const OpenCall& open, ThreadCounters& counters, std::span<OpStats> ops);

/// The return address of an event that is not in the totals: the one in a module of the header that ends as the event says; 0
/// where there is none, or several.
std::uint64_t return_address(const RankHeader& header, const Event& e) noexcept;

/// Statistics of `tail` by function, communicator and return address.
std::vector<SiteStats> sites_of_tail(const RankHeader& header, std::span<const Event> tail, std::uint64_t last_exit);

}  // namespace fallow::trace
