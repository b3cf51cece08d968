#include "trace/statistics.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace fallow::trace {
namespace {

std::size_t gap_bin(std::uint64_t ns) noexcept {
  return static_cast<std::size_t>(std::upper_bound(kGapBoundsNs.begin(), kGapBoundsNs.end(), ns) - kGapBoundsNs.begin());
}

/// The neighbours that one rank sends to along topologies: some are none, as at the edges of a grid.
class Neighbors {
 public:
  explicit Neighbors(const CommGroups& comms) : comms_(comms) {}

  void learn(const CallEvent& e) {
    if (makes_topology(e.op) && (e.flags & kEventCountsLost) == 0) of_[e.comm].assign(e.counts.begin(), e.counts.end());
  }
  /// Bytes of the call but for those to no neighbour.
  std::uint64_t bytes_to(const CallEvent& e) const {
    const Op op = traits(e.op).blocking;
    if (!has(op, kOpNeighbor) || op == Op::neighbor_allgather || op == Op::neighbor_allgatherv) return e.bytes;
    const std::vector<std::uint64_t>* const to = on(e.comm);
    if (to == nullptr || to->empty()) return e.bytes;
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < to->size(); ++k) {
      if ((*to)[k] != 0) sum += e.counts.size() == to->size() ? e.counts[k] : e.bytes / to->size();
    }
    return sum;
  }

 private:
  /// A copy of a communicator has the neighbours of what it was made from. Null: not known.
  const std::vector<std::uint64_t>* on(std::uint32_t comm) const {
    for (; comm >= kFirstComm; comm = comms_[comm].parent) {
      if (const auto found = of_.find(comm); found != of_.end()) return &found->second;
    }
    return nullptr;
  }

  const CommGroups& comms_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> of_;  ///< by communicator: rank in it plus one, 0 for none
};

/// Bytes that the calls of one rank moved. Of a persistent request that is at each start what it sends, or collects.
class Moved {
 public:
  explicit Moved(const CommGroups& comms) : neighbors_(comms) {}

  std::uint64_t by(const CallEvent& e) {
    neighbors_.learn(e);
    if (e.op == Op::start || e.op == Op::startall) return started(e);
    if (e.op == Op::request_free) {
      for (const std::uint32_t request : e.requests) made_.erase(request);
    }
    if ((e.flags & kEventFailed) != 0 || e.peer == kNullPeer || e.root == kNullPeer) return made(e, 0);
    return made(e, neighbors_.bytes_to(e));
  }

 private:
  /// All that a call that makes no persistent request moves, it moves at once.
  std::uint64_t made(const CallEvent& e, std::uint64_t bytes) {
    if (!has(e.op, kOpPersistent)) return bytes;
    for (const std::uint32_t request : e.requests) made_[request] = has(e.op, kOpSends | kOpCollective) ? bytes : 0;
    return 0;
  }
  std::uint64_t started(const CallEvent& e) const {
    std::uint64_t sum = 0;
    if ((e.flags & kEventFailed) != 0) return sum;
    for (const std::uint32_t request : e.requests) {
      if (const auto found = made_.find(request); found != made_.end()) sum += found->second;
    }
    return sum;
  }

  Neighbors neighbors_;
  std::unordered_map<std::uint32_t, std::uint64_t> made_;  ///< by number of the request
};

void add_rank(Statistics& s, EventSource& source, std::uint32_t rank, Looking& looking) {
  std::map<std::uint16_t, std::uint64_t> last_exit;  // by thread
  Moved moved(source.info().comms);
  CallEvent e;
  source.rewind(rank);
  looking.rank();
  while (source.next(rank, e)) {
    looking.event();
    OpTotals& op = s.ops[static_cast<std::size_t>(e.op)];
    ++s.events;
    ++op.calls;
    op.bytes += moved.by(e);
    op.time_ns += e.exit_ns - e.enter_ns;
    op.wait_ns += e.wait_ns;
    s.mpi_ns += e.exit_ns - e.enter_ns;
    s.compute_ns += e.compute_ns;
    const auto [last, first_call] = last_exit.try_emplace(e.thread, e.exit_ns);
    if (first_call) continue;
    const std::uint64_t gap = e.enter_ns > last->second ? e.enter_ns - last->second : 0;
    ++s.gap_count[gap_bin(gap)];
    s.gap_ns[gap_bin(gap)] += gap;
    last->second = e.exit_ns;
  }
}

}  // namespace

Statistics summarize(EventSource& source, const Look& look) {
  Statistics s;
  Looking looking(look);
  const TraceInfo& info = source.info();
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    const RankInfo& rank = info.ranks[r];
    s.dropped += rank.dropped;
    s.incomplete_ranks += !rank.complete;
    if (rank.events == 0) {
      ++s.empty_ranks;
      continue;
    }
    s.first_ns = s.events == 0 ? rank.first_ns : std::min(s.first_ns, rank.first_ns);
    s.last_ns = std::max(s.last_ns, rank.last_ns);
    add_rank(s, source, r, looking);
  }
  return s;
}

}  // namespace fallow::trace
