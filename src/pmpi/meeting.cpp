#include "pmpi/meeting.hpp"

#include <algorithm>

#include "pmpi/scope.hpp"
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

}  // namespace

std::uint32_t meeting_of(const Thread& t) noexcept {
  Runtime& rt = runtime();
  const Venue venue{rt.oversubscribed, rt.started_here, rt.node.page().threads.load(std::memory_order_relaxed) != 0};
  if (!meets(t) || !tells_who_came(venue)) return 0;
  const CommInfo* const info = rt.comms.known(t.comm_handle);
  return info != nullptr && !info->inter ? info->members : 0;
}

bool all_have_come(const Thread& t) noexcept {
  return meeting_of(t) != 0 && !runtime().node.some_compute_since(runtime().comms.known(t.comm_handle)->world, t.enter);
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
