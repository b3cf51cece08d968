// Synchronization of one-sided communication without a fence. A post tells each rank of its group; a start waits for the
// posts of its group; a complete waits until what the rank has put, got and accumulated is done, then tells each rank of
// the start's group; a wait waits for the completes of the post's group. Locks: an unlock or flush waits for the rank's
// own operations; nobody is kept out.
#include "sim/engine.hpp"

namespace fallow::sim {

using trace::CallEvent;
using trace::Op;

namespace {

constexpr std::uint32_t kEpochContext = 1u << 30;
constexpr std::int32_t kPostTag = 0, kCompleteTag = 1;

}  // namespace

bool Engine::epoch(std::uint32_t r, const CallEvent& call) {
  const auto members = [&] {
    std::vector<std::uint32_t> ranks;
    if ((call.flags & trace::kEventCountsLost) != 0) return ranks;
    for (const std::uint64_t member : call.counts) {
      if (member >= size_) refuse(r, "names world rank " + std::to_string(member) + ", which there is not");
      ranks.push_back(static_cast<std::uint32_t>(member));
    }
    return ranks;
  };
  const auto state = [&]() -> Epochs& { return side_.epochs[SideTables::key(r, call.comm)]; };
  Rank& rank = ranks_[r];
  switch (call.op) {
    case Op::win_post:
      for (const std::uint32_t origin : state().origins.emplace_back(members())) notify(r, call.comm, origin, kPostTag, rank.now);
      return true;
    case Op::win_start:
      return await(r, call.comm, state().targets.emplace_back(members()), kPostTag);
    case Op::win_test:
      if ((call.flags & trace::kEventComplete) == 0) return true;
      [[fallthrough]];
    case Op::win_wait: {
      if (state().origins.empty()) return true;
      const std::vector<std::uint32_t> origins = std::move(state().origins.front());
      state().origins.pop_front();
      return await(r, call.comm, origins, kCompleteTag);
    }
    case Op::win_complete:
      if (!flush(r)) return false;
      rank.now = flushed(r, call, rank.now);
      return true;
    default: return flush(r);
  }
}

/// What the rank waits for is done at its targets: after a complete they hear of it. Returns until when that takes.
Time Engine::flushed(std::uint32_t r, const CallEvent& call, Time at) {
  ranks_[r].flushing = false;
  acting_ = lag_of_rank(r);
  if (call.op != Op::win_complete) return at;
  const auto found = side_.epochs.find(SideTables::key(r, call.comm));
  if (found == side_.epochs.end() || found->second.targets.empty()) return at;
  for (const std::uint32_t target : found->second.targets.front()) notify(r, call.comm, target, kCompleteTag, at);
  found->second.targets.pop_front();
  return at;
}

/// A message of nothing.
void Engine::notify(std::uint32_t r, std::uint32_t comm, std::uint32_t to, std::int32_t tag, Time& now) {
  start_send(r, kNone, key_of(comm | kEpochContext, r), tag, to, 0, 0, now);
}

bool Engine::await(std::uint32_t r, std::uint32_t comm, const std::vector<std::uint32_t>& from, std::int32_t tag) {
  bool all = true;
  for (const std::uint32_t source : from) {
    const std::uint32_t request = take_request(r);
    Request& n = requests_[request];
    n.key = key_of(comm | kEpochContext, source);
    n.tag = tag;
    post(request, ranks_[r].now);
    all = block_on(r, request) && all;
  }
  return all;
}

}  // namespace fallow::sim
