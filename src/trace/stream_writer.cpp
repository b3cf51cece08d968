#include "trace/stream_writer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "trace/chunk_file.hpp"

namespace fallow::trace {
namespace {

/// The file that a finished trace takes the place of: the one that a link leads to. Devices, pipes and directories stay.
std::string target_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return path;
  if (S_ISDIR(found.st_mode)) throw TraceFileError(path, "is a directory");
  if (!S_ISREG(found.st_mode)) throw TraceFileError(path, "is not a regular file; a trace cannot be written there");
  std::error_code none;
  const std::filesystem::path real = std::filesystem::canonical(path, none);
  return none ? path : real.string();
}

/// In its directory, under a name of its own: others may write the same trace at the same time.
std::string temporary_of(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return path + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
}

}  // namespace

StreamWriter::StreamWriter(const std::string& path, const TraceInfo& info, const std::vector<std::uint64_t>& shift)
    : path_(target_of(path)), temporary_(temporary_of(path_)) {
  std::string problem;
  const FileOptions options{static_cast<std::uint32_t>(info.ranks.size()), 0, info.clock, info.start_wall_ns};
  if (writer_.open(temporary_.c_str(), options, problem) != Status::ok) {
    const std::string of_it = temporary_ + ": ";  // a name that nobody asked for
    throw TraceFileError(path, problem.starts_with(of_it) ? problem.substr(of_it.size()) : problem);
  }
  try {
    define_ranks(info, shift);
  } catch (...) {  // nothing is destroyed that was not yet constructed
    writer_.close();
    ::unlink(temporary_.c_str());
    throw;
  }
}

StreamWriter::StreamWriter(const std::string& path, const TraceInfo& info)
    : StreamWriter(path, info, std::vector<std::uint64_t>(info.ranks.size())) {
  for (std::uint32_t c = kFirstComm; c < info.comms.size(); ++c) {
    const Comm& comm = info.comms[c];
    require(writer_.define_comm(kEveryRank, comm.group, comm.remote, {.parent = comm.parent}) == c);
  }
  for (std::uint32_t s = 1; s < info.sites.size(); ++s) {
    const Site& site = info.sites[s];
    require(writer_.define_site(kEveryRank, info.modules[site.module], site.address, site.label) == s);
  }
}

StreamWriter::~StreamWriter() {
  writer_.close();
  if (!finished_) ::unlink(temporary_.c_str());
}

void StreamWriter::require(bool good) const {
  if (!good) throw TraceFileError(path_, writer_.bytes(), "cannot be written; is the disk full?");
}

void StreamWriter::define_ranks(const TraceInfo& info, const std::vector<std::uint64_t>& shift) {
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    const RankText text{info.ranks[r].host, r == 0 ? info.program : std::string_view(), r == 0 ? info.mpi_version : std::string_view()};
    require(writer_.define_rank(r, text, shift[r]) == Status::ok);
  }
}

void StreamWriter::add(std::uint32_t rank, const CallEvent& event) {
  constexpr std::uint32_t kListWords = 1u << 20;  // counts of 512k ranks, both ways
  auto& encoder = encoders_[{rank, event.thread}];
  if (!encoder) encoder = std::make_unique<BlockEncoder>(rank, event.thread, EncoderOptions{.list_words = kListWords});
  if (encoder->add(event)) return;
  require(writer_.write_block(encoder->finish()) == Status::ok);
  encoder->add(event);
}

void StreamWriter::close_rank(std::uint32_t rank) {
  const auto first = encoders_.lower_bound({rank, 0}), last = encoders_.upper_bound({rank, 0xffff});
  for (auto i = first; i != last; ++i) require(writer_.write_block(i->second->finish()) == Status::ok);
  encoders_.erase(first, last);
}

void StreamWriter::copy(ChunkType type, std::span<const std::byte> payload) { require(writer_.write_chunk(type, payload) == Status::ok); }

void StreamWriter::end_rank(std::uint32_t rank, std::uint64_t dropped, std::uint64_t left_out) {
  while (!encoders_.empty()) close_rank(encoders_.begin()->first.first);
  require(writer_.end_rank(rank, static_cast<std::uint32_t>(std::min<std::uint64_t>(dropped, ~0u)), left_out) == Status::ok);
}

void StreamWriter::finish() {
  while (!encoders_.empty()) close_rank(encoders_.begin()->first.first);
  require(writer_.write_index() == Status::ok);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw TraceFileError(path_, "cannot be put in place");
  finished_ = true;
}

void write_program(EventSource& source, const std::string& path) {
  const TraceInfo& info = source.info();
  StreamWriter writer(path, info);
  CallEvent event;
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) {
    std::uint64_t at = 0;
    while (source.next(r, event)) {
      if (at == 0) event.flags |= kEventCpuTime;  // before its first call a rank has no gap to tell it from
      event.enter_ns = at + event.compute_ns;
      event.exit_ns = at = event.enter_ns + 1;
      writer.add(r, event);
    }
    writer.close_rank(r);
  }
  for (std::uint32_t r = 0; r < info.ranks.size(); ++r) writer.end_rank(r, 0);
  writer.finish();
}

}  // namespace fallow::trace
