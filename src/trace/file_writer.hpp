// Writes a rank's part of a trace, or a whole trace from another source. Needs nothing but libc. A file that can
// be written no longer (disk full) is cut after its last whole chunk, said once by ok(), and left alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "trace/event.hpp"
#include "trace/file_layout.hpp"

namespace fallow::trace {

struct FileOptions {
  std::uint32_t world_size = 0;
  std::uint32_t parts = 1;          ///< 1: a rank's part
  ComputeClock clock = ComputeClock::wall;
  std::uint64_t start_wall_ns = 0;  ///< wall time of 0 ns
  /// Keep the file open. Else its descriptor is open only while something is written, so that a program in whose
  /// process this happens meets none that it did not open; `path` is then absolute.
  bool keep_open = true;
};

struct RankText {
  std::string_view host, program, mpi_version;
};

/// Not copied, not moved; threads may share it.
class FileWriter {
 public:
  FileWriter() = default;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() { close(); }

  /// Creates `path` anew. `problem` says why it cannot.
  Status open(const char* path, const FileOptions& options, std::string& problem) noexcept;

  /// Who `rank` is; comes before its other chunks. `shift_ns`: to be added to the times in its blocks.
  Status define_rank(std::uint32_t rank, const RankText& text, std::uint64_t shift_ns = 0) noexcept;

  /// Defines the next communicator of `rank` (kEveryRank: of all). To be called in order of creation, which is the same on
  /// all members for those of one group and origin: that is how they are told apart. Returns its number for
  /// CallEvent::comm, kCommNone on failure. Members as world ranks; `remote` is empty but for intercommunicators.
  std::uint32_t define_comm(std::uint32_t rank, const Group& group, const Group& remote, const CommOrigin& origin = {}) noexcept;

  /// Defines the next call site of `rank`: `offset` in the loaded object `module`, or a `label` where there is no
  /// address. Returns its number for CallEvent::site, 0 on failure.
  std::uint32_t define_site(std::uint32_t rank, std::string_view module, std::uint64_t offset, std::string_view label) noexcept;

  /// A block from BlockEncoder::finish(). Empty blocks are left out.
  Status write_block(std::span<const std::byte> block) noexcept;

  /// `rank` ended well; `dropped`: events lost at the very end, after its last block; `left_out`: events cut away.
  Status end_rank(std::uint32_t rank, std::uint32_t dropped, std::uint64_t left_out = 0) noexcept;

  /// Copies a chunk as it is.
  Status write_chunk(ChunkType type, std::span<const std::byte> payload) noexcept;

  /// Writes index and tail: the file is then whole. Part files go without.
  Status write_index() noexcept;

  /// Where the program has no descriptor left, chunks wait for one, which is tried again with each. This is the last try.
  Status flush() noexcept;

  void close() noexcept;
  bool ok() const noexcept { return opened_ && !failed_; }
  /// errno of the write that failed; 0: none has.
  int problem() const noexcept { return problem_; }
  std::uint64_t bytes() const noexcept { return offset_; }

 private:
  bool reopen(bool may_wait) noexcept;
  Status write_waiting(bool may_wait) noexcept;
  Status append(ChunkType type, std::initializer_list<std::span<const std::byte>> parts) noexcept;
  bool write_all(std::span<const std::byte> bytes) noexcept;
  void note_block(std::span<const std::byte> block, std::uint64_t offset) noexcept;

  std::mutex mutex_;
  int fd_ = -1;
  bool opened_ = false, keep_open_ = true;
  std::string path_;                  ///< where it is opened again
  std::uint64_t device_ = 0, node_ = 0;
  std::atomic<bool> failed_{false};
  int problem_ = 0;
  bool keep_index_ = false;
  std::uint64_t offset_ = 0;
  std::mutex numbers_mutex_;          ///< a number is given and written before the next one: readers take them in order
  std::uint32_t comms_ = kFirstComm, sites_ = 1;
  std::vector<std::byte> chunk_;      ///< the chunk under way, after those that wait; grown at set-up
  std::vector<IndexEntry> index_;
};

}  // namespace fallow::trace
