// Reads traces: one merged file, or the parts that ranks left, whole or cut short by a kill or a full disk.
// Definitions are read when opening, blocks of events when they are asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/huge.hpp"
#include "trace/block_decoder.hpp"
#include "trace/call_shapes.hpp"
#include "trace/chunk_file.hpp"
#include "trace/definitions.hpp"
#include "trace/event.hpp"

namespace fallow::trace {

/// A block of events: where it stands and what it holds, times on the trace's scale.
struct BlockPlace {
  std::uint32_t file = 0;
  Chunk chunk;
  std::uint32_t rank = 0, events = 0, dropped = 0;
  std::uint16_t thread = 0;
  std::uint64_t first_event = 0, first_ns = 0, last_ns = 0;
};

class TraceReader final : public EventSource {
 public:
  /// Opens one merged file, or any number of parts of one run. Throws TraceFileError.
  explicit TraceReader(const std::vector<std::string>& paths);
  explicit TraceReader(std::vector<std::unique_ptr<ChunkFile>> files);

  const TraceInfo& info() const noexcept override { return info_; }
  bool next(std::uint32_t rank, CallEvent& event) override;
  void rewind(std::uint32_t rank) override { seek(rank, 0); }
  void leave_out_times(bool out) override;
  void again(std::uint32_t rank, CallEvent& event) override;
  void prefetch(std::uint32_t rank, unsigned step) const noexcept override;
  bool has_outcomes(std::uint32_t rank) const noexcept override { return outcomes_[rank]; }

  /// Moves `rank` to its first block that has events at or after `ns`: what next() gives may begin before.
  void seek(std::uint32_t rank, std::uint64_t ns);

  /// What was left out: a part that ends inside a chunk, a damaged tail, what was cut away. One line each.
  const std::vector<std::string>& problems() const noexcept { return problems_; }

  // --- for merging and statistics
  const std::vector<BlockPlace>& blocks(std::uint32_t rank) const noexcept { return blocks_[rank]; }
  const std::vector<std::unique_ptr<ChunkFile>>& files() const noexcept { return files_; }
  /// Chunks of definitions of one file, in order.
  const std::vector<Chunk>& definition_chunks(std::size_t file) const noexcept { return definition_chunks_[file]; }
  const Definitions& definitions() const noexcept { return *definitions_; }
  std::uint64_t shift_ns(std::uint32_t rank) const noexcept { return shift_[rank]; }
  std::uint64_t stored_bytes() const noexcept;  ///< of all files

 private:
  /// One thread of a rank.
  struct Cursor {
    std::vector<std::uint32_t> blocks;  ///< numbers in blocks_[rank], in order
    std::size_t next_block = 0;
    std::uint64_t shift_ns = 0;
    std::span<const std::uint32_t> sites;  ///< the rank's own, by local number - 1
    BlockDecoder decoder;
    CallEvent event;                    ///< looked at but not yet given out
    bool open = false, loaded = false;
  };
  void open_all();
  void read_file(std::uint32_t file);
  void scan(std::uint32_t file, std::uint64_t from, std::uint64_t to);
  void take_chunk(std::uint32_t file, const Chunk& chunk);
  void take_definition(std::uint32_t file, const Chunk& chunk);
  void take_block(std::uint32_t file, const Chunk& chunk, const BlockHead& head);
  void take_index(std::uint32_t file, const std::vector<IndexEntry>& index);
  void finish();
  void finish_rank(std::uint32_t rank);
  void open_cursors(std::uint32_t rank, std::uint64_t ns);
  bool advance(std::uint32_t rank, Cursor& cursor, CallEvent& event);
  template <class Decode>
  auto decode(std::uint32_t rank, Cursor& cursor, Decode&& some) -> decltype(some());
  bool decode_calls(std::uint32_t rank);
  void localize(std::uint32_t rank, const Cursor& cursor, CallEvent& event) const noexcept;

  /// Of a rank with one thread: its cursor, and its calls that are decoded already, without times. Hundreds are decoded at
  /// once: with thousands of ranks a decoder's state has left the cache by the time when its rank goes on.
  struct Single {
    Cursor* cursor = nullptr;  ///< null: several threads
    std::uint16_t next = 0, end = 0, last = 0;  ///< places; of the call given out last
  };
  static constexpr std::uint32_t kManyRanks = 1u << 14;  ///< traces of more have fewer calls ready of each
  const std::uint32_t* calls_of(std::uint32_t rank) const noexcept { return &calls_[std::size_t{rank} * ready_]; }
  void give(std::uint32_t rank, const std::uint32_t* place, CallEvent& event) const noexcept;

  std::vector<std::unique_ptr<ChunkFile>> files_;
  std::vector<std::vector<Chunk>> definition_chunks_;
  TraceInfo info_;
  std::unique_ptr<Definitions> definitions_;
  std::vector<std::vector<BlockPlace>> blocks_;
  std::vector<std::uint64_t> shift_;
  std::vector<bool> outcomes_;             ///< by rank: some block has any
  std::vector<std::int64_t> owner_;        ///< file that defined the rank; -1: none
  std::vector<std::vector<std::unique_ptr<Cursor>>> cursors_;
  HugeVector<Single> single_;              ///< by rank
  std::vector<Cursor*> last_;              ///< cursor whose event was given out last
  std::vector<std::string> problems_;
  bool without_times_ = false;
  CallShapes shapes_;
  HugeVector<std::uint32_t> calls_;        ///< packed, ready_ for each rank, once times were left out
  std::uint32_t ready_ = 0;                ///< places of 4 bytes
};

}  // namespace fallow::trace
