#include "pmpi/tracer.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/float_guard.hpp"
#include "pmpi/launcher.hpp"
#include "pmpi/runtime.hpp"

namespace fallow::pmpi {
namespace {

constexpr double kCorrectNs = 1e9;          // between two corrections of the clock, at least
constexpr double kShareOfRun = 64;          // and no sooner than after this part of the run so far
constexpr double kCorrectAheadNs = 10e6;    // they hold from then on: no time after that has been asked for
constexpr std::uint32_t kUsualRequests = 256;
constexpr unsigned kRoundedBits = 9;   // of a duration in a trace with rounded times: within 0.2 %

enum Message : unsigned { kTraceStopped = 5, kUnknownComm = 6 };

std::string_view name_site(void*, std::uint64_t address, std::uint64_t& offset) noexcept {
  Runtime& rt = runtime();
  const std::uint32_t module = rt.writer.module_of(reinterpret_cast<const void*>(address));
  if (module == ~0u) return {};
  const trace::Module& m = rt.writer.header().modules[module];
  offset = address - m.base;
  return m.path;
}

/// Tells the ranks of one start of a program from those of another in the same directory, as well as it is known.
std::uint32_t launch_key(std::int32_t world_size) {
  std::uint64_t h = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : launcher_namespace() + std::to_string(world_size)) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

}  // namespace

ThreadTrace::ThreadTrace(trace::FileWriter& writer, std::uint32_t rank, std::uint16_t thread, const trace::TraceClock& clock,
                         trace::SiteNamer namer, const trace::RecorderOptions& options)
    : recorder(writer, rank, thread, clock, namer, options) {
  handles.resize(kUsualRequests);
  recorder.relieve_at(kTraceCrowded);
}

template <class Value>
void HandleList<Value>::set(std::uint64_t handle, const Value& value) noexcept {
  for (auto& e : entries_) {
    if (e.first == handle) {
      e.second = value;
      return;
    }
  }
  try {
    entries_.emplace_back(handle, value);
  } catch (...) {
    // Its calls are recorded without communicator.
  }
}

template <class Value>
Value HandleList<Value>::take(std::uint64_t handle) noexcept {
  for (auto& e : entries_) {
    if (e.first != handle) continue;
    const Value value = e.second;
    e = entries_.back();
    entries_.pop_back();
    return value;
  }
  return Value{};
}

template class HandleList<TracedWindow>;
template class HandleList<std::uint32_t>;
template class HandleList<ProbedMessage>;

Status Tracer::open(Runtime& rt, std::string& problem) noexcept try {
  const Status status = open_part(rt, problem);
  if (status != Status::ok) shared_.reset();
  return status;
} catch (...) {
  shared_.reset();
  problem = "not enough memory";
  return Status::failed;
}

Status Tracer::open_part(Runtime& rt, std::string& problem) {
  if (rt.world_rank < 0 || rt.world_size <= 0) {
    problem = "the launcher does not say which rank this is";
    return Status::failed;
  }
  shared_ = std::make_unique<TraceShared>(trace::ClockScale{rt.clock.start_ticks(), 0, 1.0 / rt.clock.ticks_per_ns()});
  const trace::RankHeader& h = rt.writer.header();
  rank_ = static_cast<std::uint32_t>(rt.world_rank);
  cpu_ = rt.options.clock == ClockSource::cpu;
  char name[160];
  std::snprintf(name, sizeof name, "/trace-%08x-%06u-%s-%d.ftr", launch_key(rt.world_size), rank_, h.host, getpid());
  trace::FileOptions options;
  options.world_size = static_cast<std::uint32_t>(rt.world_size);
  options.clock = cpu_ ? trace::ComputeClock::cpu : trace::ComputeClock::wall;
  options.start_wall_ns = h.wall_start_ns;
  options.keep_open = false;
  const Status status = shared_->writer.open((absolute(rt.options.trace) + name).c_str(), options, problem);
  if (status != Status::ok) return status;
  if (h.thread_level == 3) shared_->lock.share();
  return shared_->writer.define_rank(rank_, {h.host, h.program, h.mpi_version});
}

ThreadTrace* Tracer::attach(std::uint32_t index) noexcept try {
  auto& thread = shared_->threads[index];
  if (thread == nullptr) {
    const TraceTimes times = runtime().options.trace_times;
    trace::RecorderOptions options;
    // Between threads that call MPI one after the other, the order of calls is told by nothing but their times.
    const bool in_turn = runtime().writer.header().thread_level < 2;
    if (times == TraceTimes::rounded || (times == TraceTimes::automatic && cpu_ && in_turn)) {
      options.encoder.exact_times = false;
      options.encoder.time_bits = kRoundedBits;
    }
    thread = std::make_unique<ThreadTrace>(shared_->writer, rank_, static_cast<std::uint16_t>(index), shared_->clock,
                                           trace::SiteNamer{name_site, nullptr}, options);
  }
  if (cpu_) thread->cpu.start(runtime().clock);
  return thread.get();
} catch (...) {
  return nullptr;
}

/// Marked as packing is, for the same locks are held: a signal's handler may end the process meanwhile.
std::uint32_t Tracer::define_known(const CommMembers& members) noexcept {
  const auto* const own = static_cast<const Thread*>(this_thread().thread);
  bool none = false;
  bool& packing = own != nullptr && own->trace != nullptr ? own->trace->packing : none;
  const bool before = std::exchange(packing, true);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint32_t number = shared_->writer.define_comm(rank_, members.group, members.remote, members.origin);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  packing = before;
  return number;
}

std::uint32_t Tracer::define(MPI_Comm comm, const CommMembers& members) noexcept {
  if (comm == MPI_COMM_WORLD) return trace::kCommWorld;
  if (comm == MPI_COMM_SELF) return trace::kCommSelf;
  if (members.known) return define_known(members);
  say(kUnknownComm, "the trace leaves out where calls go on communicators with processes of another MPI_COMM_WORLD or process set");
  return trace::kCommNone;
}

/// Once a second, and ever more rarely in long runs, whose rate is known well.
void Tracer::correct_clock(std::uint64_t now) noexcept {
  const TickClock& clock = runtime().clock;
  std::uint64_t last = shared_->corrected.load(std::memory_order_relaxed);
  const double rarely = clock.to_ns(last - clock.start_ticks()) / kShareOfRun;
  if (clock.to_ns(now - last) <= std::max(kCorrectNs, rarely) || !shared_->corrected.compare_exchange_strong(last, now)) return;
  const Instant i = clock.instant();
  const std::uint64_t ns = i.ns - clock.start_ns();
  const double ns_per_tick = static_cast<double>(ns) / static_cast<double>(i.ticks - clock.start_ticks());
  shared_->clock.correct({i.ticks, ns, ns_per_tick}, i.ticks + clock.to_ticks(kCorrectAheadNs), [&clock] { return clock.now(); });
}

std::uint32_t Tracer::pack(ThreadTrace& thread, std::uint32_t most) noexcept {
  const std::uint64_t now = runtime().clock.now();
  if (now > shared_->corrected.load(std::memory_order_relaxed)) correct_clock(now);
  return thread.recorder.pump(most, now);
}

std::uint32_t Tracer::pump(ThreadTrace& thread, std::uint32_t most) noexcept {
  if (thread.packing) return 0;
  const int error = errno;
  const FloatGuard guard;
  const std::uint64_t begin = runtime().clock.now();
  thread.packing = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint32_t packed = pack(thread, most);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread.packing = false;
  packing_ticks_.fetch_add(runtime().clock.now() - begin, std::memory_order_relaxed);
  check();
  errno = error;
  return packed;
}

bool Tracer::pump_repeated(ThreadTrace& thread, std::uint32_t most) noexcept {
  constexpr std::uint32_t kTimed = 64;  // one in so many: to read the clock takes about as long as the rest
  if (thread.packing) return true;
  const bool timed = thread.polls++ % kTimed == 0;
  const std::uint64_t begin = timed ? runtime().clock.now() : 0;
  thread.packing = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint32_t packed = thread.recorder.pump_repeated(most);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread.packing = false;
  if (timed) packing_ticks_.fetch_add(kTimed * (runtime().clock.now() - begin), std::memory_order_relaxed);
  return packed != 0 && !timed;
}

void Tracer::relieve(ThreadTrace& thread) noexcept { pump(thread, kTraceBatch); }

/// Says once that nothing can be written any more.
void Tracer::check() noexcept {
  if (shared_->writer.ok() || finished_.load(std::memory_order_relaxed) || said_.exchange(true)) return;
  try {
    say(kTraceStopped, std::string("the trace ends early: ") + std::strerror(shared_->writer.problem()));
  } catch (...) {
    // Not even a line of text: the trace ends early, as its reader will say.
  }
}

void Tracer::say_what_it_took() noexcept {
  const Runtime& rt = runtime();
  const double own = rt.clock.to_ns(packing_ticks_);
  const double run = rt.clock.to_ns(rt.clock.now() - rt.clock.start_ticks());
  std::fprintf(stderr, "fallow: rank %u: packing its trace took %.2f %% of a core\n", rank_, 100.0 * own / run);
}

void Tracer::flush() noexcept {
  const auto* const own = static_cast<const Thread*>(this_thread().thread);
  if (!active() || (own != nullptr && own->trace != nullptr && own->trace->packing)) return;  // see finish()
  const int error = errno;
  for (const auto& thread : shared_->threads) {
    if (thread != nullptr) thread->recorder.flush();
  }
  shared_->writer.flush();
  check();
  errno = error;
}

void Tracer::finish(bool whole) noexcept {
  if (!active()) return;
  // Locks are held that nobody will give back. The trace ends early for this rank, as its reader will say.
  const auto* const own = static_cast<const Thread*>(this_thread().thread);
  if (own != nullptr && own->trace != nullptr && own->trace->packing) return;
  const int error = errno;
  const FloatGuard guard;
  if (runtime().options.verbose && !finished_) say_what_it_took();
  std::uint64_t dropped = 0;
  for (const auto& thread : shared_->threads) {
    if (thread != nullptr) dropped += thread->recorder.finish();
  }
  if (whole) shared_->writer.end_rank(rank_, static_cast<std::uint32_t>(std::min<std::uint64_t>(dropped, ~0u)));
  shared_->writer.flush();
  check();
  finished_ = true;
  shared_->writer.close();
  errno = error;
}

}  // namespace fallow::pmpi
