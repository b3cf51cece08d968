// The hot path: what every generated wrapper does around the call of the MPI library. No system call, lock or
// allocation, except at the first use of a thread, communicator, datatype or call site.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "pmpi/caches.hpp"
#include "pmpi/foresee.hpp"
#include "pmpi/idle_poll.hpp"
#include "pmpi/runtime.hpp"
#include "pmpi/trace_call.hpp"

namespace fallow::pmpi {

/// Functions that the wrappers call on: [2 * op] what MPI_X resolves to, [2 * op + 1] PMPI_X.
extern std::atomic<void*> g_next[2 * trace::kMaxOps];

/// [op] the library's own PMPI_X, where the wrapper asks for it: load_twins() looks it up, which takes microseconds each.
extern std::atomic<void*> g_own[trace::kMaxOps];

template <bool kProfiling>
inline void* next_of(std::uint16_t op) noexcept {
  return g_next[2 * op + (kProfiling ? 1 : 0)].load(std::memory_order_relaxed);
}

/// True if `root` names a rank, not MPI_ROOT or MPI_PROC_NULL, for which other arguments have no meaning.
inline bool is_rank(int root) noexcept { return root >= 0; }

/// Decides for a call that comes in while another is under way: its own callbacks (then null), or one that never
/// returned because the program jumped out of it (then the new call counts). A call that the program makes from a
/// callback is counted, without a time of its own: that belongs to the call under way.
Thread* admit_nested(const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept;

/// The Fortran bindings may have returned without a call of ours, as of a wait for no requests: then it is not from there that
/// this call comes.
inline void forget_stale_caller(fallow_tls_block& own, const void* frame) noexcept {
  constexpr std::ptrdiff_t kMostOfBindings = 64 * 1024;  // of stack; what is further up may be another one, that is gone
  void** const at = own.caller_at;
  const std::ptrdiff_t below = reinterpret_cast<const char*>(at) - static_cast<const char*>(frame);
  if (below < 0 || below > kMostOfBindings || *at != own.caller) own.caller = nullptr;
}

/// The thread's state if this call is to be recorded, else null. `here`: its block, which may become another one here; `frame`: the
/// wrapper's frame address; `caller`: where it was called from; `profiling`: by the name PMPI_X, as tools do.
FALLOW_HOT Thread* admit(fallow_tls_block*& here, const void* frame, const void* caller, std::uint16_t op, bool profiling) noexcept {
  if (here->caller != nullptr) [[unlikely]] forget_stale_caller(*here, frame);
  if (here->depth != 0 || here->direct == nullptr) [[unlikely]] {
    Thread* const thread = admit_nested(frame, caller, op, profiling);
    here = &this_thread();
    return thread;
  }
  Thread* thread = first_thread();
  if (here->direct != thread) [[unlikely]] {
    asm volatile("");  // see this_thread()
    thread = static_cast<Thread*>(here->direct);
  }
  return thread;
}

/// Whether the Fortran bindings make this call for themselves: those that the program makes come in by a Fortran name.
inline bool is_librarys_own(const void* caller) noexcept {
  return this_thread().caller == nullptr && runtime().mpi_modules.contains(caller);
}

// Slow paths, see scope.cpp, waking.cpp and wait.cpp.
/// Adds events that the ring holds, `most` of them, to the totals of thread, functions and call sites.
void add_to_totals(Thread& thread, std::uint64_t most = ~std::uint64_t{0}) noexcept;
/// The same of all where the rank does not wait: what the forecast has missed is learnt too, as far as there is time for it.
void catch_up(Thread& thread) noexcept;
/// The wait of a call that polled is over: learns from it and notes it with the event.
void settle_wait(Thread& thread, std::uint64_t exit, trace::Event& event) noexcept;
/// If the program jumped out of a look at a wait: gives the thread back what the look had changed of it.
void put_back_state(Thread& thread) noexcept;
/// Forgets the wait of a call that the program jumped out of.
void abandon_wait(Thread& thread) noexcept;
/// What a call was about; as it is, that is not known.
struct CallDetails {
  std::uint64_t bytes = 0;
  std::int32_t peer = -1, tag = -1;
  std::uint16_t comm = 0;
  std::uint64_t received = 0;  ///< beside `bytes`, which are sent
};
/// Records the call under way as ended now: the program jumped out of it, or it was to be counted only.
void end_unreturned(Thread& thread, const CallDetails& details = {}) noexcept;
void wake_peer_slow(Thread& thread, MPI_Comm comm, int peer) noexcept;
void wake_target_slow(Thread& thread, MPI_Win win, int peer) noexcept;
void wake_partners_slow(Thread& thread, const CommInfo* info) noexcept;
/// A collective call has ended that was not told when it began.
void wake_after_collective(Thread& thread) noexcept;
void wake_recent_slow(Thread& thread) noexcept;
/// Persistent requests are being started: their peers are woken, and what of them is a collective call has its partners
/// woken by wake_recent(). Returns what they send and receive together; `comm` and `peer` mean nothing.
Prepared note_starting(Thread& thread, std::int64_t count, const MPI_Request* requests) noexcept;
void note_started(Thread& thread, const MPI_Request* requests) noexcept;
/// A part of what this request sends is ready.
void wake_for_slow(Thread& thread, MPI_Request request) noexcept;
/// After a test of so many ticks; 0: it has rested, and what it did before is known.
void wake_after_test_slow(Thread& thread, bool found, std::uint64_t ticks) noexcept;
/// A test found nothing, where ranks share cores: others may need this one. Returns the tick at which it is over now.
std::uint64_t tested_in_vain(Thread& thread, std::uint64_t enter, std::uint64_t exit) noexcept;
/// From now on loops of tests that do nothing else rest, where each rank has a core and the mode allows it.
void watch_test_loops() noexcept;
/// A test that found nothing is one of a loop that is due to rest. True if the test is to be made again first.
bool rest_in_test(Thread& thread) noexcept;
/// A loop of tests was left for something else.
void test_loop_left(Thread& thread) noexcept;
/// A test that ended at `exit` has found something, at the end of a long loop.
void test_wait_over(Thread& thread, std::uint64_t exit) noexcept;
/// Notes with the event of a test how it rested, or what rests before it cost. False if that is nothing.
bool settle_rest(Thread& thread, std::uint64_t enter, std::uint64_t exit, trace::Event& event) noexcept;
/// Whether the thread, whose library wants to give way in a test, keeps its core for now.
bool keeps_core(Thread& thread) noexcept;
void wake_for_progress(Thread& thread) noexcept;
void about_to_abort() noexcept;
/// The program ends: what was traced is written, for some launchers end ranks in MPI_Finalize once another has failed.
void about_to_finalize() noexcept;

/// Makes the unwinder call fallow_unwound() when an exception or a thread's cancellation goes through the wrapper.
/// Not a destructor: its code would be run by the C++ library inside this runtime, which cannot deal with the
/// unwinder of the program's. Wrappers and hooks are compiled without exceptions; 0x1b: a relative 32-bit address.
#define FALLOW_NOTICE_UNWINDING asm volatile(".cfi_personality 0x1b, fallow_unwound")

/// Ends the trace's record of a call; `waited`: its wait is the last of the thread.
void end_trace(Thread& thread, bool waited) noexcept;

/// Everything around one call. A call that the program leaves by longjmp is noticed by admit_nested() at the next one.
/// Every member is inlined and none hands `this` on: so the call's own values stay in registers. In memory they would be
/// read back in other widths than they were written in, and such a load waits for all stores before it.
template <bool kBlocks>
class Scope {
 public:
  FALLOW_HOT Scope(fallow_tls_block& own, Thread& thread, std::uint16_t op, const void* caller, const void* frame) noexcept
      : own_(own), thread_(thread), trace_(thread.trace), caller_(own.caller != nullptr ? own.caller : caller), op_(op) {
    Runtime& rt = runtime();
    if (traced()) [[unlikely]] trace_->enter();
    own_.depth = 1;
    own_.frame = const_cast<void*>(frame);
    own_.return_address = const_cast<void*>(caller);
    own_.caller = nullptr;
    enter_ = rt.clock.now();
    thread.enter = enter_;
    thread.caller = caller_;
    thread.op = op;
    if constexpr (kBlocks) {
      thread.comm_handle = 0;
      thread.peer = -1;
      thread.wanted_calls = 0;
      own_.polls_left = rt.first_polls.load(std::memory_order_relaxed) | kCatchingUp;
      own_.waiting = &thread;
    }
    rt.node.own().doing(trace::RankState::in_mpi, enter_);
  }

  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  FALLOW_HOT ~Scope() {
    push_event();
    if (traced()) [[unlikely]] end_trace(thread_, waited_);
    own_.depth = 0;
    if (finishing_) [[unlikely]] finish_runtime(1);
  }

  /// This run is recorded call by call, see TraceCall.
  FALLOW_HOT bool traced() const noexcept { return trace_ != nullptr; }
  FALLOW_HOT TraceCall begin_trace(trace::Op op, int result) noexcept {
    return TraceCall(thread_, *trace_, op, result, {enter_, exit_, caller_});
  }
  FALLOW_HOT void keep_requests(std::int64_t count, const MPI_Request* requests) noexcept {
    if (traced()) [[unlikely]] pmpi::keep_requests(*trace_, count, requests);
  }
  /// Where the library is to say what it matched: the program's own status, or ours where it ignores that and the trace
  /// has to tell. (Of calls with several statuses never ours: libraries return other errors then.)
  FALLOW_HOT MPI_Status* status(MPI_Status* given) noexcept {
    const bool own = traced() && given == MPI_STATUS_IGNORE && runtime().tracer.shared().doubts.any();
    return own ? &trace_->status : given;
  }

  /// The MPI library has returned.
  FALLOW_HOT void leave() noexcept {
    Runtime& rt = runtime();
    // Before the time is taken: it is better the call that seems longer than the computation that follows.
    if (traced() && trace_->recorder.crowded()) [[unlikely]] rt.tracer.relieve(*trace_);
    exit_ = rt.clock.now();
    if constexpr (kBlocks) own_.waiting = nullptr;
    rt.node.own().doing(trace::RankState::computing, exit_);
  }

  FALLOW_HOT void record(MPI_Comm comm, int peer, int tag, std::uint64_t bytes) noexcept {
    comm_id_ = comm_id(thread_, comm);
    if (comm_id_ != 0 && peer >= 0) thread_.keep_recent(handle_key(comm), peer);
    record(peer, tag, bytes);
  }

  FALLOW_HOT void record(int peer, int tag, std::uint64_t bytes) noexcept {
    peer_ = peer >= 0 ? peer : -1;
    tag_ = tag;
    bytes_ = bytes;
  }

  /// Beside what was recorded, so much was received.
  FALLOW_HOT void received_too(std::uint64_t bytes) noexcept { thread_.received_too += bytes; }

  template <class Count>
  FALLOW_HOT std::uint64_t bytes(Count count, MPI_Datatype type) noexcept {
    return data_size(thread_, count, type);
  }

  /// Of what each rank gets, this one's part.
  template <class Count>
  FALLOW_HOT std::uint64_t own(MPI_Comm comm, const Count* counts, MPI_Datatype type) noexcept {
    const CommInfo* const info = comm_info(thread_, comm);
    return info != nullptr ? bytes(counts[info->rank], type) : 0;
  }

  template <class Count>
  FALLOW_HOT std::uint64_t sum(std::int32_t peers, const Count* counts, MPI_Datatype type) noexcept {
    std::uint64_t total = 0;
    for (std::int32_t i = 0; i < peers; ++i) total += size_as_u64(counts[i]);
    return data_size(thread_, total, type);
  }

  template <class Count>
  FALLOW_HOT std::uint64_t sum_typed(std::int32_t peers, const Count* counts, const MPI_Datatype* types) noexcept {
    std::uint64_t total = 0;
    for (std::int32_t i = 0; i < peers; ++i) total += bytes(counts[i], types[i]);
    return total;
  }

  FALLOW_HOT std::int32_t peers(MPI_Comm comm) noexcept { return peers_of(thread_, comm); }
  /// Of the caller's own group.
  FALLOW_HOT std::int32_t own_group(MPI_Comm comm) noexcept {
    const CommInfo* const info = comm_info(thread_, comm);
    return info != nullptr ? info->size : 0;
  }
  /// Those that data goes to: none is MPI_PROC_NULL.
  FALLOW_HOT std::int32_t neighbors(MPI_Comm comm) noexcept {
    const CommInfo* const info = comm_info(thread_, comm);
    return info != nullptr ? info->neighbors - std::popcount(info->nowhere) : 0;
  }
  template <class Count>
  std::uint64_t sum_to_neighbors(MPI_Comm comm, const Count* counts, MPI_Datatype type) noexcept {
    return to_neighbors(comm, [&](std::int32_t i) { return bytes(counts[i], type); });
  }
  template <class Count>
  std::uint64_t sum_to_neighbors(MPI_Comm comm, const Count* counts, const MPI_Datatype* types) noexcept {
    return to_neighbors(comm, [&](std::int32_t i) { return bytes(counts[i], types[i]); });
  }

  FALLOW_HOT void wake_peer(MPI_Comm comm, int peer) noexcept {
    if constexpr (kBlocks) {
      thread_.comm_handle = handle_key(comm);
      thread_.peer = peer;
      ++thread_.wanted_calls;
    }
    if (someone_sleeps()) [[unlikely]] wake_peer_slow(thread_, comm, peer);
  }
  FALLOW_HOT void wake_target(MPI_Win win, int peer) noexcept {
    if (peer >= 0) thread_.keep_recent(handle_key(win), peer);
    if (someone_sleeps()) [[unlikely]] wake_target_slow(thread_, win, peer);
  }
  /// `part`: elements of this rank's part, as far as one number says that.
  template <class Count = int>
  FALLOW_HOT void wake_partners(MPI_Comm comm, Count part = 0, MPI_Datatype type = MPI_DATATYPE_NULL) noexcept {
    if constexpr (kBlocks) {
      thread_.comm_handle = handle_key(comm);
      thread_.peer = kSeveralPeers;
      thread_.part = size_as_u64(part);
      thread_.part_type = handle_key(type);
    } else {
      thread_.collective_on = handle_key(comm);
      thread_.collective_at = thread_.recorded;
    }
    if (someone_sleeps()) [[unlikely]] wake_partners_slow(thread_, runtime().comms.known(handle_key(comm)));
  }
  FALLOW_HOT void wake_partners() noexcept {
    if constexpr (kBlocks) thread_.peer = kSeveralPeers;
    if (someone_sleeps()) [[unlikely]] wake_partners_slow(thread_, nullptr);
  }
  /// A persistent request was made.
  FALLOW_HOT void prepared(MPI_Request request, MPI_Comm comm, std::int32_t peer, std::uint64_t sent,
                           std::uint64_t received) noexcept {
    if (request == MPI_REQUEST_NULL) return;
    const bool kept = runtime().prepared.made(handle_key(request), {handle_key(comm), peer, sent, received});
    if (!kept) [[unlikely]] runtime().looks_may_harm.store(true, std::memory_order_relaxed);
  }
  FALLOW_HOT Prepared starts(std::int64_t count, const MPI_Request* requests) noexcept {
    thread_.starting_count = 0;
    return runtime().prepared.any() ? note_starting(thread_, count, requests) : Prepared{};
  }
  /// Of the same requests, which may have other handles now.
  FALLOW_HOT void started(std::int64_t, const MPI_Request* requests) noexcept {
    if (thread_.starting_count != 0) note_started(thread_, requests);
  }
  FALLOW_HOT void wake_for(MPI_Request request) noexcept {
    if (someone_sleeps()) [[unlikely]] wake_for_slow(thread_, request);
  }
  FALLOW_HOT void wake_recent() noexcept {
    if (someone_sleeps()) [[unlikely]] wake_recent_slow(thread_);
  }
  /// After the call: it may have answered peers while it made progress.
  FALLOW_HOT void wake_after() noexcept { wake_recent(); }

  /// After a test: where it found nothing, who sleeps is seldom woken.
  FALLOW_HOT void wake_after_test(bool found) noexcept {
    if (someone_sleeps()) [[unlikely]] wake_after_test_slow(thread_, found, rested_ ? 0 : exit_ - enter_);
  }

  /// After a test that found nothing: whether to make it again, as the thread is about to sleep. It may have slept by then.
  /// Not where `next` is another tool's, which would see more calls than the program makes.
  template <class Function>
  FALLOW_HOT bool rests(Function next) noexcept {
    if (enter_ < thread_.loop.due() || g_own[op_].load(std::memory_order_relaxed) != reinterpret_cast<void*>(next)) [[likely]] return false;
    rested_ = true;
    return rest_in_test(thread_);
  }

  /// A test is over, after leave().
  FALLOW_HOT void tested(bool found) noexcept {
    Runtime& rt = runtime();
    if (found) {
      thread_.tested_at = 0;
      if (thread_.loop.ends_wait(rt.test_loops, exit_)) [[unlikely]] {
        test_wait_over(thread_, exit_);
        rested_ = true;
      } else {
        if (thread_.loop.tells_end(rt.test_loops, exit_)) rt.node.own().wait_over(exit_);
        thread_.loop.found();
      }
    } else if (rt.oversubscribed) [[unlikely]] {
      exit_ = tested_in_vain(thread_, enter_, exit_);
    } else {
      const bool left = thread_.loop.in_vain(rt.test_loops, enter_, exit_, thread_.totalled, caller_);
      if (left) [[unlikely]] test_loop_left(thread_);
    }
  }

  /// Whether the call is to be carried out as its non-blocking twin; not where `next` is another tool's.
  template <class Function>
  FALLOW_HOT bool twinned(Function next) const noexcept {
    return runtime().twinned.load(std::memory_order_relaxed) && g_own[op_].load(std::memory_order_relaxed) == reinterpret_cast<void*>(next);
  }

  /// MPI_Finalize has returned.
  FALLOW_HOT void finish_run() noexcept { finishing_ = runtime().world.finalize(); }

 private:
  FALLOW_HOT static bool someone_sleeps() noexcept { return runtime().node.page().sleepers.load(std::memory_order_relaxed) != 0; }

  template <class Size>
  std::uint64_t to_neighbors(MPI_Comm comm, Size size_of) noexcept {
    const CommInfo* const info = comm_info(thread_, comm);
    std::uint64_t total = 0;
    for (std::int32_t i = 0; info != nullptr && i < info->neighbors; ++i) total += info->leads_nowhere(i) ? 0 : size_of(i);
    return total;
  }

  FALLOW_HOT void push_event() noexcept {
    Thread& t = thread_;
    trace::Event& e = t.next_event(enter_, bytes_, peer_, tag_, op_, comm_id_, caller_);
    if constexpr (kBlocks) {
      if (t.look != Look::none) [[unlikely]] {
        settle_wait(t, exit_, e);
        waited_ = true;
      }
    } else if (rested_) [[unlikely]] {
      waited_ = settle_rest(t, enter_, exit_, e);
    }
    __builtin_prefetch(&t.ring[(t.recorded + 2) & t.ring_mask], 1);  // a store that misses delays the next message
    t.push(e, exit_);
    if (runtime().node.page().link_asked.load(std::memory_order_relaxed) != 0) [[unlikely]] foresee_gap(t, caller_);
    if (t.recorded - t.totalled >= kPendingEvents) [[unlikely]] catch_up(t);
  }

  fallow_tls_block& own_;
  Thread& thread_;
  ThreadTrace* const trace_;
  std::uint64_t enter_ = 0, exit_ = 0, bytes_ = 0;
  const void* caller_;
  std::int32_t peer_ = -1, tag_ = -1;
  std::uint16_t op_, comm_id_ = 0;
  bool finishing_ = false, waited_ = false, rested_ = false;
};

/// Around the calls that start MPI, before which there is nothing to record in.
class StartScope {
 public:
  /// Of the wrapper: where its frame is, and where it returns to.
  StartScope(const void* frame, const void* caller) noexcept;
  ~StartScope();
  StartScope(const StartScope&) = delete;
  StartScope& operator=(const StartScope&) = delete;

  void init(int result, std::uint16_t op, const void* caller) noexcept;
#ifdef MPI_SESSION_NULL
  void session(int result, std::uint16_t op, const void* caller, const MPI_Session* session) noexcept;
#endif

 private:
  void record(std::uint16_t op, const void* caller) noexcept;
  std::uint64_t enter_ = 0;
  bool outermost_ = false;
};

}  // namespace fallow::pmpi
