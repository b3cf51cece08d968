// Recording of every call for `--trace`: each rank writes a part of the trace. The hot path fills a record of the
// thread's ring; packing and writing happen while a rank waits inside MPI, at its end, and where a ring fills up
// sooner, in between.
#pragma once

#include <xmmintrin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pmpi/cpu_clock.hpp"
#include "pmpi/doubts.hpp"
#include "pmpi/mpi_header.hpp"
#include "trace/file_writer.hpp"
#include "trace/rank_file.hpp"
#include "trace/recorder.hpp"
#include "trace/request_ids.hpp"

namespace fallow::pmpi {

struct Runtime;

/// Records in a ring beyond which a call packs some before it returns.
inline constexpr std::uint32_t kTraceCrowded = 512;
/// Records packed at a time, about 15 us.
inline constexpr std::uint32_t kTraceBatch = 256;

/// When a call was made, in ticks, and from where.
struct CallSpan {
  std::uint64_t enter, exit;
  const void* caller;
};

/// What a thread needs to record its calls. Lives as long as the process; the next thread with its number takes it over.
struct alignas(64) ThreadTrace {
  ThreadTrace(trace::FileWriter& writer, std::uint32_t rank, std::uint16_t thread, const trace::TraceClock& clock,
              trace::SiteNamer namer, const trace::RecorderOptions& options);

  /// A call begins: takes the computation before it.
  void enter() noexcept {
    if (cpu.active()) computed_ns = cpu.since_mark();
  }
  /// The last thing that is done for a call.
  void leave() noexcept {
    if (cpu.active()) cpu.mark();
  }
  /// The record of the call under way.
  __attribute__((always_inline)) inline trace::RawRecord& begin(trace::Op op, std::uint16_t flags, const CallSpan& span) noexcept {
    open = recorder.begin();
    trace::RawRecord& r = open != nullptr ? *open : spare;
    if (open == nullptr) [[unlikely]] r.reset();
    r.op = op;
    r.flags = flags;
    r.enter = span.enter;
    r.exit = span.exit;
    r.caller = reinterpret_cast<std::uint64_t>(span.caller);
    return r;
  }

  /// The record is complete.
  void end() noexcept {
    if (cpu.active()) {
      open->extra().cpu_ns = computed_ns;
      open->flags = static_cast<std::uint16_t>(open->flags | trace::kEventCpuTime);
    }
    open = nullptr;
    recorder.end();
  }

  trace::Recorder recorder;
  CpuClock cpu;
  std::uint64_t computed_ns = 0;
  bool packing = false;                ///< under way, or a definition is written; stays so where a signal's handler left that by longjmp, or ends the process
  trace::RawRecord* open = nullptr;    ///< null: none, or the ring has no room for it
  std::vector<std::uint64_t> handles;  ///< requests as they were given to the call under way; 0: null
  MPI_Status status{};                 ///< for calls whose own the program ignores
  std::vector<std::uint64_t> outcomes; ///< of the requests that the call under way completes
  std::uint32_t polls = 0;             ///< at which it packed
  trace::RawRecord spare;              ///< takes what finds no room
};

/// A short lock, and none where one thread makes all calls.
class TraceLock {
 public:
  void share() noexcept { shared_ = true; }
  void lock() noexcept {
    while (shared_ && locked_.exchange(true, std::memory_order_acquire)) {
      while (locked_.load(std::memory_order_relaxed)) _mm_pause();
    }
  }
  void unlock() noexcept {
    if (shared_) locked_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> locked_{false};
  bool shared_ = false;
};

/// What was probed and will be received by its message handle.
struct ProbedMessage {
  std::uint32_t comm = trace::kCommNone;
  std::int32_t peer = trace::kNoPeer, tag = trace::kNoTag;
};

/// Values by handle, for the few windows, files and probed messages of a program.
template <class Value>
class HandleList {
 public:
  void set(std::uint64_t handle, const Value& value) noexcept;
  Value find(std::uint64_t handle) const noexcept {
    for (const auto& e : entries_) {
      if (e.first == handle) return e.second;
    }
    return Value{};
  }
  Value take(std::uint64_t handle) noexcept;

 private:
  std::vector<std::pair<std::uint64_t, Value>> entries_;
};

/// A window: its communicator, and how many ranks that has.
struct TracedWindow {
  std::uint32_t comm = trace::kCommNone;
  std::int32_t peers = 0;
};

/// What the threads of a rank share.
struct TraceShared {
  explicit TraceShared(const trace::ClockScale& start) : clock(start), corrected(start.ticks) {}

  trace::FileWriter writer;
  trace::TraceClock clock;
  std::atomic<std::uint64_t> corrected;  ///< tick at which the clock was last read again
  TraceLock lock;  ///< of everything below
  trace::RequestIds requests;
  Doubts doubts;           ///< about them
  HandleList<TracedWindow> windows;
  HandleList<std::uint32_t> files;  ///< their communicators
  HandleList<ProbedMessage> messages;
  std::array<std::unique_ptr<ThreadTrace>, trace::kMaxBlocks> threads;
};

/// The members of a communicator, as far as they belong to this world, and how it was made, if that was seen.
struct CommMembers {
  trace::Group group{}, remote{};
  trace::CommOrigin origin{};
  bool known = false;
};

class Tracer {
 public:
  bool active() const noexcept { return shared_ != nullptr; }
  TraceShared& shared() noexcept { return *shared_; }

  /// Creates this rank's part in the directory that the options name. `problem` says why it cannot.
  Status open(Runtime& rt, std::string& problem) noexcept;

  /// What thread number `index` records with; null if there is no memory.
  ThreadTrace* attach(std::uint32_t index) noexcept;

  /// Number of a communicator in the trace; to be called in the order of their creation.
  std::uint32_t define(MPI_Comm comm, const CommMembers& members) noexcept;

  /// Packs up to `most` records of the calling thread and writes what is due. Returns the records packed: none if
  /// somebody else is at it.
  std::uint32_t pump(ThreadTrace& thread, std::uint32_t most) noexcept;
  /// The same at a poll, where each nanosecond may keep a message waiting; false if pump() has to do it.
  bool pump_repeated(ThreadTrace& thread, std::uint32_t most) noexcept;
  /// The ring of the calling thread is crowded: sees to it that there is room.
  void relieve(ThreadTrace& thread) noexcept;

  /// Writes what was recorded until now.
  void flush() noexcept;
  /// Writes what is left; `whole`: the rank ended well. Nothing is written from then on.
  void finish(bool whole) noexcept;

 private:
  Status open_part(Runtime& rt, std::string& problem);
  std::uint32_t define_known(const CommMembers& members) noexcept;
  void check() noexcept;
  void say_what_it_took() noexcept;
  std::uint32_t pack(ThreadTrace& thread, std::uint32_t most) noexcept;
  void correct_clock(std::uint64_t now) noexcept;

  std::unique_ptr<TraceShared> shared_;
  std::uint32_t rank_ = 0;
  bool cpu_ = false;
  std::atomic<std::uint64_t> packing_ticks_{0};  ///< that the program's threads spent packing
  std::atomic<bool> finished_{false}, said_{false};
};

}  // namespace fallow::pmpi
