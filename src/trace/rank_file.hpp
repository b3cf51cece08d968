// Layout of the file in which one rank keeps its profile while it runs.
//
// The file is mapped into the running program, so it is readable at any time and complete up to the last
// call even when the program is killed with SIGKILL. All integers are little endian. Times are ticks of
// the rank's clock (RankHeader::tick_hz, ticks per second) unless the name says otherwise.
//
//   offset 0                      RankHeader (kHeaderBytes)
//   kHeaderBytes + i*block_bytes  thread block i: ThreadCounters, OpStats[op_slots],
//                                 SiteStats[site_slots], Event[ring_events]
//
// One writer per thread block; readers tolerate values that change under them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fallow::trace {

inline constexpr char kRankMagic[8] = {'F', 'A', 'L', 'L', 'O', 'W', 'R', 'K'};
inline constexpr std::uint32_t kRankVersion = 4;
inline constexpr std::uint32_t kHeaderBytes = 65536;
inline constexpr std::uint32_t kMaxBlocks = 64;      ///< threads with counters of their own
inline constexpr std::uint32_t kMaxOps = 512;        ///< distinct MPI functions, names in the header
inline constexpr std::uint32_t kOpNameBytes = 48;
inline constexpr std::uint32_t kMaxModules = 64;     ///< loaded objects that call sites lie in
inline constexpr std::uint32_t kModulePathBytes = 240;
inline constexpr std::uint32_t kHistogramBins = 64;  ///< bin i holds durations in [2^i, 2^(i+1)) ns; bin 0 also 0
inline constexpr std::uint32_t kCoarseBins = 3;      ///< below 20 us, below 200 us, and the rest (Dickov 2015, table 5.1)
inline constexpr std::uint64_t kCoarseEdgesNs[kCoarseBins - 1] = {20'000, 200'000};
inline constexpr std::uint32_t kPendingEvents = 128; ///< that may lie in the ring and not be in the totals yet

/// Which MPI application binary interface the program uses.
enum class Family : std::uint32_t { unknown = 0, openmpi = 1, mpich = 2, mpiabi = 3 };

/// What a call does; decides how its time is accounted.
enum class OpKind : std::uint8_t {
  other = 0,      ///< creates, frees or queries; may synchronize
  send = 1,       ///< blocking point-to-point send
  recv = 2,       ///< blocking point-to-point receive (Sendrecv too)
  start = 3,      ///< starts a non-blocking operation
  wait = 4,       ///< waits for requests
  test = 5,       ///< tests requests or probes without blocking
  probe = 6,      ///< blocking probe
  collective = 7, ///< blocking collective
  rma = 8,        ///< starts one-sided communication
  rma_sync = 9,   ///< synchronizes a window
  io = 10,        ///< file access
  setup = 11,     ///< MPI_Init, MPI_Finalize, sessions, spawn, connect
};

/// What a rank is doing now (RankHeader::state, NodePage slots).
enum class RankState : std::uint32_t { none = 0, computing = 1, in_mpi = 2, waiting = 3, asleep = 4, io = 5, ended = 6 };

struct OpInfo {
  char name[kOpNameBytes - 2];  ///< "MPI_Send", zero-terminated; empty: slot unused
  std::uint8_t kind;            ///< OpKind
  std::uint8_t blocks;          ///< 1: may block until another rank acts
};
static_assert(sizeof(OpInfo) == kOpNameBytes);

struct Module {
  std::uint64_t base;                   ///< load bias: address = base + file offset as symbol tools use it
  std::uint64_t end;                    ///< highest mapped address
  char path[kModulePathBytes - 16];
};
static_assert(sizeof(Module) == kModulePathBytes);

struct RankHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t block_bytes;
  std::uint32_t op_slots, site_slots, ring_events, bins;
  std::uint32_t op_info_bytes, counters_bytes, op_stats_bytes, site_stats_bytes, event_bytes;
  std::uint32_t blocks_used;      ///< thread blocks that hold data
  std::uint32_t threads_dropped;  ///< threads beyond kMaxBlocks, not recorded
  std::uint32_t family;           ///< Family
  std::uint32_t mode;             ///< wait mode: 0 spin, 1 yield, 2 sleep, 3 auto
  std::uint32_t thread_level;     ///< as MPI_Query_thread gave it: 0..3, single to multiple
  std::int32_t world_rank, world_size, local_rank, local_size;
  std::int32_t pid;
  std::uint32_t state;            ///< RankState
  std::uint32_t finalized;        ///< 1: MPI_Finalize, or the end of the last session, was reached; 2: MPI_Abort was called
  std::uint32_t clock;            ///< 1: time stamp counter, 2: clock_gettime(CLOCK_MONOTONIC)
  std::uint32_t hook;             ///< idle hook: 0 none, 1 opal_progress, 2 ucp_worker_progress, 3 sched_yield, 4 libfabric,
                                  ///< 5 non-blocking twin
  std::uint32_t oversubscribed;   ///< 1: more local ranks than processors allowed
  double tick_hz;                 ///< ticks per second, measured over the whole run when it ended well
  double slowdown_budget;         ///< accepted slowdown, 0.01 = 1 %
  std::uint64_t tick_start, mono_start_ns, wall_start_ns;  ///< one instant, read together
  std::uint64_t tick_last, mono_last_ns;                   ///< last instant at which both were read
  std::uint64_t cpu_user_ns, cpu_system_ns;                ///< process CPU time at mono_last_ns
  std::uint64_t switches_voluntary, switches_involuntary;
  char host[64];
  char program[256];
  char mpi_version[256];
  OpInfo ops[kMaxOps];
  std::uint32_t modules_used;
  std::uint32_t launch;           ///< hash of what the launcher calls the ranks that it started together; 0: unknown
  Module modules[kMaxModules];
};
static_assert(sizeof(RankHeader) <= kHeaderBytes);

/// Number and time of durations by size; see kHistogramBins.
struct Histogram {
  std::uint64_t count[kHistogramBins];
  std::uint64_t ticks[kHistogramBins];
  std::uint64_t coarse_count[kCoarseBins];  ///< the same durations in exact bins; see kCoarseEdgesNs
  std::uint64_t coarse_ticks[kCoarseBins];
};

/// The wait that a thread is in, for readers of a rank that was killed in it, or that runs. Written from when the wait is
/// first looked at, some microseconds after its begin.
struct OpenCall {
  std::uint64_t enter;     ///< when the call began; 0: there is none
  std::uint64_t seen;      ///< when it was known to go on, last; of spinning ranks soon after its begin
  std::uint64_t asleep;    ///< ticks of it, until then, that were slept
  std::uint64_t address;   ///< return address of the call
  std::int32_t peer;       ///< as in an Event
  std::uint16_t op, comm;
};

/// Totals of one thread. `computing` + `transfer` + `wait_awake` + `wait_asleep` + `io` is its time since
/// its first event.
struct ThreadCounters {
  std::uint64_t thread_id;        ///< kernel thread id
  std::uint64_t first_tick, last_exit_tick;
  std::uint64_t events;           ///< calls in the totals; the ring holds them and up to kPendingEvents more
  std::uint64_t counted;          ///< calls beside these that are in the totals, and were never in the ring
  std::uint64_t computing, transfer, wait_awake, wait_asleep, io;
  std::uint64_t wake_delay;       ///< time by which sleeps outlasted the waits (an upper estimate)
  std::uint64_t wake_absorbed;    ///< of it, what later waits made good: nobody had waited for this rank meanwhile
  std::uint64_t sleeps;           ///< times that the thread was put to sleep
  std::uint64_t wakes_by_peer;    ///< sleeps that a peer on the node ended
  std::uint64_t wakes_sent;       ///< peers woken
  std::uint64_t wake_send_ticks;  ///< time spent waking them
  std::uint64_t bytes_sent, bytes_received;  ///< as counts and datatypes given to the calls say
  Histogram gaps;                 ///< time between calls
  Histogram waits;                ///< waits inside blocking calls, and rests in tests
  OpenCall open;
};

struct OpStats {
  std::uint64_t calls, ticks, bytes, wait_awake, wait_asleep, wake_delay;
};

inline constexpr std::uint32_t kSeveralComms = 0xffff;  ///< SiteStats::comm where the site used too many to tell apart
inline constexpr std::uint32_t kCommsToldApart = 32;    ///< those of greater numbers are not, at call sites
constexpr std::uint32_t comm_of_site(std::uint32_t comm) noexcept { return comm < kCommsToldApart ? comm : kSeveralComms; }

inline constexpr std::uint32_t kNoModule = 0xffffffffU;  ///< SiteStats::module where it is not known

/// Statistics of one call site: (function, return address, communicator). Slot 0 takes the overflow.
struct SiteStats {
  std::uint64_t address;     ///< return address of the call; 0: unused slot (slot 0: overflow)
  std::uint32_t op;          ///< index into RankHeader::ops
  std::uint32_t comm;        ///< local communicator number, or kSeveralComms
  std::uint32_t comm_size;
  std::uint32_t module;      ///< index into RankHeader::modules, or kNoModule
  std::uint64_t calls, ticks, bytes, gap_ticks, wait_awake, wait_asleep, wake_delay, sleeps;
  std::uint64_t wait_max;
};

/// One call. Peer -1: none or any; -2: several.
struct Event {
  std::uint64_t enter, exit;
  std::uint64_t bytes;
  std::int32_t peer;         ///< rank in the communicator
  std::int32_t tag;
  std::uint16_t op;
  std::uint16_t comm;
  std::uint32_t site;        ///< index into SiteStats; until it is in the totals the last 32 bits of its return address
  std::uint32_t awake_us, asleep_us;  ///< the wait inside, by how it was spent, microseconds
};
static_assert(sizeof(Event) == 48);

}  // namespace fallow::trace
