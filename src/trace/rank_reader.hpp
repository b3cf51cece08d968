// Reads the file in which a rank keeps its profile (rank_file.hpp), also while the rank still runs and after
// it was killed. Nothing in the file is trusted: every size, index and string is checked before use, and a
// file that cannot be read is refused with the offset and the reason.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "trace/byte_source.hpp"
#include "trace/rank_file.hpp"

namespace fallow::trace {

/// Why a rank file was refused. `what()` reads "FILE: at offset N: reason", or "FILE: reason" if it cannot be opened.
class RankFileError : public std::runtime_error {
 public:
  RankFileError(std::string_view file, std::uint64_t offset, std::string_view reason);
  RankFileError(std::string_view file, std::string_view reason);
  std::uint64_t offset() const noexcept { return offset_; }
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::uint64_t offset_ = 0;
  std::string reason_;
};

/// A private copy of one thread's block, so that a writer that is still running cannot change it. Of a rank that did
/// not reach MPI_Finalize the totals hold the calls that lay in the ring only, and the wait it was in, see ring_tail.hpp.
class ThreadBlock {
 public:
  ThreadBlock(const RankHeader& header, std::vector<std::byte> bytes);

  const ThreadCounters& counters() const noexcept { return counters_; }
  /// The wait in which the thread's record ends, which is in the totals but in no event; `enter` is 0 if there is none.
  const OpenCall& open() const noexcept { return open_; }
  std::uint32_t open_slot() const noexcept { return open_slot_; }  ///< of its call site
  std::span<const OpStats> ops() const noexcept { return ops_; }

  /// Call sites in use whose function and module indices are valid; `slot` is what Event::site refers to. Slot 0 holds
  /// calls whose address is not known, possibly several times, by function and communicator. Sites that the totals do not have
  /// yet follow the last slot of the table.
  struct Site {
    std::uint32_t slot;
    SiteStats stats;
  };
  const std::vector<Site>& sites() const noexcept { return sites_; }

  /// The last events, oldest first, at most `limit` of them. Events that are out of order or name an
  /// unknown function (torn by a kill, or damaged) are left out and counted by `events_skipped`.
  std::vector<Event> events(std::size_t limit) const;
  std::uint64_t events_skipped() const noexcept { return skipped_; }

 private:
  void add_ring_tail(const RankHeader& header);
  /// Adds calls to those of their site. Returns its slot.
  std::uint32_t add_site(const RankHeader& header, SiteStats calls);
  /// The site of that address, function and communicator; end() if there is none, or the address is not known.
  std::vector<Site>::iterator find_site(std::uint64_t address, std::uint32_t op, std::uint32_t comm) noexcept;

  std::vector<std::byte> bytes_;
  ThreadCounters counters_{};
  OpenCall open_{};
  std::uint32_t open_slot_ = 0;
  std::vector<OpStats> ops_;
  std::vector<Site> sites_;
  std::size_t ring_offset_ = 0;
  std::uint32_t ring_events_ = 0;
  std::uint32_t op_slots_ = 0;
  std::uint64_t start_ = 0;
  mutable std::uint64_t skipped_ = 0;
};

/// One opened rank file. Not thread-safe; blocks are read when asked for.
class RankReader {
 public:
  /// Opens `path`; throws RankFileError if it is missing, not regular, truncated or not a valid rank file.
  static RankReader open(const std::string& path);
  /// The same from any source; `name` stands for it in errors.
  RankReader(std::unique_ptr<ByteSource> source, std::string name);

  const RankHeader& header() const noexcept { return *header_; }
  const std::string& name() const noexcept { return name_; }
  std::uint32_t block_count() const noexcept { return header_->blocks_used; }
  /// Reads block `index` (< block_count()); throws RankFileError if the source ends inside it.
  ThreadBlock block(std::uint32_t index) const;

  /// A duration in ticks of this rank's clock, in seconds.
  Seconds seconds(std::uint64_t ticks) const noexcept;
  /// A point in time of this rank's clock, as nanoseconds since the epoch.
  Nanoseconds wall_time(std::uint64_t tick) const noexcept;

 private:
  [[noreturn]] void refuse(std::uint64_t offset, const std::string& reason) const;
  void check_sizes() const;
  void check_values() const;

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::unique_ptr<RankHeader> header_;
};

/// The text in a fixed-size field that may lack its final zero.
template <std::size_t N>
std::string_view field_text(const char (&field)[N]) noexcept {
  const std::string_view all(field, N);
  return all.substr(0, all.find('\0'));
}

}  // namespace fallow::trace
