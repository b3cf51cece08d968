// Records the calls of one thread while the program runs. The thread puts fixed-size records into a ring (no lock,
// no system call, no allocation); packing them and writing them out happens in pump(), which the thread calls
// while it waits, or a helper thread calls for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "trace/block_encoder.hpp"
#include "trace/file_writer.hpp"
#include "trace/trace_clock.hpp"

namespace fallow::trace {

/// What only some calls have.
struct RawExtra {
  std::uint64_t cpu_ns = 0;                  ///< CPU time since the previous call, with kEventCpuTime
  std::uint64_t wait = 0;                    ///< ticks of waiting inside
  std::uint64_t recv_bytes = 0;
  std::int32_t recv_peer = kNoPeer, recv_tag = kNoTag, root = kNoPeer;
  std::uint32_t counts = 0, recv_counts = 0; ///< filled by the add functions
};

/// Set in RawRecord::flags, beside EventFlags, where the record has its second part.
inline constexpr std::uint16_t kRawExtra = 1u << 15;

/// One call as the wrapper knows it, with all that most calls have in one cache line. Lists follow in the order counts,
/// recv_counts, requests, completed.
struct alignas(64) RawRecord {
  std::uint64_t enter = 0, exit = 0;  ///< ticks
  std::uint64_t caller = 0;           ///< return address of the call; 0: unknown
  std::uint64_t bytes = 0;
  std::uint32_t comm = kCommNone;     ///< as FileWriter::define_comm() numbered it
  std::int32_t peer = kNoPeer, tag = kNoTag;
  Op op = Op::other;
  std::uint16_t flags = 0;
  std::uint32_t first_request = 0, first_completed = 0;
  std::uint32_t requests = 0, completed = 0;  ///< filled by the add functions

  /// The second part, which begins empty.
  RawExtra& extra() noexcept {
    if ((flags & kRawExtra) == 0) {
      flags = static_cast<std::uint16_t>(flags | kRawExtra);
      second = RawExtra{};
    }
    return second;
  }
  /// All but the times, where lists of more than one number are not among it; else a key that is none.
  EventKey key() const noexcept;
  /// key() == `known`, which is that of a record.
  bool has(const EventKey& known) const noexcept;
  const RawExtra* extra() const noexcept { return (flags & kRawExtra) != 0 ? &second : nullptr; }

  /// Begins the record anew, and leaves the line of the second part alone.
  void reset() noexcept {
    enter = exit = caller = bytes = 0;
    comm = kCommNone;
    peer = kNoPeer, tag = kNoTag;
    op = Op::other;
    flags = 0;
    first_request = first_completed = requests = completed = 0;
  }

  alignas(64) RawExtra second;  ///< to be had by extra()
};
static_assert(sizeof(RawRecord) == 128);

/// Says where a call site lies, for the trace's readers: the loaded object and the offset in it. Called outside of
/// the hot path; may return an empty name.
struct SiteNamer {
  std::string_view (*name)(void* context, std::uint64_t address, std::uint64_t& offset) noexcept = nullptr;
  void* context = nullptr;
};

struct RecorderOptions {
  EncoderOptions encoder;
  std::uint32_t ring_records = 4096;     ///< a power of two; 128 bytes each, of which most calls touch half
  std::uint32_t side_words = 65536;      ///< a power of two; numbers of lists that wait to be packed, 8 bytes each
  std::uint64_t max_age_ns = 10'000'000'000;  ///< a block is written out when its first event is this old, or six times as old if there are few
};

class Recorder {
 public:
  /// `writer` and `clock` outlive the recorder. Throws std::bad_alloc if there is no memory.
  Recorder(FileWriter& writer, std::uint32_t rank, std::uint16_t thread, const TraceClock& clock, SiteNamer namer,
           const RecorderOptions& options);

  // --- hot path: by the recorded thread alone
  /// The next record, cleared; null if the ring is full (the event is counted as dropped).
  RawRecord* begin() noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_seen_ >= ring_size_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head - tail_seen_ >= ring_size_) {
        lost_.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
      }
    }
    RawRecord& r = ring_[head & (ring_size_ - 1)];
    __builtin_prefetch(&ring_[(head + 2) & (ring_size_ - 1)], 1);
    r.reset();
    side_next_ = side_head_;
    return &r;
  }
  void add_count(RawRecord& r, std::uint64_t bytes) noexcept { r.extra().counts += add_side(r, bytes, kEventCountsLost); }
  void add_recv_count(RawRecord& r, std::uint64_t bytes) noexcept { r.extra().recv_counts += add_side(r, bytes, kEventCountsLost); }
  void add_request(RawRecord& r, std::uint32_t id) noexcept {
    if (r.requests == 0) {
      r.first_request = id, r.requests = 1;
    } else {
      r.requests += add_side(r, id, kEventRequestsLost);
    }
  }
  void add_completed(RawRecord& r, std::uint32_t id) noexcept {
    if (r.completed == 0) {
      r.first_completed = id, r.completed = 1;
    } else {
      r.completed += add_side(r, id, kEventRequestsLost);
    }
  }
  /// The record is complete.
  void end() noexcept {
    side_head_ = side_next_;
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// More records wait than relieve_at() said. Looks at what another thread may have written only where it seems so.
  bool crowded() noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_seen_ <= crowd_) [[likely]] return false;
    tail_seen_ = tail_.load(std::memory_order_acquire);
    return head - tail_seen_ > crowd_;
  }
  void relieve_at(std::uint32_t records) noexcept { crowd_ = records; }
  /// Records that wait to be packed.
  std::uint32_t pending() const noexcept {
    return static_cast<std::uint32_t>(head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed));
  }

  // --- outside the hot path: any thread, one at a time (a second returns at once)
  /// Packs up to `most` records and writes full or old blocks. Returns the records packed. `now_ticks`: 0 if not known.
  std::uint32_t pump(std::uint32_t most, std::uint64_t now_ticks) noexcept;
  /// The same up to the first record that is not the last one of its context again, or comes when the block is due: calls nothing,
  /// and takes no time but that of packing.
  std::uint32_t pump_repeated(std::uint32_t most) noexcept;
  /// Packs everything and writes the block under way.
  void flush() noexcept;
  /// flush(), waiting for a pump() under way. Returns the events dropped since the last one packed. For the end.
  std::uint64_t finish() noexcept;

  std::uint64_t dropped() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  std::uint32_t add_side(RawRecord& r, std::uint64_t value, EventFlags lost) noexcept {
    if (side_next_ - side_tail_.load(std::memory_order_acquire) >= side_size_) {
      r.flags = static_cast<std::uint16_t>(r.flags | lost);
      return 0;
    }
    side_[side_next_++ & (side_size_ - 1)] = value;
    return 1;
  }
  void pack_new(const RawRecord& r, const EventTimes& times) noexcept;
  bool lock() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { busy_.store(false, std::memory_order_release); }
  std::uint32_t pump_locked(std::uint32_t most) noexcept;
  EventTimes times_of(const RawRecord& r) noexcept;
  bool pack_again(const RawRecord& r, const EventTimes& times) noexcept;
  void pack(const RawRecord& r) noexcept;
  void write_out() noexcept;
  bool is_due(std::uint64_t now_ns) const noexcept;
  void take_lists(const RawRecord& r, CallEvent& e) noexcept;
  std::uint32_t site_of(std::uint64_t caller) noexcept {
    return caller == last_site_.caller ? last_site_.number : find_site(caller);
  }
  std::uint32_t find_site(std::uint64_t caller) noexcept;

  struct Site {
    std::uint64_t caller = 0;
    std::uint32_t number = 0;
  };
  FileWriter& writer_;
  SiteNamer namer_;
  std::uint32_t rank_;
  std::uint64_t max_age_ns_;
  BlockEncoder encoder_;
  TraceClockReader clock_;
  std::uint32_t sites_used_ = 0;
  Site last_site_;                 ///< number 0 for no caller
  std::uint64_t lost_noted_ = 0;
  std::unique_ptr<Site[]> sites_;
  std::unique_ptr<RawRecord[]> ring_;
  std::unique_ptr<std::uint64_t[]> side_;
  std::unique_ptr<std::uint64_t[]> counts_;     ///< lists of the event being packed
  std::unique_ptr<std::uint32_t[]> requests_;
  std::uint64_t ring_size_, side_size_;
  std::atomic<bool> busy_{false};

  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::uint64_t tail_seen_ = 0, side_head_ = 0, side_next_ = 0;
  std::uint64_t crowd_ = 512;
  std::atomic<std::uint64_t> lost_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> side_tail_{0};
};

}  // namespace fallow::trace
