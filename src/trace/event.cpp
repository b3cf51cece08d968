#include "trace/event.hpp"

#include <algorithm>

namespace fallow::trace {

MemorySource::MemorySource(std::uint32_t ranks) : ranks_(ranks) {
  info_.ranks.resize(ranks);
  info_.sites.resize(1);
  info_.modules.resize(1);
  info_.comms = CommGroups(ranks);
}

void MemorySource::add(std::uint32_t rank, const CallEvent& event) {
  Rank& r = ranks_[rank];
  RankInfo& i = info_.ranks[rank];
  r.events.push_back(event);
  r.outcomes = r.outcomes || tells_outcomes(event);
  r.offsets.push_back({r.counts.size(), r.requests.size()});
  r.counts.insert(r.counts.end(), event.counts.begin(), event.counts.end());
  r.counts.insert(r.counts.end(), event.recv_counts.begin(), event.recv_counts.end());
  r.requests.insert(r.requests.end(), event.requests.begin(), event.requests.end());
  r.requests.insert(r.requests.end(), event.completed.begin(), event.completed.end());
  if (i.events++ == 0) i.first_ns = event.enter_ns;
  i.last_ns = std::max(i.last_ns, event.exit_ns);
}

bool MemorySource::next(std::uint32_t rank, CallEvent& event) {
  Rank& r = ranks_[rank];
  if (r.next == r.events.size()) return false;
  give(r, r.next++, event);
  return true;
}

void MemorySource::give(const Rank& r, std::size_t number, CallEvent& event) {
  const Offsets at = r.offsets[number];
  event = r.events[number];
  const std::uint64_t* counts = r.counts.data() + at.counts;
  const std::uint32_t* requests = r.requests.data() + at.requests;
  event.counts = {counts, event.counts.size()};
  event.recv_counts = {counts + event.counts.size(), event.recv_counts.size()};
  event.requests = {requests, event.requests.size()};
  event.completed = {requests + event.requests.size(), event.completed.size()};
}

}  // namespace fallow::trace
