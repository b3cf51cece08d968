#include "trace/file_tools.hpp"

#include <algorithm>

#include "trace/stream_writer.hpp"

namespace fallow::trace {
namespace {

struct Shifted {
  TraceInfo info;
  explicit Shifted(const TraceInfo& i, std::uint64_t by) : info(i) { info.start_wall_ns += by; }
};

/// Returns how many events of the rank were written.
std::uint64_t write_rank(StreamWriter& out, EventSource& source, std::uint32_t rank, const CutOptions& cut, Looking& looking) {
  CallEvent e;
  std::uint64_t written = 0;
  source.rewind(rank);
  looking.rank();
  while (source.next(rank, e)) {
    looking.event();
    if (e.enter_ns < cut.from_ns) continue;
    if (e.enter_ns >= cut.to_ns) break;
    e.enter_ns -= cut.from_ns;
    e.exit_ns -= cut.from_ns;
    out.add(rank, e);
    ++written;
  }
  out.close_rank(rank);
  return written;
}

/// Events of `rank` that were lost in the window: right before one of its blocks, or at the rank's end.
std::uint64_t dropped_in(const TraceReader& trace, std::uint32_t rank, const CutOptions& cut) {
  const RankInfo& info = trace.info().ranks[rank];
  std::uint64_t within = 0, behind = info.dropped;
  const BlockPlace* before = nullptr;
  for (const BlockPlace& b : trace.blocks(rank)) {
    const std::uint64_t since = before != nullptr && before->thread == b.thread ? before->last_ns : 0;
    if (b.first_ns >= cut.from_ns && since < cut.to_ns) within += b.dropped;
    behind -= b.dropped;
    before = &b;
  }
  return within + (info.last_ns < cut.to_ns ? behind : 0);
}

}  // namespace

void merge_trace(const TraceReader& parts, const std::string& out_path, const Progress& progress) {
  constexpr std::uint64_t kStep = 64 << 20;
  std::uint64_t done = 0, told = 0;
  const TraceInfo& info = parts.info();
  std::vector<std::uint64_t> shift(info.ranks.size());
  for (std::uint32_t r = 0; r < shift.size(); ++r) shift[r] = parts.shift_ns(r);
  StreamWriter out(out_path, info, shift);
  const auto copy = [&](ChunkType type) {
    for (std::size_t f = 0; f < parts.files().size(); ++f) {
      for (const Chunk& c : parts.definition_chunks(f)) {
        if (c.type == type) out.copy(c.type, parts.files()[f]->read(c));
      }
    }
  };
  copy(ChunkType::comm);
  copy(ChunkType::site);
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    for (const BlockPlace& b : parts.blocks(r)) {
      out.copy(ChunkType::events, parts.files()[b.file]->read(b.chunk));
      done += b.chunk.bytes;
      if (!progress || done - told < kStep) continue;
      progress(done, parts.stored_bytes());
      told = done;
    }
  }
  copy(ChunkType::end);
  out.finish();
}

void write_trace(EventSource& source, const std::string& out_path, const CutOptions& cut) {
  const Shifted from(source.info(), cut.from_ns);
  const auto& ranks = from.info.ranks;
  StreamWriter out(out_path, from.info);
  const auto* file = dynamic_cast<const TraceReader*>(&source);
  const auto wanted = [&cut](std::uint32_t r) { return cut.ranks.empty() || std::find(cut.ranks.begin(), cut.ranks.end(), r) != cut.ranks.end(); };
  Looking looking(cut.look);
  std::vector<std::uint64_t> left_out(ranks.size());
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    left_out[r] = ranks[r].left_out + ranks[r].events - (wanted(r) ? write_rank(out, source, r, cut, looking) : 0);
  }
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].complete) out.end_rank(r, !wanted(r) ? 0 : file != nullptr ? dropped_in(*file, r, cut) : ranks[r].dropped, left_out[r]);
  }
  out.finish();
}

}  // namespace fallow::trace
