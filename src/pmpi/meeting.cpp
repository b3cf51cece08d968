#include "pmpi/meeting.hpp"

#include <algorithm>

#include "pmpi/caches.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/sleep_plan.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

bool meets(const Thread& t) noexcept { return t.peer == kSeveralPeers && (runtime().op_traits[t.op] & kOpMeets) != 0; }

void wake_ranks(Thread& t, std::int32_t from, std::int32_t to) noexcept {
  const CommInfo& info = *runtime().comms.known(t.comm_handle);
  wake_by_halves(from, std::min(to, info.peers), [&](std::int32_t rank, std::int32_t end) {
    NodeSlot* const slot = runtime().node.slot_of(info.world[static_cast<std::size_t>(rank)]);
    if (slot == nullptr || slot->meeting.load(std::memory_order_relaxed) != info.members) return false;
    if (slot->sleep_word.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(SleepWord::asleep)) return false;
    slot->pass_on.store(range_of(rank + 1, end), std::memory_order_relaxed);
    return wake_slot(t, *slot);
  });
}

/// The communicator of the call under way, if that is a call of all its ranks and is told by what each rank does who has come to it; else null.
const CommInfo* told_group(const Thread& t) noexcept {
  Runtime& rt = runtime();
  const Venue venue{rt.oversubscribed, rt.started_here, rt.node.page().threads.load(std::memory_order_relaxed) != 0};
  if (t.peer != kSeveralPeers || !tells_who_came(venue)) return nullptr;
  const CommInfo* const info = rt.comms.known(t.comm_handle);
  return info != nullptr && !info->inter && info->members != 0 ? info : nullptr;
}

bool none_computes_since_before(const Thread& t, const CommInfo& group) noexcept {
  return !runtime().node.some_compute_since(group.world, t.enter);
}

/// Bytes of a rank's part in the collective call under way, where it can be told.
std::uint64_t part_of(const Thread& t) noexcept {
  const TypeSlot* const type = known_type(t, t.part_type);
  return type != nullptr ? t.part * type->size : 0;
}

}  // namespace

std::uint32_t meeting_of(const Thread& t) noexcept {
  const CommInfo* const group = meets(t) ? told_group(t) : nullptr;
  return group != nullptr ? group->members : 0;
}

bool all_have_come(const Thread& t) noexcept {
  const CommInfo* const group = meets(t) ? told_group(t) : nullptr;
  return group != nullptr && none_computes_since_before(t, *group);
}

double data_move_for_ns(const Thread& t) noexcept {
  if (t.part == 0) return 0;
  const CommInfo* const group = told_group(t);
  const double ns = group != nullptr ? moving_ns(part_of(t), group->peers) : 0;
  return ns > 0 && none_computes_since_before(t, *group) ? ns : 0;
}

bool spares_meetings(const Thread& t) noexcept {
  const bool collective = kind_of(t) == trace::OpKind::collective && t.peer == kSeveralPeers;
  const bool told = meeting_of(t) != 0;
  return leaves_meetings_asleep(collective, meets(t), told, told ? runtime().clock.to_ns(t.wait.busy) : 0.0);
}

void wake_meeting(Thread& t) noexcept {
  const CommInfo& info = *runtime().comms.known(t.comm_handle);
  runtime().node.page().arrivals.last_came(info.members, t.enter);
  wake_ranks(t, 0, info.peers);
}

std::uint64_t last_arrival(const Thread& t) noexcept {
  const std::uint32_t members = meeting_of(t);
  return members != 0 ? runtime().node.page().arrivals.latest(members) : 0;
}

void pass_wake_on(Thread& t) noexcept {
  const std::uint64_t range = runtime().node.own().pass_on.exchange(0, std::memory_order_relaxed);
  if (range == 0 || !somebody_sleeps() || meeting_of(t) == 0) return;
  wake_ranks(t, begin_of(range), end_of(range));
}

}  // namespace fallow::pmpi
