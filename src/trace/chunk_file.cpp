#include "trace/chunk_file.hpp"

#include <bit>
#include <cstring>

#include "trace/block_format.hpp"
#include "trace/crc32c.hpp"

namespace fallow::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "trace files are read in place");

std::unique_ptr<ByteSource> open_trace_bytes(const std::string& path) {
  std::string reason;
  auto source = open_regular_file(path, reason);
  if (source == nullptr) throw TraceFileError(path, reason);
  return source;
}

template <class T>
std::span<std::byte> bytes_of(T& value) noexcept {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

TraceFileError::TraceFileError(std::string_view file, std::uint64_t offset, std::string_view reason)
    : std::runtime_error(std::string(file) + ": at offset " + std::to_string(offset) + ": " + std::string(reason)), offset_(offset) {}

TraceFileError::TraceFileError(std::string_view file, std::string_view reason)
    : std::runtime_error(std::string(file) + ": " + std::string(reason)) {}

ChunkFile::ChunkFile(const std::string& path) : source_(open_trace_bytes(path)), name_(path) { read_head(); }

ChunkFile::ChunkFile(std::unique_ptr<ByteSource> source, std::string name) : source_(std::move(source)), name_(std::move(name)) { read_head(); }

void ChunkFile::refuse(std::uint64_t offset, std::string_view reason) const { throw TraceFileError(name_, offset, reason); }

void ChunkFile::read_head() {
  if (source_->size() < sizeof head_) refuse(source_->size(), "the file ends before its head; it is no Fallow trace");
  if (!source_->read(0, bytes_of(head_))) refuse(0, "cannot be read");
  if (std::memcmp(head_.magic, kTraceMagic, sizeof kTraceMagic) != 0) refuse(0, "not a Fallow trace");
  if (head_.version != kTraceVersion) {
    refuse(offsetof(FileHead, version), "version " + std::to_string(head_.version) + "; this Fallow reads version " + std::to_string(kTraceVersion));
  }
  if (crc32c(bytes_of(head_).first(offsetof(FileHead, crc))) != head_.crc) refuse(offsetof(FileHead, crc), "the head is damaged");
  if (head_.head_bytes != sizeof head_) refuse(offsetof(FileHead, head_bytes), "unknown size of the head");
  if (head_.world_size == 0 || head_.world_size > kMaxRanks) refuse(offsetof(FileHead, world_size), "impossible number of ranks");
  if (head_.start_wall_ns > kLatestNs) refuse(offsetof(FileHead, start_wall_ns), "impossible start");
}

std::optional<Chunk> ChunkFile::chunk_at(std::uint64_t offset) const {
  if (offset == size()) return std::nullopt;
  ChunkHead h;
  if (offset > size() || size() - offset < sizeof h) refuse(offset, "the file ends inside a chunk");
  if (!source_->read(offset, bytes_of(h))) refuse(offset, "cannot be read");
  if (h.magic != kChunkMagic) {
    // The tail of a merged file is as long as a chunk's head.
    static_assert(sizeof(FileTail) == sizeof(ChunkHead));
    FileTail t;
    std::memcpy(&t, &h, sizeof t);
    if (size() - offset == sizeof t && t.magic == kTailMagic) return std::nullopt;
    refuse(offset, "no chunk begins here");
  }
  if (h.type == 0 || h.type > kChunkTypes) refuse(offset + offsetof(ChunkHead, type), "unknown kind of chunk " + std::to_string(h.type));
  if (h.bytes > kMaxChunkBytes) refuse(offset + offsetof(ChunkHead, bytes), "a chunk is too long");
  const Chunk c{offset, static_cast<ChunkType>(h.type), h.bytes, h.crc};
  if (c.end() > size()) refuse(offset, "the file ends inside a chunk");
  return c;
}

std::vector<std::byte> ChunkFile::read(const Chunk& chunk, std::vector<std::byte> into) const {
  into.resize(chunk.bytes);
  if (!source_->read(chunk.offset + sizeof(ChunkHead), into)) refuse(chunk.offset, "cannot be read");
  const std::uint32_t covered[] = {static_cast<std::uint32_t>(chunk.type), chunk.bytes};
  if (crc32c(into, crc32c(std::as_bytes(std::span(covered)))) != chunk.crc) refuse(chunk.offset, "the chunk's checksum is wrong");
  return into;
}

void ChunkFile::peek(const Chunk& chunk, std::span<std::byte> out) const {
  if (chunk.bytes < out.size() || !source_->read(chunk.offset + sizeof(ChunkHead), out)) refuse(chunk.offset, "the chunk is too short");
}

std::optional<std::vector<IndexEntry>> ChunkFile::index() const {
  FileTail t;
  if (head_.parts == 1 || size() < sizeof head_ + sizeof t || !source_->read(size() - sizeof t, bytes_of(t))) return std::nullopt;
  if (t.magic != kTailMagic || crc32c(bytes_of(t).first(offsetof(FileTail, crc))) != t.crc) return std::nullopt;
  const auto chunk = chunk_at(t.index_offset);
  if (!chunk || chunk->type != ChunkType::index || chunk->bytes % sizeof(IndexEntry) != 0) refuse(t.index_offset, "the index is damaged");
  const auto bytes = read(*chunk);
  std::vector<IndexEntry> entries(bytes.size() / sizeof(IndexEntry));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), bytes.size());
  index_offset_ = t.index_offset;
  return entries;
}

}  // namespace fallow::trace
