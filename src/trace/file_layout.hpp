// Layout of a trace file: a head, then chunks. A rank writes a part file of its own while it runs; merging puts the
// chunks of all parts into one file and an index at its end. See docs/reference/trace-format.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fallow::trace {

inline constexpr char kTraceMagic[8] = {'F', 'A', 'L', 'L', 'O', 'W', 'T', 'R'};
inline constexpr std::uint32_t kTraceVersion = 1;
inline constexpr std::uint32_t kChunkMagic = 0x4b484346;  ///< "FCHK"
inline constexpr std::uint32_t kTailMagic = 0x4c544146;   ///< "FATL"
inline constexpr std::uint32_t kMaxChunkBytes = 1u << 28;
inline constexpr std::uint32_t kMaxRanks = 1u << 21;
inline constexpr std::uint32_t kEveryRank = ~0u;          ///< definitions that hold for all ranks
inline constexpr std::uint32_t kMaxDefined = 1u << 24;    ///< communicators or sites of one rank

/// First bytes of the file, little endian.
struct FileHead {
  char magic[8];
  std::uint32_t version;
  std::uint32_t head_bytes;
  std::uint32_t world_size;
  std::uint32_t clock;          ///< ComputeClock
  std::uint64_t start_wall_ns;  ///< of the file's 0 ns, since the epoch
  std::uint32_t parts;          ///< 1: a rank's part; else the ranks merged
  std::uint32_t reserved;
  std::uint32_t reserved2;
  std::uint32_t crc;            ///< CRC-32C of the bytes before
};
static_assert(sizeof(FileHead) == 48);

enum class ChunkType : std::uint32_t {
  rank = 1,    ///< who wrote the chunks of this rank
  comm = 2,    ///< one communicator, numbered in order by its rank from kFirstComm on
  site = 3,    ///< one call site, numbered in order by its rank from 1 on
  events = 4,  ///< a block of events: BlockHead and what follows
  end = 5,     ///< the rank ended well
  index = 6,   ///< where the blocks are
};
inline constexpr std::uint32_t kChunkTypes = 6;

struct ChunkHead {
  std::uint32_t magic;
  std::uint32_t type;
  std::uint32_t bytes;  ///< of the payload that follows
  std::uint32_t crc;    ///< CRC-32C of type, bytes and payload
};
static_assert(sizeof(ChunkHead) == 16);

/// One block in the index.
struct IndexEntry {
  std::uint64_t offset;  ///< of the chunk's head
  std::uint32_t bytes;   ///< of its payload
  std::uint32_t rank;
  std::uint32_t events;
  std::uint16_t thread;
  std::uint16_t reserved;
  std::uint64_t first_event;
  std::uint64_t first_ns, last_ns;  ///< as in the block
};
static_assert(sizeof(IndexEntry) == 48);

/// Last bytes of a merged file.
struct FileTail {
  std::uint64_t index_offset;  ///< of the index chunk's head
  std::uint32_t magic;
  std::uint32_t crc;           ///< of the bytes before
};
static_assert(sizeof(FileTail) == 16);

/// How a communicator stands in its definition.
enum class CommKind : std::uint32_t { intra = 0, inter = 1 };

}  // namespace fallow::trace
