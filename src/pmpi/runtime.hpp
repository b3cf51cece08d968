// The runtime of one process: the only mutable global of this root.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "pmpi/aftermath.hpp"
#include "pmpi/comm_table.hpp"
#include "pmpi/contention.hpp"
#include "pmpi/first_thread.hpp"
#include "pmpi/forecast.hpp"
#include "pmpi/lateness.hpp"
#include "pmpi/mpi_modules.hpp"
#include "pmpi/node_page.hpp"
#include "pmpi/own_processor.hpp"
#include "pmpi/pmpi_calls.hpp"
#include "pmpi/prepared_requests.hpp"
#include "pmpi/rank_writer.hpp"
#include "pmpi/sockets.hpp"
#include "pmpi/thread_state.hpp"
#include "pmpi/toll.hpp"
#include "pmpi/trust.hpp"
#include "pmpi/tracer.hpp"
#include "pmpi/wait_state.hpp"
#include "pmpi/window_table.hpp"
#include "pmpi/world.hpp"
#include "power/cpu_quota.hpp"
#include "predict/wait_model.hpp"

namespace fallow::pmpi {

/// Life of the runtime. Only `running` records; everything else passes through.
enum class Phase : std::uint32_t { idle, starting, running, ended };

/// What the totals need to know of a function, in one byte.
enum OpTraits : unsigned {
  kOpSends = 1u << 0,     ///< its bytes are sent
  kOpReceives = 1u << 1,  ///< they are received
  kOpBlocks = 1u << 2,
  kOpFiles = 1u << 3,     ///< its time is input and output
  kOpTests = 1u << 4,
  kOpNeighbors = 1u << 5,  ///< a collective call in which data go to the neighbours of the topology alone
  kOpMeets = 1u << 6,      ///< a collective call that nobody leaves before all have come to it, if there is anything to send
  kOpCounted = 1u << 7,    ///< its wrapper can count it only, see CountedCalls
};

inline constexpr std::size_t kWaitArenaBytes = 256 * 1024;  ///< about 900 call sites

struct alignas(64) Runtime {
  // --- what almost every call reads: two lines of the caches (docs/adr/0047)
  TickClock clock;
  std::atomic<std::uint32_t> first_polls{kFirstPolls};
  std::atomic<std::uint32_t> type_generation{1};
  std::atomic<std::uint32_t> handle_generation{1};  ///< changes whenever a communicator or a datatype may have been freed
  bool oversubscribed = false;
  std::atomic<bool> twinned{false}; ///< blocking calls are carried out as their non-blocking twins
  CommTable comms;
  Node node;

  // --- the rest
  std::atomic<Phase> phase{Phase::idle};
  Options options;
  const fallow_preload_api* preload = nullptr;
  PmpiCalls mpi;
  RankWriter writer;
  Tracer tracer;
  WindowTable window_ranks;
  PreparedRequests prepared;
  MpiModules mpi_modules;
  alignas(64) std::byte wait_arena[kWaitArenaBytes];
  predict::WaitModel waits{wait_arena};
  Forecast forecast;
  MeasuredCosts costs;
  std::mutex start_mutex, threads_mutex;

  std::array<std::uint8_t, trace::kMaxOps> op_traits{};  ///< OpTraits by function
  double ns_per_tick = 1.0;
  std::uint64_t ns_per_tick_q32 = std::uint64_t{1} << 32;  ///< the same, times 2^32
  std::int32_t world_rank = -1, world_size = -1;
  World world;
  std::atomic<bool> whole_job_here{false};  ///< every rank that this one talks to runs on this node under Fallow, in one job
  bool started_here = false;        ///< all ranks that were started together run on this node under Fallow; the same on each of them
  bool threads_share_a_lock = false;///< the library holds its lock while it polls (MPICH with MPI_THREAD_MULTIPLE)
  bool sleep_allowed = false;       ///< mode, hook and threads allow sleeping
  TestLoopLimits test_loops;        ///< which loops of tests rest
  bool watches_tests = false;       ///< these are set
  std::atomic<std::uint64_t> reading{0};  ///< ticks that a reading of the clock takes
  CountLimits count_limits;         ///< which calls are counted only
  bool hooked = false;
  bool polls_tell = false;          ///< the hook is called once a poll, so that its time tells whether something moved
  bool twins_ready = false;         ///< the library has what twins.hpp needs, and the mode lets it be used
  std::atomic<bool> looks_may_harm{false};  ///< the program has generalized requests, or persistent ones that are not in `prepared`
  std::atomic<bool> windows{false}; ///< the program has made some that others may reach without shared memory
  std::atomic<std::uint32_t> threads{0};
  std::array<std::atomic<Thread*>, trace::kMaxBlocks> thread_of_block{};
  std::atomic<Thread*> sleeper{nullptr};  ///< the one thread of the process that may sleep now; owns costs, model, slot
  Contention contention;            ///< of the sleeper for its core
  power::CpuQuota quota;            ///< of the process
  Holding holding;                  ///< of the sleeper to its core
  const Thread* contention_of = nullptr;
  Lateness late;                    ///< of the sleeper's waits
  OwnProcessor processor;           ///< of the sleeper
  Trust wakers{0.25, 0.0};          ///< ranks of this node, that they end the sleeper's sleeps
  Aftermath aftermath;              ///< of the sleeper's sleeps
  Sockets sockets;                  ///< that the sleeper sleeps on, where ranks are on other nodes
  Toll toll;                        ///< of the sleeper's sleeps, where ranks of other nodes cannot be seen
  std::uint64_t last_touch = 0;     ///< tick at which the header's CPU times were written
};

/// Storage of the runtime, constructed when this library is loaded and never destroyed: the program may call MPI from
/// its own destructors.
__attribute__((visibility("hidden"))) alignas(Runtime) extern std::byte g_runtime_storage[sizeof(Runtime)];

/// In integers: the program's floating-point state need not be kept, and it takes half the time.
inline std::uint64_t to_ns(std::uint64_t ticks, std::uint64_t ns_per_tick_q32) noexcept {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(ticks) * ns_per_tick_q32) >> 32);
}

inline Runtime& runtime() noexcept { return *std::launder(reinterpret_cast<Runtime*>(g_runtime_storage)); }

/// Begins recording, once MPI can be used. Thread-safe; false if the process is not to be recorded.
bool start_runtime() noexcept;

/// State of the calling thread, created at its first call; null if it is not to be recorded.
Thread* attach_thread() noexcept;

/// Writes totals and leaves; later calls pass through. `how`: RankHeader::finalized, 0 when the process just exits.
void finish_runtime(std::uint32_t how) noexcept;

/// Writes clock, CPU time and state into the header; at most once a second unless `now_or_never`.
void touch_header(bool now_or_never) noexcept;

/// One line on stderr, from one process of the node.
void say(unsigned message, const std::string& text) noexcept;

}  // namespace fallow::pmpi
