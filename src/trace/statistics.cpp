#include "trace/statistics.hpp"

#include <algorithm>
#include <map>

namespace fallow::trace {
namespace {

std::size_t gap_bin(std::uint64_t ns) noexcept {
  return static_cast<std::size_t>(std::upper_bound(kGapBoundsNs.begin(), kGapBoundsNs.end(), ns) - kGapBoundsNs.begin());
}

void add_rank(Statistics& s, EventSource& source, std::uint32_t rank) {
  std::map<std::uint16_t, std::uint64_t> last_exit;  // by thread
  CallEvent e;
  source.rewind(rank);
  while (source.next(rank, e)) {
    OpTotals& op = s.ops[static_cast<std::size_t>(e.op)];
    ++s.events;
    ++op.calls;
    op.bytes += e.bytes;
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

Statistics summarize(EventSource& source) {
  Statistics s;
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
    add_rank(s, source, r);
  }
  return s;
}

}  // namespace fallow::trace
