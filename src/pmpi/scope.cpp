#include "pmpi/scope.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/errno_guard.hpp"
#include "base/float_guard.hpp"
#include "pmpi/counting.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {

std::atomic<void*> g_next[2 * trace::kMaxOps] = {};

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

}  // namespace

void end_unreturned(Thread& t, const CallDetails& details) noexcept {
  this_thread().waiting = nullptr;
  if (std::exchange(this_thread().depth, 0u) == kCountedDepth) return;  // that was counted when it began
  put_back_state(t);
  t.take_up_totals();
  trace::Event& e = t.next_event(t.enter, details.bytes, details.peer, details.tag, t.op, details.comm, t.caller);
  const std::uint64_t exit = runtime().clock.now();
  if (t.look != Look::none) settle_wait(t, exit, e);
  t.received_too += details.received;
  t.push(e, exit);
  if (t.recorded - t.totalled >= kPendingEvents) add_to_totals(t);
  trace_simply(t, t.op, t.enter, e.exit, t.caller, trace::kEventFailed);
  runtime().node.own().doing(trace::RankState::computing, e.exit);
}

namespace {

/// Whether this is a call that was seen by its name MPI_X already, and that another tool, loaded after us, passes on as
/// PMPI_X: the call under way, or one that the program makes in a callback and that has not returned.
bool is_passed_on(const Thread& t, const void* frame, std::uint16_t op, bool profiling) noexcept {
  if (!profiling) return false;
  if (op == t.op) return true;
  // Only between the two frames is it certain that the stack is still there.
  return op == t.nested.op && frame < t.nested.frame && t.nested.frame < this_thread().frame &&
         static_cast<void* const*>(t.nested.frame)[1] == t.nested.caller;
}

/// Counts a call that the program made inside a callback of the MPI library: at the beginning of the call under way, to which
/// all the time since then belongs.
void count_nested(const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept {
  auto* const thread = static_cast<Thread*>(this_thread().thread);
  const void* const site = this_thread().caller != nullptr ? this_thread().caller : caller;  // bindings of Fortran call for the program
  if (thread == nullptr || is_passed_on(*thread, frame, op, profiling) || runtime().mpi_modules.contains(site)) return;
  Thread& t = *thread;
  if (!profiling) t.nested = {frame, caller, op};
  if (t.recorded - t.totalled >= kPendingEvents - 1) add_to_totals(t);  // one is left to the call under way
  const std::uint64_t before = t.recorded == 0 ? 0 : t.ring[(t.recorded - 1) & t.ring_mask].exit;
  const std::uint64_t began = std::max(t.enter, before);
  trace::Event& e = t.next_event(began, 0, -1, -1, op, 0, site);
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
  if (frame >= this_thread().frame) return false;
  void** const place = static_cast<void**>(this_thread().frame) + 1;
  const std::ptrdiff_t below = static_cast<const char*>(this_thread().frame) - static_cast<const char*>(frame);
  return (below < kLeast || is_readable(place)) && *place == this_thread().return_address;
}

}  // namespace

namespace {

__attribute__((noinline)) Thread* admit_other(const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept {
  if (this_thread().depth == kRepeatedDepth) take_up_repeat(*static_cast<Thread*>(this_thread().thread));
  if (this_thread().depth != 0) {
    if (is_under_way(frame)) {
      count_nested(frame, caller, op, profiling);
      this_thread().caller = nullptr;
      return nullptr;
    }
    auto* const thread = static_cast<Thread*>(this_thread().thread);
    if (thread != nullptr) {
      end_unreturned(*thread);
      return thread;
    }
    this_thread().depth = 0;
  }
  Thread* const thread = attach_thread();
  if (thread == nullptr) this_thread().caller = nullptr;
  return thread;
}

}  // namespace

Thread* admit_nested(const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept {
  const bool counts = this_thread().depth == 0 && this_thread().thread != nullptr;
  return counts ? admit_counting(frame, caller, op) : admit_other(frame, caller, op, profiling);
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
  thread.last_comm_id = info != nullptr ? info->event_id() : 0;
  thread.comm_generation = generation;
  return info;
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
  if ((actions & kCleanupPhase) != 0 && this_thread().depth != 0) {
    auto* const thread = static_cast<Thread*>(this_thread().thread);
    if (thread != nullptr && this_thread().depth == kRepeatedDepth) take_up_repeat(*thread);
    if (thread != nullptr) end_unreturned(*thread);
  }
  return kContinueUnwind;
}

StartScope::StartScope(const void* frame, const void* caller) noexcept : outermost_(this_thread().depth == 0) {
  if (!outermost_) return;
  this_thread().depth = 1;
  this_thread().frame = const_cast<void*>(frame);
  this_thread().return_address = const_cast<void*>(caller);
  enter_ = runtime().clock.now();
}

StartScope::~StartScope() {
  if (outermost_) this_thread().depth = 0;
}

void StartScope::record(std::uint16_t op, const void* caller) noexcept {
  Thread* const thread = attach_thread();
  if (thread == nullptr) return;
  if (this_thread().caller != nullptr) caller = this_thread().caller;
  trace::Event& e = thread->next_event(enter_, 0, -1, -1, op, 0, caller);
  this_thread().caller = nullptr;
  thread->push(e, runtime().clock.now());
  add_to_totals(*thread);  // which name the program in the header, for what is never added
  trace_simply(*thread, op, enter_, e.exit, caller, 0);
}

void StartScope::init(int result, std::uint16_t op, const void* caller) noexcept {
  if (!outermost_ || result != MPI_SUCCESS || !start_runtime()) return;
  runtime().world.take_comm_world(runtime().mpi);  // after sessions: it was not there when recording began
  record(op, caller);
}

#ifdef MPI_SESSION_NULL
void StartScope::session(int result, std::uint16_t op, const void* caller, const MPI_Session* session) noexcept {
  if (!outermost_ || result != MPI_SUCCESS) return;
  runtime().world.begin(*session);
  if (start_runtime()) record(op, caller);
}
#endif

}  // namespace fallow::pmpi
