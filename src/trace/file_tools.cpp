#include "trace/file_tools.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "trace/block_encoder.hpp"

namespace fallow::trace {
namespace {

/// A file under way, removed unless it is finished.
class Output {
 public:
  Output(const std::string& path, const TraceInfo& info, std::uint64_t start_wall_ns) : path_(path), temporary_(path + ".tmp") {
    std::string problem;
    const FileOptions options{static_cast<std::uint32_t>(info.ranks.size()), 0, info.clock, start_wall_ns};
    if (writer_.open(temporary_.c_str(), options, problem) != Status::ok) throw TraceFileError(path, 0, problem);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    writer_.close();
    if (!finished_) ::unlink(temporary_.c_str());
  }

  FileWriter& writer() noexcept { return writer_; }
  void require(Status s) const {
    if (s != Status::ok) throw TraceFileError(path_, writer_.bytes(), "cannot be written; is the disk full?");
  }
  void finish() {
    require(writer_.write_index());
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw TraceFileError(path_, 0, "cannot be put in place");
    finished_ = true;
  }

 private:
  std::string path_, temporary_;
  FileWriter writer_;
  bool finished_ = false;
};

void define_ranks(Output& out, const TraceInfo& info, const std::vector<std::uint64_t>& shift) {
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    const RankText text{info.ranks[r].host, r == 0 ? info.program : std::string_view(), r == 0 ? info.mpi_version : std::string_view()};
    out.require(out.writer().define_rank(r, text, shift[r]));
  }
}

/// Writes one rank's events; a block for each thread is open at a time.
void write_rank(Output& out, EventSource& source, std::uint32_t rank, const CutOptions& cut) {
  constexpr std::uint32_t kConvertListWords = 1u << 20;  // 512k ranks' counts both ways
  std::map<std::uint16_t, std::unique_ptr<BlockEncoder>> threads;
  CallEvent e;
  source.rewind(rank);
  while (source.next(rank, e)) {
    if (e.enter_ns < cut.from_ns) continue;
    if (e.enter_ns >= cut.to_ns) break;
    e.enter_ns -= cut.from_ns;
    e.exit_ns -= cut.from_ns;
    auto& encoder = threads[e.thread];
    if (!encoder) encoder = std::make_unique<BlockEncoder>(rank, e.thread, EncoderOptions{.list_words = kConvertListWords});
    if (!encoder->add(e)) {
      out.require(out.writer().write_block(encoder->finish()));
      encoder->add(e);
    }
  }
  for (auto& [thread, encoder] : threads) out.require(out.writer().write_block(encoder->finish()));
}

}  // namespace

void merge_trace(const TraceReader& parts, const std::string& out_path) {
  const TraceInfo& info = parts.info();
  Output out(out_path, info, info.start_wall_ns);
  std::vector<std::uint64_t> shift(info.ranks.size());
  for (std::uint32_t r = 0; r < shift.size(); ++r) shift[r] = parts.shift_ns(r);
  define_ranks(out, info, shift);
  const auto copy = [&](ChunkType type) {
    for (std::size_t f = 0; f < parts.files().size(); ++f) {
      for (const Chunk& c : parts.definition_chunks(f)) {
        if (c.type == type) out.require(out.writer().write_chunk(c.type, parts.files()[f]->read(c)));
      }
    }
  };
  copy(ChunkType::comm);
  copy(ChunkType::site);
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    for (const BlockPlace& b : parts.blocks(r)) out.require(out.writer().write_chunk(ChunkType::events, parts.files()[b.file]->read(b.chunk)));
  }
  copy(ChunkType::end);
  out.finish();
}

void write_trace(EventSource& source, const std::string& out_path, const CutOptions& cut) {
  const TraceInfo& info = source.info();
  Output out(out_path, info, info.start_wall_ns + cut.from_ns);
  define_ranks(out, info, std::vector<std::uint64_t>(info.ranks.size()));
  for (std::uint32_t c = kFirstComm; c < info.comms.size(); ++c) {
    if (out.writer().define_comm(kEveryRank, info.comms[c].group, info.comms[c].remote) != c) out.require(Status::failed);
  }
  for (std::uint32_t s = 1; s < info.sites.size(); ++s) {
    const Site& site = info.sites[s];
    if (out.writer().define_site(kEveryRank, info.modules[site.module], site.address, site.label) != s) out.require(Status::failed);
  }
  const auto wanted = [&cut](std::uint32_t r) { return cut.ranks.empty() || std::find(cut.ranks.begin(), cut.ranks.end(), r) != cut.ranks.end(); };
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    if (wanted(r)) write_rank(out, source, r, cut);
  }
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    const std::uint64_t dropped = wanted(r) ? info.ranks[r].dropped : 0;
    if (info.ranks[r].complete) out.require(out.writer().end_rank(r, static_cast<std::uint32_t>(std::min<std::uint64_t>(dropped, ~0u))));
  }
  out.finish();
}

}  // namespace fallow::trace
