// A trace file as a row of checked chunks. Errors name file, offset and reason.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trace/byte_source.hpp"
#include "trace/file_layout.hpp"

namespace fallow::trace {

/// Why a trace file was refused. `what()` reads "FILE: at offset N: reason", or "FILE: reason" if it cannot be opened.
class TraceFileError : public std::runtime_error {
 public:
  TraceFileError(std::string_view file, std::uint64_t offset, std::string_view reason);
  TraceFileError(std::string_view file, std::string_view reason);
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  std::uint64_t offset_ = 0;
};

struct Chunk {
  std::uint64_t offset = 0;  ///< of its head
  ChunkType type{};
  std::uint32_t bytes = 0;   ///< of its payload
  std::uint32_t crc = 0;
  std::uint64_t end() const noexcept { return offset + sizeof(ChunkHead) + bytes; }
};

class ChunkFile {
 public:
  /// Throws TraceFileError if the file is missing, not regular, or has no valid head.
  explicit ChunkFile(const std::string& path);
  /// From any source; `name` stands for it in errors.
  ChunkFile(std::unique_ptr<ByteSource> source, std::string name);

  const FileHead& head() const noexcept { return head_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return source_->size(); }
  /// See ByteSource::hold.
  void hold(bool on) { source_->hold(on); }

  /// The chunk at `offset`; nothing at the file's end. Throws where there is no whole chunk.
  std::optional<Chunk> chunk_at(std::uint64_t offset) const;
  /// The payload, checked against its sum. `into` gives its memory.
  std::vector<std::byte> read(const Chunk& chunk, std::vector<std::byte> into = {}) const;
  /// The first `n` bytes of the payload, unchecked.
  void peek(const Chunk& chunk, std::span<std::byte> out) const;

  /// The index of a whole merged file, in any order; nothing if it has none.
  std::optional<std::vector<IndexEntry>> index() const;
  /// Where the index stands; only if there is one.
  std::uint64_t index_offset() const noexcept { return index_offset_; }

  [[noreturn]] void refuse(std::uint64_t offset, std::string_view reason) const;

 private:
  void read_head();

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  FileHead head_{};
  mutable std::uint64_t index_offset_ = 0;
};

}  // namespace fallow::trace
