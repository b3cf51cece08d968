#include "pmpi/runtime.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "base/cancel_guard.hpp"
#include "base/errno_guard.hpp"
#include "base/float_guard.hpp"
#include "base/signal_guard.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/launcher.hpp"
#include "pmpi/counting.hpp"
#include "pmpi/meeting.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wrapper_table.hpp"
#include "trace/direction.hpp"

namespace fallow::pmpi {
namespace {

pthread_key_t g_thread_key;  // its destructor takes a thread's block back
constexpr std::uint32_t kAborted = 2;  // RankHeader::finalized
constinit thread_local bool t_dropped = false;  // there was no block for this thread: it is not asked for again at each call

enum Message : unsigned { kBadOption = 0, kNoFile = 1, kNoPage = 2, kMissingCalls = 3, kNoTrace = 4, kNoMemory = 7 };

/// Whether this is a copy of the rank that was made without the handlers of fork() (_Fork, clone): it shares the rank's files.
bool is_copy(Runtime& rt) noexcept { return rt.writer.header().pid != getpid(); }

/// No call of this thread is recorded any more; one may be under way, as where a callback forks.
void forget_own_thread() noexcept {
  this_thread().direct = this_thread().thread = this_thread().expected = nullptr;
  this_thread().waiting = nullptr;
  if (this_thread().depth == kRepeatedDepth) this_thread().depth = 0;
}

void release_thread(void* pointer) noexcept {
  forget_own_thread();
  disown_first_block();
  // All is written, or this is a copy of the process that must not write to its parent's files. What belongs to the thread
  // stays: finish_runtime() may be looking at it.
  Runtime& rt = runtime();
  const auto over = [&rt] { return rt.phase.load() != Phase::running || is_copy(rt); };
  if (over()) return;  // before the lock, which a copy may have got from its parent as another thread held it
  const WholeLock lock(rt.threads_mutex);
  if (over()) return;
  auto* const thread = static_cast<Thread*>(pointer);
  if (runtime().forecast.belongs_to(thread)) runtime().forecast.close();
  thread->take_up_totals();  // else they would stay as a handler has left them
  add_counted(*thread, runtime().clock.now());
  if (thread->trace != nullptr) runtime().tracer.pump(*thread->trace, ~0u);
  runtime().thread_of_block[thread->index].store(nullptr);
  runtime().writer.release(*thread);
  dispose_of(thread);
}

void after_fork_in_child() noexcept {
  // The child shares the rank's file and page with its parent: it must not write there.
  runtime().phase.store(Phase::ended);
  auto* const thread = static_cast<Thread*>(this_thread().thread);
  if (thread != nullptr && this_thread().depth != 0) runtime().writer.part_from(*thread);  // a callback has forked
  if (thread != nullptr) put_back_state(*thread);  // or a handler, in the middle of a sleep
  forget_own_thread();
  forget_first_of_parent();
  __atomic_store_n(&fallow_hints.active, 0, __ATOMIC_RELAXED);
  remove_hooks(runtime());
  runtime().preload->pass_through();
}

std::uint32_t allowed_cpus() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

/// Whether ranks of this node have to share processors. `all_here`: every one of them has told which it may use. Else this
/// one's set says it, and ranks that are bound are taken to be bound each to their own.
bool is_oversubscribed(Runtime& rt, const LaunchInfo& launch, std::uint32_t local, bool all_here) noexcept {
  if (all_here) return local > rt.node.page().processors.count();
  const auto online = static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::uint32_t allowed = allowed_cpus();
  const bool bound = allowed < online && launch.local_size > 1;
  return local > (bound ? online : allowed);
}

void read_world(Runtime& rt, const LaunchInfo& launch) noexcept {
  int initialized = 0;
  rt.mpi.initialized(&initialized);
  rt.world_rank = launch.world_rank;
  rt.world_size = launch.world_size;
  if (initialized == 0) {  // the sessions model: MPI_COMM_WORLD cannot be asked
#ifdef MPI_SESSION_NULL
    if (rt.world_rank < 0 || rt.world_size < 0) rt.world.find_own(rt.mpi, rt.world_rank, rt.world_size);
#endif
    return;
  }
  rt.mpi.comm_rank(MPI_COMM_WORLD, &rt.world_rank);
  rt.mpi.comm_size(MPI_COMM_WORLD, &rt.world_size);
  rt.world.take_comm_world(rt.mpi);
}

/// OpTraits of a function.
std::uint8_t traits_of(const WrapperEntry& entry) noexcept {
  using trace::OpKind;
  const auto kind = static_cast<OpKind>(entry.kind);
  const trace::Direction direction = trace::direction_of(entry.name, kind);
  unsigned traits = entry.blocks ? kOpBlocks : 0u;
  if (direction.sends) traits |= kOpSends;
  if (direction.receives) traits |= kOpReceives;
  if (kind == OpKind::io) traits |= kOpFiles;
  if (kind == OpKind::test) traits |= kOpTests;
  if (std::strstr(entry.name, "eighbor_") != nullptr) traits |= kOpNeighbors;
  if (is_meeting(entry.name)) traits |= kOpMeets;
  if (entry.counted) traits |= kOpCounted;
  return static_cast<std::uint8_t>(traits);
}

void fill_header(Runtime& rt, const LaunchInfo& launch) noexcept {
  trace::RankHeader& h = rt.writer.header();
  for (const WrapperEntry& entry : wrapper_entries()) {
    trace::OpInfo& info = h.ops[entry.op];
    std::snprintf(info.name, sizeof info.name, "%s", entry.name);
    info.kind = entry.kind;
    info.blocks = entry.blocks ? 1 : 0;
    rt.op_traits[entry.op] = traits_of(entry);
  }
  h.state = static_cast<std::uint32_t>(trace::RankState::computing);
  h.family = FALLOW_FAMILY_NUMBER;
  h.mode = static_cast<std::uint32_t>(rt.options.mode);
  h.world_rank = rt.world_rank;
  h.world_size = rt.world_size;
  h.local_rank = launch.local_rank;
  h.local_size = launch.local_size;
  h.launch = launcher_hash();
  h.pid = getpid();
  h.clock = rt.clock.uses_tsc() ? 1 : 2;
  h.slowdown_budget = rt.options.slowdown;
  h.oversubscribed = rt.oversubscribed ? 1 : 0;
  int level = 0;
  rt.mpi.query_thread(&level);
  h.thread_level = level == MPI_THREAD_MULTIPLE ? 3 : level == MPI_THREAD_SERIALIZED ? 2 : level == MPI_THREAD_FUNNELED ? 1 : 0;
  int length = 0;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  rt.mpi.get_library_version(version, &length);
  std::snprintf(h.mpi_version, sizeof h.mpi_version, "%s", version);
  h.tick_start = rt.clock.start_ticks();
  h.mono_start_ns = rt.clock.start_ns();
  const Instant now = same_moment(monotonic_ns, wall_ns);
  h.wall_start_ns = now.ns - (now.ticks - rt.clock.start_ns());
  h.tick_hz = rt.clock.ticks_per_ns() * 1e9;
  rt.threads_share_a_lock = h.thread_level == 3 && !rt.mpi.is_open_mpi;
}

void open_everything(Runtime& rt) {
  LaunchInfo launch = launch_info();
  read_world(rt, launch);
  if (launch.local_size == 0 && rt.world_size == 1) launch.local_size = 1;  // started without a launcher, which would say it
  rt.ns_per_tick = 1.0 / rt.clock.ticks_per_ns();
  rt.ns_per_tick_q32 = static_cast<std::uint64_t>(rt.ns_per_tick * 4294967296.0);
  const auto local = static_cast<std::uint32_t>(launch.local_size);
  if (rt.node.attach(rt.options.run_id, rt.world_rank, local, rt.options.wake) == Status::failed) {
    if (!rt.node.usable()) throw std::bad_alloc();
    say(kNoPage, "ranks cannot wake each other: no shared memory to be had");
  }
  const bool all_here = local > 0 && rt.node.is_complete(local);
  rt.oversubscribed = is_oversubscribed(rt, launch, local != 0 ? local : 1, all_here);
  if (rt.oversubscribed && rt.options.mode != WaitMode::spin) rt.first_polls = kFirstPollsShared;
  rt.started_here = rt.options.wake && launch.local_size == rt.world_size && all_here;
  rt.whole_job_here = rt.started_here;
  std::string problem;
  if (rt.writer.open(rt.options, rt.world_rank, problem) == Status::failed) {
    if (!rt.writer.usable()) throw std::bad_alloc();
    say(kNoFile, problem);
  }
  fill_header(rt, launch);
  if (!rt.options.trace.empty() && rt.tracer.open(rt, problem) == Status::failed) say(kNoTrace, "no trace will be recorded: " + problem);
  const double share = rt.whole_job_here ? 1.0 : share_of_node(rt.world_size, launch.local_size);
  if (rt.options.mode == WaitMode::automatic) rt.quota = power::CpuQuota(std::string());
  rt.contention.begin_throttled(rt.quota.throttled_ns());
  rt.node.page().budget.open(rt.options.slowdown * share, rt.clock.ticks_per_ns() * 1e9, rt.clock.now());
  install_hooks(rt);
  watch_test_loops();
  allow_counting();
  if (rt.sleep_allowed && rt.options.wake && !rt.whole_job_here && rt.world_size > 1) {
    rt.sockets.enable();
    if (launch.local_size != 1) rt.node.hang_bell();
  }
}

void say_what_was_found(Runtime& rt) noexcept {
  const trace::RankHeader& h = rt.writer.header();
  constexpr const char* kHooks[] = {"no idle hook", "opal_progress", "ucp_worker_progress", "sched_yield", "libfabric", "non-blocking twin"};
  constexpr const char* kModes[] = {"spin", "yield", "sleep", "auto"};
  std::fprintf(stderr, "fallow: rank %d of %d on %s: mode %s, hook %s, %s, %s, %s, clock %s %.3f GHz\n", h.world_rank, h.world_size, h.host,
               kModes[h.mode], kHooks[h.hook], rt.whole_job_here ? "ranks wake each other" : "sleeps end by timer, or by who can be heard",
               rt.oversubscribed ? "more ranks than processors" : "a processor per rank",
               rt.writer.on_disk() ? "recording" : "no record", rt.clock.uses_tsc() ? "tsc" : "monotonic", h.tick_hz * 1e-9);
}

bool start_once(Runtime& rt) noexcept try {
  open_everything(rt);
  if (rt.options.verbose) say_what_was_found(rt);
  pthread_key_create(&g_thread_key, release_thread);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  restore_environment();
  return true;
} catch (...) {
  rt.node.detach();
  try {
    say(kNoMemory, "the program runs without Fallow: not enough memory");
  } catch (...) {
    // Not even for that line.
  }
  return false;
}

}  // namespace

alignas(Runtime) std::byte g_runtime_storage[sizeof(Runtime)];

namespace {
__attribute__((constructor)) void construct_runtime() noexcept {
  const FloatGuard guard;
  new (g_runtime_storage) Runtime;
}
}  // namespace

void say(unsigned message, const std::string& text) noexcept {
  Runtime& rt = runtime();
  const bool first = rt.node.shared() ? rt.node.first_to_say(message) : rt.world_rank <= 0;
  if (!first) return;
  const CancelGuard whole;
  const std::string line = "fallow: " + text + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

bool start_runtime() noexcept {
  Runtime& rt = runtime();
  if (rt.phase.load(std::memory_order_acquire) == Phase::running) return true;
  const FloatGuard guard;
  const CancelGuard whole;
  const WholeLock lock(rt.start_mutex);
  if (rt.phase.load() != Phase::idle) return rt.phase.load() == Phase::running;
  rt.phase.store(Phase::starting);
  const bool started = start_once(rt);
  rt.phase.store(started ? Phase::running : Phase::ended, std::memory_order_release);
  __atomic_store_n(&fallow_hints.active, started ? 1 : 0, __ATOMIC_RELAXED);
  if (!started) rt.preload->pass_through();
  return started;
}

namespace {
/// Of the first thread; where others call MPI too, theirs go unforeseen.
void open_forecast(Runtime& rt, const Thread& thread) noexcept try {
  if (rt.options.mode != WaitMode::automatic || !rt.options.predict || rt.oversubscribed) return;
  const FloatGuard guard;
  rt.forecast.open(rt.clock, rt.node.own(), rt.options.slowdown, &thread);
} catch (...) {
}
}  // namespace

Thread* attach_thread() noexcept {
  Runtime& rt = runtime();
  if (this_thread().thread != nullptr) return static_cast<Thread*>(this_thread().thread);
  const Phase phase = rt.phase.load(std::memory_order_acquire);
  if (phase == Phase::ended || t_dropped) return nullptr;
  const CancelGuard whole;
  const ErrnoGuard kept;
  if (phase != Phase::running) {
    // MPI was started by a way that no wrapper saw.
    int initialized = 0, finalized = 0;
    rt.mpi.initialized(&initialized);
    rt.mpi.finalized(&finalized);
    if (initialized == 0 || finalized != 0 || !start_runtime()) return nullptr;
  }
  std::unique_ptr<Thread, void (*)(Thread*) noexcept> thread(make_thread(), dispose_of);
  if (thread == nullptr || !rt.writer.attach(*thread)) {
    t_dropped = true;
    return nullptr;
  }
  if (rt.tracer.active()) thread->trace = rt.tracer.attach(thread->index);
  if (rt.threads.fetch_add(1, std::memory_order_relaxed) == 0) {
    open_forecast(rt, *thread);
  } else {
    rt.node.page().unseen.store(1, std::memory_order_relaxed);  // one of its threads may wait while another does not
    rt.node.page().threads.store(1, std::memory_order_relaxed);
    if (rt.threads_share_a_lock && rt.twins_ready) rt.twinned.store(true, std::memory_order_relaxed);
  }
  rt.thread_of_block[thread->index].store(thread.get());
  if (thread.get() == first_thread()) own_first_block(*rt.preload->known);
  this_thread().direct = this_thread().thread = thread.get();
  pthread_setspecific(g_thread_key, thread.get());
  return thread.release();
}

void touch_header(bool now_or_never) noexcept {
  Runtime& rt = runtime();
  const std::uint64_t now = rt.clock.now();
  if (!now_or_never && static_cast<double>(now - rt.last_touch) * rt.ns_per_tick < 1e9) return;
  rt.last_touch = now;
  const Instant instant = rt.clock.recalibrate();
  trace::RankHeader& h = rt.writer.header();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) { return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_usec) * 1000u; };
  h.cpu_user_ns = ns(usage.ru_utime);
  h.cpu_system_ns = ns(usage.ru_stime);
  h.switches_voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
  h.switches_involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
  h.tick_last = instant.ticks;
  h.mono_last_ns = instant.ns;
  h.tick_hz = rt.clock.ticks_per_ns() * 1e9;
}

namespace {
/// The other threads are outside MPI now, or the process is ending under them: then one may be at its totals itself, and is
/// given a moment for that.
void total_all_threads(Runtime& rt) noexcept {
  constexpr int kLooks = 100;
  const timespec moment{0, 100'000};
  const WholeLock lock(rt.threads_mutex);
  for (const std::atomic<Thread*>& entry : rt.thread_of_block) {
    Thread* const thread = entry.load();
    if (thread == nullptr) continue;
    if (thread == this_thread().thread) thread->take_up_totals();  // a handler may have come in the middle of them
    for (int look = 0; look < kLooks && thread->totalling.load(std::memory_order_acquire) != Totalling::nobody; ++look) {
      syscall(SYS_nanosleep, &moment, nullptr);
    }
    add_counted(*thread, rt.clock.now());
  }
}
}  // namespace

void finish_runtime(std::uint32_t how) noexcept {
  Runtime& rt = runtime();
  Phase running = Phase::running;
  if (!rt.phase.compare_exchange_strong(running, Phase::ended) || is_copy(rt)) return;
  __atomic_store_n(&fallow_hints.active, 0, __ATOMIC_RELAXED);
  const FloatGuard guard;
  const CancelGuard whole;
  remove_hooks(rt);
  total_all_threads(rt);
  rt.tracer.finish(true);
  touch_header(true);
  // Some libraries return from MPI_Abort.
  if (rt.writer.header().finalized != kAborted) rt.writer.header().finalized = how;
  rt.writer.tell(trace::RankState::ended);
  rt.node.detach();
  rt.preload->pass_through();
  forget_own_thread();
}

namespace {
/// A program may exit without MPI_Finalize.
__attribute__((destructor)) void at_exit() noexcept { finish_runtime(runtime().world.over() ? 1 : 0); }
}  // namespace

void about_to_abort() noexcept {
  const FloatGuard guard;
  const CancelGuard whole;
  Runtime& rt = runtime();
  if (rt.phase.load() != Phase::running || is_copy(rt)) return;
  if (this_thread().thread != nullptr) add_counted(*static_cast<Thread*>(this_thread().thread), rt.clock.now());
  rt.tracer.finish(false);
  touch_header(true);
  rt.writer.header().finalized = kAborted;
  rt.node.detach();
}

void about_to_finalize() noexcept {
  const FloatGuard guard;
  const CancelGuard whole;
  Runtime& rt = runtime();
  if (rt.phase.load() == Phase::running && !is_copy(rt)) rt.tracer.flush();
}

}  // namespace fallow::pmpi

