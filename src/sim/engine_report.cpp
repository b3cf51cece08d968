// What came of a run, and what to say when it cannot go on.
#include <algorithm>
#include <string>

#include "sim/engine.hpp"

namespace fallow::sim {

using trace::CallEvent;

Result Engine::result() const {
  Result result;
  result.policy = policy_.name;
  result.ranks = size_;
  result.nodes = nodes_in_use();
  result.switches = network_.topology().switches();
  each_share([&](const Engine& engine) {
    for (const Rank& rank : engine.ranks_) result.makespan = std::max(result.makespan, rank.now);
  });
  each_share([&](const Engine& engine) { engine.add_to(result); });
  const CoreTotals& c = result.cores;
  result.cores.in_calls = TimeSum{size_} * result.makespan - c.computing - c.waiting - c.resting - c.changing;
  result.core_policy = policy_.core;
  result.switch_parts = network_.switch_totals(result.nodes, result.makespan);
  result.card_parts = network_.card_totals(result.nodes, result.makespan);
  result.lanes_on = network_.lanes_on();
  result.energy = energy_of(result, machine_);
  return result;
}

/// Adds what this share came to; the makespan is known.
void Engine::add_to(Result& result) const {
  for (const Rank& rank : ranks_) {
    result.calls += rank.calls;
    result.cores.computing += rank.computing;
    result.cores.waiting += rank.waiting;
  }
  for (std::uint32_t r = ranks_.first(); r < ranks_.last(); ++r) {
    cores_.add_to(result.cores, r);
    cores_.add_end_to(result.cores, result.makespan - ranks_[r].now);
    if (ranks_[r].unexpected.count != 0) [[unlikely]] add_unreceived(result.unreceived, r);
  }
  result.messages += messages_;
  result.events += events_;
  result.unplaced += unplaced_;
  result.refused += refused_;
  result.let_go += let_go_;
  result.edge += network_.totals(LinkClass::edge, result.nodes, result.makespan);
  result.upper += network_.totals(LinkClass::upper, result.nodes, result.makespan);
  for (const auto& predictor : predictors_) result.mispredictions += predictor->state().mispredictions;
  result.memory_bytes += ranks_.memory_bytes() + entered_.memory_bytes() + memory_free_.memory_bytes() + pool_.memory_bytes() + requests_.memory_bytes() + rows_.capacity() * sizeof(rows_[0]) + queue_.memory_bytes() +
                         posted_.memory_bytes() + arrived_.memory_bytes() +
                         network_.memory_bytes() + tables_.memory_bytes() + collectives_.memory_bytes() + rest_.memory_bytes() + cores_.memory_bytes() +
                         (lags_ != nullptr ? lags_->memory_bytes() : 0);
}

void Engine::add_unreceived(Unreceived& left, std::uint32_t r) const {
  for (const std::uint32_t i : arrived_.in_order(ranks_[r].unexpected)) {
    const Node& m = pool_[i];
    if ((m.key & kCollectiveKey) != 0) continue;
    const auto comm = static_cast<std::uint32_t>(m.key >> 32);
    if (left.count == 0 || r < left.target) left = {left.count, static_cast<std::uint32_t>(m.key), r, comm, m.tag};
    ++left.count;
  }
}

Details Engine::details() const {
  Details d;
  Time end = 0;
  each_share([&](const Engine& engine) {
    for (const Rank& rank : engine.ranks_) end = std::max(end, rank.now);
  });
  each_share([&](const Engine& engine) { engine.add_to(d); });
  for (std::uint32_t l = 0; l < network_.topology().links(); ++l) {
    each_share([&](const Engine& engine) {
      if (engine.network_.own(l)) engine.add_link(d, l, end);
    });
  }
  return d;
}

void Engine::add_to(Details& d) const {
  d.too_short = too_short_;
  d.unlike_sizes = sizes_.found();
  for (std::uint32_t r = ranks_.first(); r < ranks_.last(); ++r) {
    const Rank& rank = ranks_[r];
    RankDetail& x = d.ranks.emplace_back();
    x.end = rank.now;
    x.computing = rank.computing;
    x.waiting = rank.waiting;
    CoreTotals core;
    cores_.add_to(core, static_cast<std::uint32_t>(r));
    x.waiting += static_cast<Time>(core.waiting + core.changing);
    x.resting = static_cast<Time>(core.resting);
    x.in_calls = x.end - x.computing - x.waiting - x.resting;
    x.calls = rank.calls;
    if (predictors_.empty()) continue;
    const predict::PredictorState state = predictors_[r]->state();
    x.mispredictions = state.mispredictions;
    x.searches = state.searches;
    x.predicted_delay = state.delay.value * kNs;
  }
}

void Engine::add_link(Details& d, std::uint32_t l, Time end) const {
  const std::uint32_t nodes = network_.nodes();
  if (l < 2 * nodes && (l < nodes ? l : l - nodes) >= nodes_in_use()) return;
  const LinkTotals t = network_.total(l, end);
  if (l >= 2 * nodes && t.busy == 0 && t.late == 0) return;
  d.links.push_back(t);
  d.numbers.push_back(l);
}

namespace {

/// What to say where a part of a trace was cut out, as `fallow trace cut` does.
const char* cut_away(const trace::TraceInfo& info) {
  const bool cut = std::any_of(info.ranks.begin(), info.ranks.end(), [](const trace::RankInfo& r) { return r.left_out != 0; });
  return cut ? "\nThe trace was cut out of a longer one: a replay needs the whole." : "";
}

std::string peer_text(std::int32_t peer) { return peer < 0 ? "any rank" : "rank " + std::to_string(peer); }
std::string tag_text(std::int32_t tag) { return tag < 0 ? "any tag" : "tag " + std::to_string(tag); }

/// Of a call that sends and receives, either of which may be with nobody.
std::string sides_text(const CallEvent& call) {
  if (call.recv_peer == trace::kNullPeer) return " to " + peer_text(call.peer) + ", " + tag_text(call.tag);
  if (call.peer == trace::kNullPeer) return " for a message from " + peer_text(call.recv_peer) + ", " + tag_text(call.recv_tag);
  return " to " + peer_text(call.peer) + " and from " + peer_text(call.recv_peer) + ", " + tag_text(call.recv_tag);
}

}  // namespace

/// Whose part in the collective call that the rank waits in, or for, is missing first; empty if it waits for none.
std::string Engine::collective_partner(std::uint32_t r) const {
  for (const std::uint32_t i : posted_.in_order(ranks_[r].posted)) {
    const Request& n = requests_[i];
    if ((n.flags & kOfCollective) == 0 || (n.key & kCollectiveKey) == 0) continue;  // the second: of MPI_Isendrecv
    const std::uint32_t request = collectives_[n.owner].request;
    const std::string partner = " for world rank " + std::to_string(static_cast<std::uint32_t>(n.key));
    if (request == kNone) return partner;
    if ((requests_[request].flags & kWaited) == 0) continue;
    return partner + " in a collective call on communicator " + std::to_string((n.key & ~kCollectiveKey) >> 32);
  }
  return {};
}

/// "rank 3 in MPI_Recv (call 17) for a message from rank 2, tag 5, communicator 1".
std::string Engine::describe(std::uint32_t r, const Engine& all) const {
  const Rank& rank = ranks_[r];
  CallEvent call;
  source_.again(r, call);
  std::string text = "rank " + std::to_string(r) + " in " + std::string(trace::op_name(call.op)) + " (call " + std::to_string(rank.calls) + ")";
  const bool receives = trace::has(call.op, trace::kOpReceives) || rank.state == State::probing;
  if (trace::has(call.op, trace::kOpCollective)) {
    text += " on communicator " + std::to_string(call.comm);
  } else if (trace::has(call.op, trace::kOpSends) && trace::has(call.op, trace::kOpReceives)) {
    text += sides_text(call) + ", communicator " + std::to_string(call.comm);
  } else if (call.op == trace::Op::win_start || call.op == trace::Op::win_wait || call.op == trace::Op::win_test) {
    text += call.op == trace::Op::win_start ? " for MPI_Win_post of" : " for MPI_Win_complete of";
    for (const std::uint32_t i : posted_.in_order(rank.posted)) {
      if ((requests_[i].flags & kWaited) != 0) text += " world rank " + std::to_string(static_cast<std::uint32_t>(requests_[i].key));
    }
    text += ", windows of communicator " + std::to_string(call.comm);
  } else if (receives) {
    text += " for a message from " + peer_text(call.peer) + ", " + tag_text(call.tag) + ", communicator " + std::to_string(call.comm);
  } else if (trace::has(call.op, trace::kOpSends)) {
    text += " to " + peer_text(call.peer) + ", " + tag_text(call.tag) + ", communicator " + std::to_string(call.comm);
  }
  const std::string call_text = text;
  for (const std::uint32_t i : posted_.in_order(rank.posted)) {
    const Request& n = requests_[i];
    const bool half = (n.flags & kOfCollective) != 0 && (n.key & kCollectiveKey) == 0;  // of MPI_Isendrecv
    const std::uint32_t waited = half ? collectives_[n.owner].request : i;
    if (waited == kNone || (requests_[waited].flags & kWaited) == 0 || !trace::has(call.op, trace::kOpCompletes)) continue;
    const auto source = static_cast<std::uint32_t>(n.key);
    text += " for a message from " + (source == kAnySource ? "any rank" : "world rank " + std::to_string(source)) + ", " + tag_text(n.tag) +
            ", communicator " + std::to_string(n.key >> 32);
    break;
  }
  const std::string sent = text == call_text && trace::has(call.op, trace::kOpCompletes) ? all.untaken(*this, r) : "";
  return text + sent + collective_partner(r) + " at " + std::to_string(nanoseconds(rank.now).value) + " ns";
}

/// Which of the rank's messages, of the requests of its share that it waits for, has come to where nobody receives it; empty if there is none.
std::string Engine::untaken(const Engine& share, std::uint32_t r) const {
  const auto waited = [&](std::uint32_t request) {
    const Request& n = share.requests_[request];
    const std::uint32_t whole = (n.flags & kOfCollective) != 0 ? share.collectives_[n.owner].request : request;  // of MPI_Isendrecv
    return whole != kNone && (share.requests_[whole].flags & kWaited) != 0;
  };
  std::string text;
  each_share([&](const Engine& engine) {
    for (std::uint32_t to = engine.ranks_.first(); to < engine.ranks_.last() && text.empty(); ++to) {
      for (const std::uint32_t i : engine.arrived_.in_order(engine.ranks_[to].unexpected)) {
        const Node& m = engine.pool_[i];
        const bool announced = (m.flags & (kRendezvous | kOneSided)) == kRendezvous && (m.key & kCollectiveKey) == 0;
        if (!announced || m.peer != r || !waited(m.owner)) continue;
        text = " for world rank " + std::to_string(to) + " to receive its message, " + tag_text(m.tag) + ", communicator " + std::to_string(m.key >> 32);
        break;
      }
    }
  });
  return text;
}

void Engine::refuse(std::uint32_t r, const std::string& what) const {
  const std::string where = "rank " + std::to_string(r) + ", call " + std::to_string(ranks_[r].calls) + ", " + std::string(trace::op_name(ranks_[r].op));
  throw SimError(where + ": " + what + cut_away(info_));
}

/// Whether the collective that message `m` is of may be under way on rank `r`, which has begun `made` of them: a later
/// step's message may come before those that the rank waits for.
bool Engine::may_take(std::uint32_t r, const Node& m, std::uint32_t made) const {
  const std::uint32_t count = CollectiveTag::count(static_cast<std::uint32_t>(m.tag));
  bool begun = false;
  for (const std::uint32_t i : posted_.in_order(ranks_[r].posted)) {
    const Request& n = requests_[i];
    if (n.key >> 32 != m.key >> 32 || CollectiveTag::count(static_cast<std::uint32_t>(n.tag)) != count) continue;
    if (n.tag == m.tag) return true;
    begun = true;
  }
  const bool blocked = ranks_[r].state == State::waiting && trace::has(ranks_[r].op, trace::kOpCollective);  // in a send, perhaps
  return !begun && blocked && !CollectiveTag::before(CollectiveTag::of(count + 1, 0), made);
}

/// How many collective calls the rank has begun on the communicator.
std::uint32_t Engine::collectives_of(std::uint32_t r, std::uint32_t comm) const {
  if (comm == trace::kCommWorld) return ranks_[r].collectives;
  const auto found = tags_.find(std::uint64_t{comm} << 32 | r);
  return found == tags_.end() ? 0 : found->second;
}

/// A message of a collective that its receiver has left behind, or never made: it made another one. Empty if there is none.
std::string Engine::differing() const {
  static constexpr const char* kNames[] = {"MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Gather", "MPI_Scatter",
                                           "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter", "MPI_Scan", "MPI_Exscan"};
  static_assert(std::size(kNames) == coll::kOperations);
  for (std::uint32_t r = ranks_.first(); r < ranks_.last(); ++r) {
    if (!info_.ranks[r].complete || info_.ranks[r].dropped != 0) continue;
    for (const std::uint32_t i : arrived_.in_order(ranks_[r].unexpected)) {
      const Node& m = pool_[i];
      if ((m.key & kCollectiveKey) == 0) continue;
      const auto tag = static_cast<std::uint32_t>(m.tag);
      const auto comm = static_cast<std::uint32_t>(m.key >> 32 & 0x7fffffffu);
      const std::uint32_t made = collectives_of(r, comm);
      const bool over = ranks_[r].state == State::ended, persistent = (tag & CollectiveTag::kPersistent) != 0;
      if (!over && (persistent || !CollectiveTag::before(tag, made) || may_take(r, m, made))) continue;
      const std::uint32_t operation = CollectiveTag::operation(tag);
      const char* const lacks = persistent                        ? " starts none, or not as often."
                                : CollectiveTag::before(tag, made) ? " makes another one, or with another root."
                                                                   : " makes none.";
      return "Ranks make different collective calls: world rank " + std::to_string(static_cast<std::uint32_t>(m.key)) + " its " +
             (persistent ? "persistent " : "") + (operation < std::size(kNames) ? kNames[operation] : "collective call") + " number " +
             std::to_string(CollectiveTag::count(tag) + 1) + " on communicator " + std::to_string(comm) + ", for which rank " + std::to_string(r) + lacks;
    }
  }
  return {};
}

void Engine::check_collectives() const {
  if (const std::string differ = differing(); !differ.empty()) throw SimError(differ + cut_away(info_));
}

std::string Engine::describe_stall() const {
  constexpr std::size_t kShown = 8;
  std::size_t stuck = 0, cut = 0, silent = 0;
  std::uint32_t threads = 1;
  std::string list, ended;
  each_share([&](const Engine& engine) {
    for (std::uint32_t r = engine.ranks_.first(); r < engine.ranks_.last(); ++r) {
      if (engine.ranks_[r].state != State::ended) {
        if (stuck++ < kShown) list += "\n  " + engine.describe(r, *this);
        threads = std::max(threads, info_.ranks[r].threads);
      } else if (!info_.ranks[r].complete && cut++ < kShown) {
        ended += "\n  rank " + std::to_string(r) + " after call " + std::to_string(engine.ranks_[r].calls);
      } else if (info_.ranks[r].complete && engine.ranks_[r].calls == 0) {
        ++silent;
      }
    }
  });
  std::string text = std::to_string(stuck) + " of " + std::to_string(size_) + " ranks wait for what never comes:" + list;
  if (stuck > kShown) text += "\n  and " + std::to_string(stuck - kShown) + " more";
  if (threads > 1) {
    text += "\nRanks called MPI from up to " + std::to_string(threads) +
            " threads. A replay makes a rank's calls one after another, in the recorded order.";
  }
  std::string differ;
  each_share([&](const Engine& engine) {
    if (differ.empty()) differ = engine.differing();
  });
  if (!differ.empty()) text += "\n" + differ;
  if (const UnlikeSizes& u = sizes_.found(); u.count != 0) {
    const auto side = [](const UnlikeSizes::Side& s) {
      return std::to_string(s.bytes) + " bytes on rank " + std::to_string(s.rank) + " (call " + std::to_string(s.call) + ")";
    };
    text += "\nRanks name different sizes for a collective call: " + std::string(trace::op_name(u.op)) + " on communicator " + std::to_string(u.comm) + " with " +
            side(u.before) + " and " + side(u.then) + ".";
  }
  bool any_source = false, cancelled = false;
  std::uint64_t refused = 0;
  each_share([&](const Engine& engine) {
    any_source = any_source || engine.any_source_;
    cancelled = cancelled || engine.cancelled_;
    refused += engine.refused_;
  });
  if (differ.empty() && any_source) {
    text += "\nNon-blocking receives from any source, of which the trace does not tell who sent, may have taken messages meant for others.";
  }
  if (differ.empty() && cancelled) {
    text += "\nThe trace does not tell which receives were cancelled in time: one may have taken a message here that it did not take there.";
  }
  if (differ.empty() && refused != 0) {
    text += "\n" + std::to_string(refused) + (refused == 1 ? " call that returned an error is" : " calls that returned an error are") +
            " left out here: one may have sent or taken a message all the same.";
  }
  if (silent != 0) {
    text += "\nOf " + std::to_string(silent) + (silent == 1 ? " rank" : " ranks") + " the trace has no calls, as if cut out: a replay needs those of all.";
  }
  if (cut != 0) text += "\nThe trace is not whole; it ends early for:" + ended;
  return text + cut_away(info_);
}

void Engine::deadlock() const {
  each_share([](const Engine& engine) {
    if (engine.queue_.empty()) return;
    throw SimError(
        "more than 26 days of simulated time, the most that a replay can hold, pass until messages come that ranks wait for; take smaller messages, or a "
        "faster network");
  });
  throw SimError(describe_stall());
}

}  // namespace fallow::sim
