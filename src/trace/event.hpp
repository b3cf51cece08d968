// The event model: what a trace says of each MPI call of each rank. Used alike by the recorder inside the
// runtime, by the evaluation of predictors and by the simulator. (The last calls that the runtime keeps for its
// timeline are the smaller trace::Event of rank_file.hpp.)
//
// Times are nanoseconds on one scale for all ranks; 0 is TraceInfo::start_wall_ns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/comm_groups.hpp"
#include "trace/op.hpp"

namespace fallow::trace {

/// What `peer`, `recv_peer` and `root` say where they name no rank.
inline constexpr std::int32_t kNoPeer = -1;    ///< the call has none, or it is not known
inline constexpr std::int32_t kAnyPeer = -2;   ///< MPI_ANY_SOURCE, and what matched is not known
inline constexpr std::int32_t kNullPeer = -3;  ///< MPI_PROC_NULL: no data moves
inline constexpr std::int32_t kRootHere = -4;  ///< MPI_ROOT: this rank of an intercommunicator is the root
/// What `tag` and `recv_tag` say where they are no tag. MPI's tags are never negative.
inline constexpr std::int32_t kNoTag = -1;
inline constexpr std::int32_t kAnyTag = -2;  ///< MPI_ANY_TAG, and what matched is not known

/// CallEvent::flags
enum EventFlags : std::uint16_t {
  kEventAnySource = 1u << 0,   ///< the receive named MPI_ANY_SOURCE; peer is what matched, where known
  kEventAnyTag = 1u << 1,      ///< likewise MPI_ANY_TAG
  kEventFailed = 1u << 2,      ///< the call returned an error
  kEventInPlace = 1u << 3,     ///< MPI_IN_PLACE
  kEventComplete = 1u << 4,    ///< a test, probe or win_test that found what it asked for
  kEventCpuTime = 1u << 5,     ///< compute_ns was measured as CPU time of the thread, not as the gap
  kEventCountsLost = 1u << 6,  ///< the counts per peer did not fit; the sums are right
  kEventRequestsLost = 1u << 7,///< some requests could not be followed
  kEventAfterLoss = 1u << 8,   ///< events of this rank before this one were dropped
};

inline constexpr std::uint32_t kNoRequest = ~0u;

/// What became of a request, where the call that began it does not say: it received from any source or of any tag, or the
/// program asked to cancel it.
enum Outcome : std::uint64_t {
  kOutcomeUnsaid = 0,
  kOutcomeCancelled = 1,  ///< in time: no data moved
  kOutcomeMatched = 2,    ///< not cancelled; its peer is the one given, or not known
  kOutcomeFrom = 3,       ///< and beyond: this plus the rank that it received from, as CallEvent::peer counts them
};

/// One MPI call of one rank. Spans stay valid until the next event is taken from the same rank of the source.
struct CallEvent {
  Op op = Op::other;
  std::uint16_t flags = 0;        ///< EventFlags
  std::uint16_t thread = 0;       ///< number of the calling thread within the rank, 0 the first
  std::uint32_t comm = kCommNone; ///< index into the table of communicators; RMA and I/O: of the window or file
  std::uint32_t site = 0;         ///< index into TraceInfo::sites; 0: unknown

  /// Rank in the communicator: destination of sends (sendrecv's too) and one-sided calls, source of receives and
  /// probes; in an intercommunicator, rank in the remote group.
  std::int32_t peer = kNoPeer;
  std::int32_t tag = kNoTag;
  std::int32_t recv_peer = kNoPeer;  ///< receive side of calls that send as well (sendrecv)
  std::int32_t recv_tag = kNoTag;
  std::int32_t root = kNoPeer;       ///< of rooted collectives

  /// Bytes that move with this call from this rank, in total over all peers: the message of a send; the own block
  /// of gather and all-gather; n blocks of all-to-all; the vector of broadcast and reductions on every rank;
  /// n blocks at the root of scatter, elsewhere 0. For receives and get: the bytes expected (0 here for sendrecv's
  /// receive side, which is recv_bytes). I/O: the bytes of the access. Persistent: given at _init, 0 at start.
  std::uint64_t bytes = 0;
  /// Bytes that come back, in total: sendrecv's receive side; n blocks of all-gather, all-to-all, and of gather
  /// at its root; the own block of scatter and reduce_scatter. 0 for all other calls.
  std::uint64_t recv_bytes = 0;

  std::uint64_t enter_ns = 0;
  std::uint64_t exit_ns = 0;     ///< >= enter_ns
  /// Computation since the previous call of this thread: CPU time with kEventCpuTime, else the gap.
  std::uint64_t compute_ns = 0;
  std::uint64_t wait_ns = 0;     ///< part of the call in which the rank only waited for others; 0: none or unknown

  /// Bytes per peer where they differ (alltoallv, gatherv at the root, ...), in order of rank; else empty.
  /// Of win_start and win_post the group, as world ranks. Of calls that make a communicator with a topology (`comm` is
  /// the new one) the neighbours that the rank sends to and receives from: rank in it plus one, 0 for MPI_PROC_NULL.
  /// Of psend_init the number of partitions, of pready and its kind how many are ready from then on.
  /// Of calls that complete requests either empty or, for each of `completed`, its Outcome and the tag received; of
  /// request_get_status the same for its request.
  std::span<const std::uint64_t> counts;
  std::span<const std::uint64_t> recv_counts;
  /// Requests that the call creates, starts, cancels or frees, as the operation says. Numbers are the rank's own
  /// and small: a number is used again once its request has completed (persistent: was freed).
  std::span<const std::uint32_t> requests;
  /// Requests that have completed when the call returns (wait, test and their kind).
  std::span<const std::uint32_t> completed;
};

/// The requests of which a call may say what became of them: those that it completed, or looked at.
inline std::span<const std::uint32_t> ended_in(const CallEvent& e) noexcept {
  if (e.op == Op::request_get_status) return e.requests;
  return has(e.op, kOpCompletes) ? e.completed : std::span<const std::uint32_t>{};
}
/// A call that says it.
inline bool tells_outcomes(const CallEvent& e) noexcept {
  const std::size_t n = ended_in(e).size();
  return n != 0 && e.counts.size() == n && e.recv_counts.size() == n;
}

/// Where in the program a call stands.
struct Site {
  std::uint64_t address = 0;  ///< as symbol tools use it: offset in `module`
  std::uint32_t module = 0;   ///< index into TraceInfo::modules
  std::string label;          ///< where another format's trace had a name and no address
};

/// How the times between calls were measured.
enum class ComputeClock : std::uint8_t { wall = 0, cpu = 1 };

struct RankInfo {
  std::string host;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;   ///< events lost because the ring was full
  std::uint64_t left_out = 0;  ///< events that write_trace() was told to cut away
  std::uint32_t threads = 1;   ///< that called MPI
  std::uint64_t first_ns = 0, last_ns = 0;
  bool complete = true;        ///< false: the rank was killed or its file is damaged at the end
};

struct TraceInfo {
  std::string program;
  std::string mpi_version;
  std::uint64_t start_wall_ns = 0;  ///< since the epoch
  ComputeClock clock = ComputeClock::wall;
  std::vector<RankInfo> ranks;      ///< by world rank
  std::vector<Site> sites;          ///< [0]: unknown
  std::vector<std::string> modules; ///< paths; [0]: unknown
  CommGroups comms;
};

/// Events by rank, in order of enter_ns within each rank (and of their making, within each thread). Readers
/// decode block by block: memory does not grow with the length of a trace. Each rank is its own cursor; one
/// thread at a time.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual const TraceInfo& info() const noexcept = 0;
  /// The next event of `rank`; false at its end. Throws what the source throws on damage (TraceFileError).
  virtual bool next(std::uint32_t rank, CallEvent& event) = 0;
  /// Back to the first event of `rank`.
  virtual void rewind(std::uint32_t rank) = 0;
  /// With `true`, for what replays and makes its own times: enter_ns, exit_ns and wait_ns of the events to come need not
  /// be right, of ranks with one thread. Holds for each rank from its next rewind() on, at the latest.
  virtual void leave_out_times(bool /*out*/) {}
  /// The event that next() gave last of `rank`, once more, for whom leaves times out: who waits with it need not keep it.
  virtual void again(std::uint32_t rank, CallEvent& event) = 0;
  /// Some call of `rank` says what became of requests (tells_outcomes()).
  virtual bool has_outcomes(std::uint32_t /*rank*/) const noexcept { return false; }
  /// A hint that events of `rank` will be wanted before long: in steps 0 to 2, each of which needs what the one before it
  /// has brought; or, in step 3 after step 0, that a single one will.
  virtual void prefetch(std::uint32_t /*rank*/, unsigned /*step*/) const noexcept {}

 protected:
  EventSource() = default;
  EventSource(const EventSource&) = default;
  EventSource& operator=(const EventSource&) = default;
};

/// A trace in memory: for tests, generators and converters.
class MemorySource final : public EventSource {
 public:
  explicit MemorySource(std::uint32_t ranks);
  TraceInfo& edit() noexcept { return info_; }

  /// Appends a copy, spans included; RankInfo is kept up to date. Events of a rank come in order of enter_ns.
  void add(std::uint32_t rank, const CallEvent& event);

  const TraceInfo& info() const noexcept override { return info_; }
  bool next(std::uint32_t rank, CallEvent& event) override;
  void again(std::uint32_t rank, CallEvent& event) override { give(ranks_[rank], ranks_[rank].next - 1, event); }
  void rewind(std::uint32_t rank) override { ranks_[rank].next = 0; }
  bool has_outcomes(std::uint32_t rank) const noexcept override { return ranks_[rank].outcomes; }

 private:
  struct Offsets {
    std::uint64_t counts = 0, requests = 0;  ///< where the event's lists begin in the arrays below
  };
  struct Rank {
    std::vector<CallEvent> events;
    std::vector<Offsets> offsets;
    std::vector<std::uint64_t> counts;
    std::vector<std::uint32_t> requests;
    std::size_t next = 0;
    bool outcomes = false;
  };
  static void give(const Rank& rank, std::size_t number, CallEvent& event);
  TraceInfo info_;
  std::vector<Rank> ranks_;
};

}  // namespace fallow::trace
