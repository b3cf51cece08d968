// Waking ranks of this node that sleep for what this rank sends. A rank that is not woken wakes by its timer, so
// these choices bear on delay, never on correctness.

#include <algorithm>

#include "base/errno_guard.hpp"
#include "base/float_guard.hpp"
#include "pmpi/partners.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

/// Up to this many ranks on the node, every sleeper that may wait for us is woken without a closer look.
constexpr std::uint32_t kFewRanks = 4;

}  // namespace

bool wake_slot(Thread& thread, NodeSlot& slot) noexcept {
  Runtime& rt = runtime();
  const FloatGuard guard;
  const std::uint64_t before = rt.clock.now();
  const trace::OpKind kind = kind_of(thread);
  if (kind == trace::OpKind::rma || kind == trace::OpKind::rma_sync) slot.to_serve.store(1, std::memory_order_relaxed);
  // In our own slot another thread of this process may sleep, and wait for what this one sends.
  if (rt.sleeper.load(std::memory_order_relaxed) == &thread && &slot == &rt.node.own()) return false;
  if (slot.sleep_word.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(SleepWord::asleep)) return false;
  if (thread.spares_meetings && slot.meeting.load(std::memory_order_relaxed) != 0) return false;
  if (thread.tests_in_vain && before < (thread.tests_softly ? slot.tests_from : slot.long_tests_from).load(std::memory_order_relaxed)) {
    thread.owes_wake = thread.owes_wake || !thread.tests_softly;
    return false;
  }
  slot.by_test.store(thread.tests_in_vain ? 1 : 0, std::memory_order_relaxed);
  if (!rt.node.wake(slot, before)) return false;
  const std::uint64_t spent = rt.clock.now() - before;
  thread.woke_at = before;
  ++thread.counters->wakes_sent;
  thread.counters->wake_send_ticks += spent;
  slot.wake_spent.fetch_add(spent, std::memory_order_relaxed);  // it chose to sleep, so it pays
  return true;
}

namespace {

/// Wakes the rank that a call is addressed to, whatever it waits for: it may have to answer this call on the way.
void wake_addressee(Thread& thread, std::int32_t world_rank) noexcept {
  if (NodeSlot* const slot = runtime().node.slot_of(world_rank); slot != nullptr) wake_slot(thread, *slot);
}

/// Wakes a rank only if it may be waiting for us.
void wake_world_rank(Thread& thread, std::int32_t world_rank) noexcept {
  NodeSlot* const slot = runtime().node.slot_of(world_rank);
  if (slot == nullptr) return;
  const std::int32_t wanted = slot->wanted.load(std::memory_order_relaxed);
  if (wanted == -1 || wanted == runtime().world_rank) wake_slot(thread, *slot);
}

/// -1: not known.
std::int32_t world_rank_of(const RecentPeer& peer) noexcept {
  const Runtime& rt = runtime();
  const CommInfo* const info = rt.comms.known(peer.where);
  if (info == nullptr) return rt.window_ranks.world_rank(peer.where, peer.rank);
  const auto rank = static_cast<std::size_t>(peer.rank);
  return rank < info->world.size() ? info->world[rank] : -1;
}

void wake_everybody(Thread& thread) noexcept {
  Runtime& rt = runtime();
  const std::uint32_t n = rt.node.attached();
  for (std::uint32_t i = 0; i < n; ++i) {
    NodeSlot& slot = rt.node.page().slots[i];
    const std::int32_t wanted = slot.wanted.load(std::memory_order_relaxed);
    if (wanted == -1 || wanted == rt.world_rank) wake_slot(thread, slot);
  }
}

void wake_rank_of(Thread& thread, std::uint64_t comm, int peer) noexcept {
  if (!runtime().options.wake || peer == MPI_PROC_NULL) return;
  if (peer < 0) return wake_recent_slow(thread);  // any source: whoever we talk to
  const CommInfo* const info = runtime().comms.known(comm);
  if (info == nullptr || info->world.empty()) return wake_everybody(thread);
  if (peer < info->peers) wake_addressee(thread, info->world[static_cast<std::size_t>(peer)]);
}

}  // namespace

void wake_peer_slow(Thread& thread, MPI_Comm comm, int peer) noexcept { wake_rank_of(thread, handle_key(comm), peer); }

void wake_target_slow(Thread& thread, MPI_Win win, int peer) noexcept {
  Runtime& rt = runtime();
  if (!rt.options.wake || peer < 0) return;
  const std::int32_t world = rt.window_ranks.world_rank(handle_key(win), peer);
  if (world < 0) return wake_everybody(thread);
  wake_addressee(thread, world);
}

void wake_polled_for(Thread& thread) noexcept {
  if (!runtime().options.wake || kind_of(thread) != trace::OpKind::rma) return;
  const ErrnoGuard kept;
  const RecentPeer& target = thread.recent[(thread.recent_next - 1) % kRecentPeers];
  const std::int32_t world = target.rank >= 0 ? world_rank_of(target) : -1;
  if (world < 0) return wake_everybody(thread);
  wake_addressee(thread, world);
}

namespace {

void wake_partners_of(Thread& thread, const CommInfo* info) noexcept {
  Runtime& rt = runtime();
  if (info == nullptr || info->world.empty() || rt.node.attached() <= kFewRanks) return wake_everybody(thread);
  for (const std::int32_t partner : info->partners) wake_world_rank(thread, partner);
  if ((rt.op_traits[thread.op] & kOpNeighbors) != 0 && !info->partners.empty()) return;
  each_partner(info->rank, info->peers, [&](std::int32_t rank) { wake_world_rank(thread, info->world[static_cast<std::size_t>(rank)]); });
}

}  // namespace

void wake_partners_slow(Thread& thread, const CommInfo* info) noexcept {
  if (!runtime().options.wake) return;
  if (thread.look == Look::none && all_have_come(thread)) wake_meeting(thread);
  thread.spares_meetings = spares_meetings(thread);
  wake_partners_of(thread, info);
  thread.spares_meetings = false;
}

void wake_after_collective(Thread& thread) noexcept {
  thread.enter = runtime().clock.now();
  const CommInfo* const info = runtime().comms.known(thread.comm_handle);
  if (!runtime().options.wake) return;
  if (meeting_of(thread) != 0) return wake_meeting(thread);  // nobody leaves before all have come
  wake_partners_of(thread, info);
}

void wake_recent_slow(Thread& thread) noexcept {
  Runtime& rt = runtime();
  if (!rt.options.wake) return;
  if (rt.node.attached() <= kFewRanks) return wake_everybody(thread);
  if (thread.has_started_collective()) {
    const CommInfo* const info = rt.comms.known(thread.collective_on);
    if (info != nullptr) wake_partners_slow(thread, info);
  }
  for (const RecentPeer& recent : thread.recent) {
    if (recent.rank >= 0) wake_world_rank(thread, world_rank_of(recent));
  }
}

namespace {

void keep_starting(Thread& thread, std::int64_t count, const MPI_Request* requests) noexcept {
  if (requests == nullptr || count <= 0) return;
  const auto n = static_cast<std::size_t>(count);
  if (n > thread.starting.size()) {
    try {
      thread.starting.resize(n);
    } catch (...) {
      return;  // what changes its handle is not known any more
    }
  }
  for (std::size_t i = 0; i < n; ++i) thread.starting[i] = handle_key(requests[i]);
  thread.starting_count = n;
}

}  // namespace

/// Open MPI gives a buffered send another request where the last one's data are still on their way.
void note_started(Thread& thread, const MPI_Request* requests) noexcept {
  Runtime& rt = runtime();
  for (std::size_t i = 0; i < thread.starting_count; ++i) {
    const std::uint64_t before = thread.starting[i], now = handle_key(requests[i]);
    if (before == now || before == 0) [[likely]] continue;
    rt.prepared.moved(before, now);
    if (!rt.tracer.active()) continue;
    TraceShared& s = rt.tracer.shared();
    s.lock.lock();
    s.requests.moved(before, now);
    s.lock.unlock();
  }
}

Prepared note_starting(Thread& thread, std::int64_t count, const MPI_Request* requests) noexcept {
  Runtime& rt = runtime();
  keep_starting(thread, count, requests);
  const bool somebody_sleeps = rt.node.page().sleepers.load(std::memory_order_relaxed) != 0;
  Prepared all;
  for (std::int64_t i = 0; requests != nullptr && i < count; ++i) {
    const Prepared* const one = rt.prepared.find(handle_key(requests[i]));
    if (one == nullptr) continue;
    all.sent += one->sent;
    all.received += one->received;
    if (one->peer == kSeveralPeers) {
      thread.collective_on = one->comm;
      thread.collective_at = thread.recorded;
    } else if (somebody_sleeps) {
      wake_rank_of(thread, one->comm, one->peer);
    }
  }
  return all;
}

void wake_for_slow(Thread& thread, MPI_Request request) noexcept {
  const Prepared* const one = runtime().prepared.find(handle_key(request));
  if (one != nullptr && one->peer != kSeveralPeers) wake_rank_of(thread, one->comm, one->peer);
}

void wake_for_progress(Thread& t) noexcept {
  if (t.peer == kSeveralPeers) {
    wake_partners_slow(t, runtime().comms.known(t.comm_handle));
  } else {
    wake_recent_slow(t);
  }
}

}  // namespace fallow::pmpi
