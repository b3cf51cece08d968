// What goes on when all ranks wait. A replay makes the calls of a rank's threads one after another, in the order in which they were made. If
// one of them waits for more here than it did where it was recorded, what it waits for may stand behind a call of another thread
// of its own rank; then it is left as if it had ended, as it did.
#include "sim/engine.hpp"

#include <algorithm>

#include "sim/synchronizing.hpp"
#include "sim/threads_in_turn.hpp"

namespace fallow::sim {

using trace::Op;

/// The rank's requests that are in use.
std::vector<std::uint32_t> Engine::requests_of(std::uint32_t r) const {
  std::vector<bool> spare(rows_.size() * kTogether);
  for (std::uint32_t i = ranks_[r].spare; i != kNone; i = requests_[i].next) spare[i] = true;
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < spare.size(); ++i) {
    if (rank_of(i) == r && !spare[i]) found.push_back(i);
  }
  return found;
}

/// Does the rank have only sends of this MPI_Isendrecv under way?
bool Engine::only_sends(std::uint32_t r, std::uint32_t request) const {
  for (const std::uint32_t i : requests_of(r)) {
    const Request& n = requests_[i];
    if ((n.flags & kOfCollective) != 0 && (n.flags & kSends) == 0 && collectives_[n.owner].request == request) return false;
  }
  return true;
}

/// `receives`: also where it waits for a message, and not only for its own to be taken.
bool Engine::may_go_on(std::uint32_t r, bool receives) const {
  const Rank& rank = ranks_[r];
  if (rank.state != State::waiting || rank.flushing || info_.ranks[r].threads < 2) return false;
  if (may_end_early(rank.op)) return true;
  const bool waits = trace::traits(rank.op).kind == trace::OpKind::wait;
  const bool takes = trace::has(rank.op, trace::kOpReceives) && !trace::has(rank.op, trace::kOpCollective);
  if (!waits && !(takes && (receives || trace::has(rank.op, trace::kOpSends)))) return false;
  trace::CallEvent call;
  source_.again(r, call);
  if ((call.flags & kEventEndsEarly) != 0) return true;
  for (const std::uint32_t i : requests_of(r)) {
    const std::uint16_t flags = requests_[i].flags;
    if ((flags & kWaited) == 0) continue;
    if ((flags & kPersistent) != 0) return false;
    const bool sends = (flags & kSends) != 0 || ((call.flags & kEventExchanged) != 0 && only_sends(r, i));
    if (!receives && !sends) return false;
  }
  return true;
}

/// Of the ranks that wait in calls that had ended by themselves, the one that has waited longest goes on. If there is none, but whole traces, one
/// that receives may: two threads' receives of one kind may have been posted in another order than they began in, and each has the
/// other's message. False if there is none of these.
bool Engine::let_go() {
  const auto longest = [&](bool receives) {
    std::uint32_t chosen = kNone;
    for (std::uint32_t r = ranks_.first(); r < ranks_.last(); ++r) {
      if ((chosen == kNone || ranks_[r].blocked < ranks_[chosen].blocked) && may_go_on(r, receives)) chosen = r;
    }
    return chosen;
  };
  std::uint32_t chosen = longest(false);
  if (chosen == kNone) {
    const bool whole = std::all_of(info_.ranks.begin(), info_.ranks.end(), [](const trace::RankInfo& r) { return r.complete && r.dropped == 0; });
    chosen = whole ? longest(true) : kNone;
    if (chosen == kNone) return check_let_go(), false;
    if (stall_.empty()) stall_ = describe_stall();
  }
  for (const std::uint32_t i : requests_of(chosen)) {
    Request& n = requests_[i];
    if ((n.flags & kWaited) != 0) n.flags = static_cast<std::uint16_t>((n.flags & ~kWaited) | kFreed);
    if ((n.flags & kOfCollective) == 0 || collectives_[n.owner].request != kNone) continue;
    const std::uint32_t collective = n.owner, request = take_request(chosen);  // it goes on as one that nobody waits for
    requests_[request].flags = kFreed;
    collectives_[collective].request = request;
  }
  ++let_go_;
  ranks_[chosen].pending = 0;
  unblock(chosen, std::max(clock_, ranks_[chosen].now));
  return true;
}

/// What a rank was let go without has to come in the end.
void Engine::check_let_go() const {
  if (stall_.empty()) return;
  for (std::uint32_t r = ranks_.first(); r < ranks_.last(); ++r) {
    bool missing = ranks_[r].state != State::ended;
    for (const std::uint32_t i : posted_.in_order(ranks_[r].posted)) missing = missing || (requests_[i].flags & kFreed) != 0;
    if (missing) throw SimError(stall_);
  }
}

}  // namespace fallow::sim
