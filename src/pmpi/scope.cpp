#include "pmpi/scope.hpp"

#include <bit>

namespace fallow::pmpi {

void* g_next[2 * trace::kMaxOps] = {};

using trace::OpKind;

Thread* admit_nested(const void* frame) noexcept {
  if (fallow_tls.depth != 0) {
    // The stack grows down: a call whose frame is not below the recorded one was made after that one was left
    // by longjmp. The return address above a live frame is still in place.
    const bool above = frame >= fallow_tls.frame;
    if (!above) {
      fallow_tls.caller = nullptr;
      return nullptr;
    }
    auto* const thread = static_cast<Thread*>(fallow_tls.thread);
    fallow_tls.depth = 0;
    fallow_tls.waiting = nullptr;
    if (thread != nullptr && thread->polled) settle_wait(*thread);
    if (thread != nullptr) return thread;
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

unsigned bin_of(double ns) noexcept {
  const auto n = static_cast<std::uint64_t>(ns);
  return 63u - static_cast<unsigned>(std::countl_zero(n | 1u));
}

void add(trace::Histogram& h, std::uint64_t ticks, double ns_per_tick) noexcept {
  const unsigned bin = bin_of(static_cast<double>(ticks) * ns_per_tick);
  ++h.count[bin];
  h.ticks[bin] += ticks;
}

/// Slot of this call site; the overflow slot 0 when the table is crowded.
std::uint32_t site_slot(Thread& t) noexcept {
  constexpr unsigned kProbes = 8;
  const auto address = reinterpret_cast<std::uint64_t>(t.caller);
  std::uint64_t hash = (address ^ (std::uint64_t{t.op} << 48) ^ (std::uint64_t{t.comm_id} << 32)) * 0x9e3779b97f4a7c15u;
  std::uint32_t i = static_cast<std::uint32_t>(hash >> 40) & t.site_mask;
  for (unsigned probe = 0; probe < kProbes; ++probe, i = (i + 1) & t.site_mask) {
    if (i == 0) continue;
    trace::SiteStats& s = t.sites[i];
    if (s.address == address && s.op == t.op && s.comm == t.comm_id) [[likely]] return i;
    if (s.address == 0 && address != 0) {
      s.op = t.op;
      s.comm = t.comm_id;
      s.comm_size = t.comm_size;
      s.module = runtime().writer.module_of(t.caller);
      s.address = address;
      return i;
    }
  }
  return 0;
}

std::uint32_t microseconds(std::uint64_t ticks, double ns_per_tick) noexcept {
  const double us = static_cast<double>(ticks) * ns_per_tick * 1e-3;
  return us < 4294967295.0 ? static_cast<std::uint32_t>(us) : 4294967295u;
}

}  // namespace

void finish_event(Thread& t, bool blocks) noexcept {
  const double scale = runtime().ns_per_tick;
  trace::ThreadCounters& c = *t.counters;
  const std::uint64_t duration = t.exit - t.enter;
  const std::uint64_t gap = t.last_exit != 0 && t.enter > t.last_exit ? t.enter - t.last_exit : 0;
  std::uint64_t wait = 0, asleep = 0, delay = 0;
  std::uint32_t sleeps = 0;
  if (t.polled) [[unlikely]] {
    wait = duration > t.wait.busy ? duration - t.wait.busy : 0;
    asleep = t.wait.asleep < wait ? t.wait.asleep : wait;
    delay = t.wait.delay;
    sleeps = t.wait.sleeps;
    c.wait_asleep += asleep;
    c.wait_awake += wait - asleep;
    c.wake_delay += delay;
    c.sleeps += sleeps;
    t.polled = false;
    t.wait = WaitState{};
  }
  const std::uint32_t slot = site_slot(t);
  trace::SiteStats& s = t.sites[slot];
  trace::OpStats& op = t.ops[t.op];
  const OpKind kind = static_cast<OpKind>(runtime().writer.header().ops[t.op].kind);
  c.computing += gap;
  (kind == OpKind::io ? c.io : c.transfer) += duration - wait;
  add(c.gaps, gap, scale);
  if (blocks) add(c.waits, wait, scale);
  if (c.first_tick == 0) c.first_tick = t.enter;
  ++op.calls;
  op.ticks += duration;
  op.bytes += t.bytes;
  ++s.calls;
  s.ticks += duration;
  s.bytes += t.bytes;
  s.gap_ticks += gap;
  if (wait != 0) [[unlikely]] {
    op.wait_awake += wait - asleep;
    op.wait_asleep += asleep;
    op.wake_delay += delay;
    s.wait_awake += wait - asleep;
    s.wait_asleep += asleep;
    s.wake_delay += delay;
    s.sleeps += sleeps;
    if (wait > s.wait_max) s.wait_max = wait;
  }
  if (kind == OpKind::recv || kind == OpKind::send || kind == OpKind::start || kind == OpKind::collective) {
    (kind == OpKind::recv ? c.bytes_received : c.bytes_sent) += t.bytes;
  }
  trace::Event& e = t.ring[c.events & t.ring_mask];
  e = {t.enter, t.exit, t.bytes, t.peer, t.tag, t.op, t.comm_id, slot, microseconds(wait - asleep, scale), microseconds(asleep, scale)};
  t.last_exit = t.exit;
  c.last_exit_tick = t.exit;
  ++c.events;  // last: a reader of a killed program's file sees complete events only
}

StartScope::StartScope() noexcept : outermost_(fallow_tls.depth == 0) {
  if (!outermost_) return;
  fallow_tls.depth = 1;
  fallow_tls.frame = __builtin_frame_address(0);
  enter_ = runtime().clock.now();
}

StartScope::~StartScope() {
  if (outermost_) fallow_tls.depth = 0;
}

void StartScope::record(std::uint16_t op, const void* caller) noexcept {
  Thread* const thread = attach_thread();
  if (thread == nullptr) return;
  thread->caller = fallow_tls.caller != nullptr ? fallow_tls.caller : caller;
  fallow_tls.caller = nullptr;
  thread->op = op;
  thread->peer = thread->tag = -1;
  thread->bytes = 0;
  thread->comm_id = 0;
  thread->enter = enter_;
  thread->exit = runtime().clock.now();
  finish_event(*thread, false);
}

void StartScope::init(int result, std::uint16_t op, const void* caller) noexcept {
  if (outermost_ && result == MPI_SUCCESS && start_runtime()) record(op, caller);
}

void StartScope::session(int result, std::uint16_t op, const void* caller) noexcept { init(result, op, caller); }

}  // namespace fallow::pmpi
