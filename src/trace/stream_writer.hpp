// Writes a whole trace from another source as its events come, in any order of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/block_encoder.hpp"
#include "trace/event.hpp"
#include "trace/file_writer.hpp"

namespace fallow::trace {

/// Throws TraceFileError. The file appears under its name when finish() returns; else nothing is left.
class StreamWriter {
 public:
  /// Takes all but events from `info`: ranks, communicators, sites.
  StreamWriter(const std::string& path, const TraceInfo& info);
  /// The same for blocks that are copied: their times are moved by `shift` (by rank), their definitions are copied too.
  StreamWriter(const std::string& path, const TraceInfo& info, const std::vector<std::uint64_t>& shift);
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;
  ~StreamWriter();

  /// Events of a thread come in order; their times do not overlap (the later one begins when the earlier ends).
  void add(std::uint32_t rank, const CallEvent& event);
  /// No more events of this rank: its memory is given back.
  void close_rank(std::uint32_t rank);
  void copy(ChunkType type, std::span<const std::byte> payload);
  /// Nothing but ends may follow.
  void end_rank(std::uint32_t rank, std::uint64_t dropped, std::uint64_t left_out = 0);
  void finish();

 private:
  void require(bool good) const;
  void define_ranks(const TraceInfo& info, const std::vector<std::uint64_t>& shift);

  std::string path_, temporary_;
  FileWriter writer_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::unique_ptr<BlockEncoder>> encoders_;
  bool finished_ = false;
};

/// Writes the calls of a program that was never run: each takes one nanosecond, what lies between is computation. The
/// source is read from where it stands to its end. Throws TraceFileError.
void write_program(EventSource& source, const std::string& path);

}  // namespace fallow::trace
