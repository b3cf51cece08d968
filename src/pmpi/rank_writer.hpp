// The rank's profile file, mapped into the program while it runs. Where it cannot be had, plain memory takes its
// place and the program runs on.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/options.hpp"
#include "base/status.hpp"
#include "pmpi/thread_state.hpp"
#include "trace/rank_file.hpp"

namespace fallow::pmpi {

class RankWriter {
 public:
  /// Creates `dir`/rank-RRRRRR-HOST-PID.fallow, or anonymous memory if that fails. `problem` says why it did.
  Status open(const Options& options, std::int32_t world_rank, std::string& problem) noexcept;

  /// False if there was no memory either.
  bool usable() const noexcept { return header_ != nullptr; }
  trace::RankHeader& header() noexcept { return *header_; }
  /// What the rank is doing; by any thread.
  void tell(trace::RankState state) noexcept { std::atomic_ref(header_->state).store(static_cast<std::uint32_t>(state), std::memory_order_relaxed); }

  /// Gives a thread its counters. False when all blocks are taken: the thread is then not recorded.
  bool attach(Thread& thread) noexcept;

  /// Takes the block of a thread that ended; the next new thread goes on in it.
  void release(const Thread& thread) noexcept;

  /// In a forked child: what the thread's call under way adds at its end goes to memory of its own, not into the file, which is the parent's.
  void part_from(const Thread& thread) noexcept;

  /// Number of the loaded object that an address lies in, registered at first sight; trace::kNoModule if unknown.
  std::uint32_t module_of(const void* address) noexcept;

  bool on_disk() const noexcept { return !path_.empty(); }

 private:
  bool create(const std::string& path, void*& header) noexcept;
  void* map_block(std::uint32_t index) noexcept;
  std::uint64_t block_offset(std::uint32_t index) const noexcept { return trace::kHeaderBytes + index * block_bytes_; }

  trace::RankHeader* header_ = nullptr;
  std::string path_;  ///< absolute; empty: plain memory. No descriptor is kept: the program may close and reuse it.
  std::uint64_t block_bytes_ = 0;
  std::mutex mutex_;
  void* blocks_[trace::kMaxBlocks] = {};
  std::uint64_t free_blocks_ = 0;  ///< bit per block that was released
};

}  // namespace fallow::pmpi
