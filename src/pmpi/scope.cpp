#include "pmpi/scope.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/errno_guard.hpp"
#include "base/float_guard.hpp"

namespace fallow::pmpi {

void* g_next[2 * trace::kMaxOps] = {};

using trace::OpKind;

namespace {

/// A call of which the trace says no more than that it was made.
void trace_simply(Thread& t, std::uint16_t op, std::uint64_t enter, std::uint64_t exit, const void* caller, std::uint16_t flags) noexcept {
  if (t.trace == nullptr) return;
  trace::RawRecord& r = t.trace->begin(trace::op_from_name(runtime().writer.header().ops[op].name), flags, {enter, exit, caller});
  if (trace::has(r.op, trace::kOpCollective) && flags == 0) r.comm = trace::kCommWorld;
  if (t.trace->open != nullptr) t.trace->end();
  t.trace->leave();
}

/// The program left the call under way by an exception or longjmp. It counts, as ended now.
void leave_unreturned(Thread& t) noexcept {
  fallow_tls.waiting = nullptr;
  put_back_state(t);
  t.take_up_totals();
  trace::Event& e = t.next_event(t.enter, 0, -1, -1, t.op, 0);
  const std::uint64_t exit = runtime().clock.now();
  t.callers[t.recorded % kPendingEvents] = t.caller;
  if (t.look != Look::none) settle_wait(t, exit, e);
  t.push(e, exit);
  if (t.recorded - t.totalled >= kPendingEvents) add_to_totals(t);
  trace_simply(t, t.op, t.enter, e.exit, t.caller, trace::kEventFailed);
  runtime().node.own().doing(trace::RankState::computing, e.exit);
  fallow_tls.depth = 0;
}

}  // namespace

namespace {

/// Whether this is a call that was seen by its name MPI_X already, and that another tool, loaded after us, passes on as
/// PMPI_X: the call under way, or one that the program makes in a callback and that has not returned.
bool is_passed_on(const Thread& t, const void* frame, std::uint16_t op, bool profiling) noexcept {
  if (!profiling) return false;
  if (op == t.op) return true;
  // Only between the two frames is it certain that the stack is still there.
  return op == t.nested.op && frame < t.nested.frame && t.nested.frame < fallow_tls.frame &&
         static_cast<void* const*>(t.nested.frame)[1] == t.nested.caller;
}

/// Counts a call that the program made inside a callback of the MPI library: at the beginning of the call under way, to which
/// all the time since then belongs.
void count_nested(const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept {
  auto* const thread = static_cast<Thread*>(fallow_tls.thread);
  const void* const site = fallow_tls.caller != nullptr ? fallow_tls.caller : caller;  // bindings of Fortran call for the program
  if (thread == nullptr || is_passed_on(*thread, frame, op, profiling) || runtime().mpi_modules.contains(site)) return;
  Thread& t = *thread;
  if (!profiling) t.nested = {frame, caller, op};
  if (t.recorded - t.totalled >= kPendingEvents - 1) add_to_totals(t);  // one is left to the call under way
  const std::uint64_t before = t.recorded == 0 ? 0 : t.ring[(t.recorded - 1) & t.ring_mask].exit;
  const std::uint64_t began = std::max(t.enter, before);
  trace::Event& e = t.next_event(began, 0, -1, -1, op, 0);
  t.callers[t.recorded % kPendingEvents] = site;
  t.push(e, began);
}

/// Whether memory is there. A stack that the program has made for threads of its own may be gone.
bool is_readable(const void* at) noexcept {
  constexpr int kNoOperation = -1;  // which the kernel finds out once it has read the set of signals
  constexpr std::size_t kSetBytes = 8;
  const ErrnoGuard kept;
  return syscall(SYS_rt_sigprocmask, kNoOperation, at, nullptr, kSetBytes) == 0 || errno != EFAULT;
}

/// Whether the recorded call is still under way, now that one comes in from `frame`. The stack grows down: a call whose frame is
/// not below the recorded one was made after that one was left by longjmp or an exception. If it is below, the return address
/// above a live frame is still in place.
bool is_under_way(const void* frame) noexcept {
  constexpr std::ptrdiff_t kLeast = 4096;  // of its stack, which the library has had below the recorded frame
  if (frame >= fallow_tls.frame) return false;
  void** const place = static_cast<void**>(fallow_tls.frame) + 1;
  const std::ptrdiff_t below = static_cast<const char*>(fallow_tls.frame) - static_cast<const char*>(frame);
  return (below < kLeast || is_readable(place)) && *place == fallow_tls.return_address;
}

}  // namespace

Thread* admit_nested(const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept {
  if (fallow_tls.depth != 0) {
    if (is_under_way(frame)) {
      count_nested(frame, caller, op, profiling);
      fallow_tls.caller = nullptr;
      return nullptr;
    }
    auto* const thread = static_cast<Thread*>(fallow_tls.thread);
    if (thread != nullptr) {
      leave_unreturned(*thread);
      return thread;
    }
    fallow_tls.depth = 0;
  }
  Thread* const thread = attach_thread();
  if (thread == nullptr) fallow_tls.caller = nullptr;
  return thread;
}

std::uint64_t type_size_slow(Thread&, MPI_Datatype type, TypeSlot& slot) noexcept {
  MPI_Count size = 0;
  const std::uint32_t generation = runtime().type_generation.load(std::memory_order_relaxed);
  if (runtime().mpi.type_size(type, &size) != MPI_SUCCESS || size < 0) return 0;
  slot = {handle_key(type), static_cast<std::uint64_t>(size), generation};
  return slot.size;
}

const CommInfo* comm_info_slow(Thread& thread, MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_NULL) return nullptr;
  const std::uint32_t generation = runtime().comms.generation();
  const CommInfo* const info = runtime().comms.find(comm);
  thread.last_comm = handle_key(comm);
  thread.last_info = info;
  thread.comm_generation = generation;
  return info;
}

namespace {

inline void add(trace::Histogram& h, std::uint64_t ticks, std::uint64_t ns_per_tick_q32) noexcept {
  const std::uint64_t ns = to_ns(ticks, ns_per_tick_q32);
  const unsigned bin = 63u - static_cast<unsigned>(std::countl_zero(ns | 1u));
  ++h.count[bin];
  h.ticks[bin] += ticks;
  const unsigned coarse = ns < trace::kCoarseEdgesNs[0] ? 0u : ns < trace::kCoarseEdgesNs[1] ? 1u : 2u;
  ++h.coarse_count[coarse];
  h.coarse_ticks[coarse] += ticks;
}

/// Looks on from slot `i` of the table of call sites, and takes a free slot for a new one. The overflow slot 0 when the
/// table is crowded.
__attribute__((noinline)) std::uint32_t find_site(Thread& t, const void* caller, const trace::Event& e, std::uint32_t comm, std::uint32_t i) noexcept {
  constexpr unsigned kProbes = 8;
  const auto address = reinterpret_cast<std::uint64_t>(caller);
  for (unsigned probe = 0; probe < kProbes; ++probe, i = (i + 1) & t.site_mask) {
    if (i == 0) continue;
    trace::SiteStats& s = t.sites[i];
    if (s.address == address && s.op == e.op && s.comm == comm) return i;
    if (s.address == 0 && address != 0) {
      s.op = e.op;
      s.comm = comm;
      s.comm_size = runtime().comms.size_of(e.comm);
      s.module = runtime().writer.module_of(caller);
      s.address = address;
      return i;
    }
  }
  return 0;
}

/// Slot of a call site; 0, the overflow, when the table is crowded. Programs that make communicators all the time
/// would crowd it with sites that differ by nothing else, so only the first communicators are told apart.
inline std::uint32_t site_slot(Thread& t, const void* caller, const trace::Event& e) noexcept {
  const std::uint32_t comm = trace::comm_of_site(e.comm);
  const auto address = reinterpret_cast<std::uint64_t>(caller);
  const std::uint64_t hash = (address ^ (std::uint64_t{e.op} << 48) ^ (std::uint64_t{comm} << 32)) * 0x9e3779b97f4a7c15u;
  const std::uint32_t i = static_cast<std::uint32_t>(hash >> 40) & t.site_mask;
  const trace::SiteStats& s = t.sites[i];
  const std::uint64_t differ = (s.address ^ address) | (s.op ^ e.op) | (s.comm ^ comm) | std::uint64_t{i == 0};
  return differ == 0 ? i : find_site(t, caller, e, comm, i);
}

/// A blocking call that took this long waited, even if it polled too few times to look at the time: where ranks share cores, others
/// had its core between them. Returns its wait; 0: none.
inline std::uint64_t unmarked_wait(unsigned traits, std::uint64_t duration) noexcept {
  constexpr std::uint64_t kDescheduledNs = 20'000;
  const Runtime& rt = runtime();
  return (traits & kOpBlocks) != 0 && rt.oversubscribed && to_ns(duration, rt.ns_per_tick_q32) > kDescheduledNs ? duration : 0;
}

void add_wait(Thread& t, const PendingWait& w, trace::OpStats& op, trace::SiteStats& site) noexcept {
  trace::ThreadCounters& c = *t.counters;
  c.wait_asleep += w.asleep;
  c.wait_awake += w.wait - w.asleep;
  c.wake_delay += w.delay;
  c.wake_absorbed += w.absorbed;
  c.sleeps += w.sleeps;
  op.wait_awake += w.wait - w.asleep;
  op.wait_asleep += w.asleep;
  op.wake_delay += w.delay;
  site.wait_awake += w.wait - w.asleep;
  site.wait_asleep += w.asleep;
  site.wake_delay += w.delay;
  site.sleeps += w.sleeps;
  if (w.wait > site.wait_max) site.wait_max = w.wait;
}

/// A rank whose tests are not watched may be waiting at any time without our seeing it.
void announce_tests(Thread& t) noexcept {
  t.tells_tests = true;
  if (!runtime().watches_tests) runtime().node.page().unseen.store(1, std::memory_order_relaxed);
}

/// What is the same for all events that are added together.
struct Batch {
  std::uint64_t scale;  ///< nanoseconds per tick, times 2^32
  unsigned rare;        ///< OpTraits that need a closer look
};

/// What is rare in an event: waits, tests for the first time, and input and output. Returns its wait.
__attribute__((noinline)) std::uint64_t add_rare(Thread& t, Batch& b, std::uint64_t number, const trace::Event& e, unsigned traits) noexcept {
  const std::uint64_t duration = e.exit - e.enter;
  std::uint64_t wait = 0;
  if (e.awake_us != 0) {  // the mark of an event that waited
    const PendingWait& pending = t.waits[number % kPendingEvents];
    wait = pending.wait;
    add_wait(t, pending, t.ops[e.op], t.sites[e.site]);
  } else if (wait = unmarked_wait(traits, duration); wait != 0) {
    add_wait(t, {wait, 0, 0, 0, 0}, t.ops[e.op], t.sites[e.site]);
  }
  if ((traits & kOpFiles) != 0) {
    t.counters->io += duration - wait;
    t.counters->transfer -= duration - wait;
  }
  if ((traits & kOpTests) != 0 && !t.tells_tests) {
    announce_tests(t);
    b.rare &= ~static_cast<unsigned>(kOpTests);
  }
  return wait;
}

inline void add_event(Thread& t, Batch& b, std::uint64_t number) noexcept {
  trace::ThreadCounters& c = *t.counters;
  trace::Event& e = t.ring[number & t.ring_mask];
  const unsigned traits = runtime().op_traits[e.op];
  const std::uint64_t duration = e.exit - e.enter;
  const std::uint64_t gap = t.last_exit != 0 && e.enter > t.last_exit ? e.enter - t.last_exit : 0;
  const std::uint32_t slot = site_slot(t, t.callers[number % kPendingEvents], e);
  e.site = slot;
  std::uint64_t wait = 0;
  if (((traits & b.rare) | e.awake_us) != 0) [[unlikely]] wait = add_rare(t, b, number, e, traits);
  c.computing += gap;
  c.transfer += duration - wait;
  add(c.gaps, gap, b.scale);
  if (wait != 0) {
    add(c.waits, wait, b.scale);
  } else if ((traits & kOpBlocks) != 0) {
    ++c.waits.count[0];
    ++c.waits.coarse_count[0];
  }
  trace::OpStats& op = t.ops[e.op];
  ++op.calls;
  op.ticks += duration;
  op.bytes += e.bytes;
  trace::SiteStats& site = t.sites[slot];
  ++site.calls;
  site.ticks += duration;
  site.bytes += e.bytes;
  site.gap_ticks += gap;
  if ((traits & kOpSends) != 0) c.bytes_sent += e.bytes;
  if ((traits & kOpReceives) != 0) c.bytes_received += e.bytes;
  c.last_exit_tick = t.last_exit = e.exit;
  ++c.events;  // last: a reader of a killed program's file sees complete totals
}

/// Of `added` events those that are not tests in vain are told to the node. Now and then some of the latter have been counted
/// that are yet to be added: the number is right in the long run only.
void tell_calls(Thread& t, std::uint64_t added) noexcept {
  const std::uint64_t vain = t.all_vain_tests - t.told_vain_tests;
  t.told_vain_tests = t.all_vain_tests;
  runtime().node.own().calls.fetch_add(added - vain, std::memory_order_relaxed);
}

}  // namespace

void add_to_totals(Thread& t, std::uint64_t most) noexcept {
  const bool own = fallow_tls.thread == &t;
  if (t.totalled == t.recorded || !t.begin_totals(own ? Totalling::itself : Totalling::other)) return;
  const Runtime& rt = runtime();
  trace::ThreadCounters& c = *t.counters;
  if (c.first_tick == 0) c.first_tick = t.ring[t.totalled & t.ring_mask].enter;
  Batch b{rt.ns_per_tick_q32, kOpFiles | (t.tells_tests ? 0u : kOpTests) | (rt.oversubscribed ? kOpBlocks : 0u)};
  const std::uint64_t all = std::atomic_ref(t.recorded).load(std::memory_order_acquire);  // of another thread there may be more soon
  const std::uint64_t until = t.totalled + std::min(most, all - t.totalled);
  const std::uint64_t added = until - t.totalled;
  for (; t.totalled != until; ++t.totalled) add_event(t, b, t.totalled);
  c.bytes_received += t.received_too;
  t.received_too = 0;
  if (rt.oversubscribed) tell_calls(t, added);
  t.end_totals();
}

void end_trace(Thread& thread, bool waited) noexcept {
  ThreadTrace& t = *thread.trace;
  if (t.open != nullptr) [[likely]] {
    const std::uint64_t last = thread.recorded - 1;
    const trace::Event& e = thread.ring[last & thread.ring_mask];
    const std::uint64_t wait = waited ? thread.waits[last % kPendingEvents].wait : unmarked_wait(runtime().op_traits[e.op], e.exit - e.enter);
    if (wait != 0) t.open->extra().wait = wait;
    t.end();
  }
  t.leave();
}

/// Personality routine of the wrappers' frames (Itanium C++ ABI, exception handling, 1.6.1): it has nothing to catch
/// and cleans up on the way. No function of an unwinder is called, so it does not matter whose unwinder this is.
extern "C" __attribute__((visibility("hidden"), used)) int fallow_unwound(int, int actions, std::uint64_t, void*, void*) {
  constexpr int kCleanupPhase = 2, kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0 && fallow_tls.depth != 0) {
    auto* const thread = static_cast<Thread*>(fallow_tls.thread);
    if (thread != nullptr) leave_unreturned(*thread);
  }
  return kContinueUnwind;
}

StartScope::StartScope(const void* frame, const void* caller) noexcept : outermost_(fallow_tls.depth == 0) {
  if (!outermost_) return;
  fallow_tls.depth = 1;
  fallow_tls.frame = const_cast<void*>(frame);
  fallow_tls.return_address = const_cast<void*>(caller);
  enter_ = runtime().clock.now();
}

StartScope::~StartScope() {
  if (outermost_) fallow_tls.depth = 0;
}

void StartScope::record(std::uint16_t op, const void* caller) noexcept {
  Thread* const thread = attach_thread();
  if (thread == nullptr) return;
  trace::Event& e = thread->next_event(enter_, 0, -1, -1, op, 0);
  if (fallow_tls.caller != nullptr) caller = fallow_tls.caller;
  thread->callers[thread->recorded % kPendingEvents] = caller;
  fallow_tls.caller = nullptr;
  thread->push(e, runtime().clock.now());
  trace_simply(*thread, op, enter_, e.exit, caller, 0);
}

void StartScope::init(int result, std::uint16_t op, const void* caller) noexcept {
  if (!outermost_ || result != MPI_SUCCESS || !start_runtime()) return;
  runtime().world.take_comm_world(runtime().mpi);  // after sessions: it was not there when recording began
  record(op, caller);
}

#if MPI_VERSION >= 4
void StartScope::session(int result, std::uint16_t op, const void* caller, const MPI_Session* session) noexcept {
  if (!outermost_ || result != MPI_SUCCESS) return;
  runtime().world.begin(*session);
  if (start_runtime()) record(op, caller);
}
#endif

}  // namespace fallow::pmpi
