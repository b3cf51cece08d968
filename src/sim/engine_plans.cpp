// Collectives whose messages are planned step by step: along the neighbours of a topology, and between the two groups
// of an intercommunicator.
//
// Between two groups data goes by way of the leaders, rank 0 of each: gathered or combined in its own group, exchanged,
// spread in the other. All-to-all and the operations with blocks of different sizes go straight to the partner.
#include "sim/engine.hpp"

#include "coll/select.hpp"
#include "sim/synchronizing.hpp"

namespace fallow::sim {

using coll::Operation;
using coll::Step;
using trace::CallEvent;
using trace::Op;

namespace {

/// One rank's steps between two groups.
class Bridge {
 public:
  Bridge(const trace::Comm& comm, std::uint32_t r, coll::Library library, Plan& plan) : library_(library), plan_(plan) {
    const bool first = comm.group.member(static_cast<std::int32_t>(r)) >= 0;
    own_ = first ? &comm.group : &comm.remote;
    other_ = first ? &comm.remote : &comm.group;
    rank_ = own_->member(static_cast<std::int32_t>(r));
  }
  bool member() const noexcept { return rank_ >= 0; }
  std::uint32_t size() const noexcept { return own_->size(); }
  std::uint32_t others() const noexcept { return other_->size(); }
  std::uint32_t rank() const noexcept { return static_cast<std::uint32_t>(rank_); }
  bool leads() const noexcept { return rank_ == 0; }
  std::uint32_t other(std::uint32_t rank) const noexcept { return static_cast<std::uint32_t>(other_->world_rank(static_cast<std::int32_t>(rank))); }

  /// A collective of the own group with its leader as root.
  void within(Operation operation, std::uint64_t bytes) {
    coll::Shape shape{static_cast<std::uint32_t>(rank_), size(), 0, bytes, coll::segment_of(library_, bytes)};
    const coll::Algorithm algorithm = coll::choose(library_, operation, shape.size, bytes);
    const std::uint32_t steps = coll::step_count(algorithm, shape);
    for (std::uint32_t k = 0; k < steps; ++k) {
      Step step = coll::step_at(algorithm, shape, k);
      step.to = own(step.to);
      step.from = own(step.from);
      step.wait = step.wait || k + 1 == steps;
      plan_.push_back(step);
    }
  }
  void exchange(std::uint32_t to, std::uint64_t bytes, std::uint32_t from, bool wait = true) {
    Step step;
    step.to = to, step.from = from, step.send_bytes = bytes, step.wait = wait;
    plan_.push_back(step);
  }
  void leaders_exchange(std::uint64_t bytes) {
    if (leads()) exchange(other(0), bytes, other(0));
  }

 private:
  std::uint32_t own(std::uint32_t rank) const noexcept {
    return rank == coll::kNobody ? rank : static_cast<std::uint32_t>(own_->world_rank(static_cast<std::int32_t>(rank)));
  }
  const trace::Group *own_, *other_;
  std::int32_t rank_;
  coll::Library library_;
  Plan& plan_;
};

std::uint64_t block(std::span<const std::uint64_t> counts, std::uint64_t whole, std::size_t ranks, std::size_t i) {
  if (counts.size() == ranks) return counts[i];
  return ranks == 0 ? 0 : whole / ranks;
}

/// Those with a root. The root's own group, but for itself, has nothing to do.
void rooted(Bridge& b, const CallEvent& call, Op op) {
  const bool here = call.root == trace::kRootHere;
  if (!here && call.root < 0) return;
  const std::uint32_t root = here ? 0 : b.other(static_cast<std::uint32_t>(call.root));
  switch (op) {
    case Op::bcast:
      if (here) return b.exchange(b.other(0), call.bytes, coll::kNobody);
      if (b.leads()) b.exchange(coll::kNobody, 0, root);
      return b.within(Operation::bcast, call.bytes);
    case Op::reduce:
      if (here) return b.exchange(coll::kNobody, 0, b.other(0));
      b.within(Operation::reduce, call.bytes);
      if (b.leads()) b.exchange(root, call.bytes, coll::kNobody);
      return;
    case Op::gather:
      if (here) return b.exchange(coll::kNobody, 0, b.other(0));
      b.within(Operation::gather, call.bytes);
      if (b.leads()) b.exchange(root, call.bytes * b.size(), coll::kNobody);
      return;
    case Op::scatter:
      if (here) return b.exchange(b.other(0), call.bytes, coll::kNobody);
      if (b.leads()) b.exchange(coll::kNobody, 0, root);
      return b.within(Operation::scatter, call.recv_bytes);
    case Op::gatherv:
      if (!here && call.bytes != 0) return b.exchange(root, call.bytes, coll::kNobody);
      for (std::uint32_t k = 0; here && k < b.others(); ++k) {
        if (block(call.recv_counts, call.recv_bytes, b.others(), k) != 0) b.exchange(coll::kNobody, 0, b.other(k), false);
      }
      return;
    default:  // scatterv
      if (!here && call.recv_bytes != 0) return b.exchange(coll::kNobody, 0, root);
      for (std::uint32_t k = 0; here && k < b.others(); ++k) {
        const std::uint64_t bytes = block(call.counts, call.bytes, b.others(), k);
        if (bytes != 0) b.exchange(b.other(k), bytes, coll::kNobody, false);
      }
  }
}

/// Of any operation between two groups; false if there is no such.
bool between(Bridge& b, const CallEvent& call, Op op) {
  switch (op) {
    case Op::barrier:
      b.within(Operation::reduce, 0);
      b.leaders_exchange(0);
      b.within(Operation::bcast, 0);
      return true;
    case Op::allreduce:
      b.within(Operation::reduce, call.bytes);
      b.leaders_exchange(call.bytes);
      b.within(Operation::bcast, call.bytes);
      return true;
    case Op::reduce_scatter:
    case Op::reduce_scatter_block:
      b.within(Operation::reduce, call.bytes);
      b.leaders_exchange(call.bytes);
      b.within(Operation::scatter, call.recv_bytes);
      return true;
    case Op::allgather:
    case Op::allgatherv:
      b.within(Operation::gather, call.bytes);
      b.leaders_exchange(call.bytes * b.size());
      b.within(Operation::bcast, call.recv_bytes);
      return true;
    case Op::alltoall:
    case Op::alltoallv:
    case Op::alltoallw:
      for (std::uint32_t i = 0; i < b.others(); ++i) {
        const std::uint32_t k = (b.rank() + i) % b.others();  // not everybody to the same one at a time
        const std::uint64_t bytes = block(call.counts, call.bytes, b.others(), k);
        const bool comes = block(call.recv_counts, call.recv_bytes, b.others(), k) != 0;
        b.exchange(bytes != 0 ? b.other(k) : coll::kNobody, bytes, comes ? b.other(k) : coll::kNobody, false);
      }
      return true;
    case Op::bcast:
    case Op::reduce:
    case Op::gather:
    case Op::gatherv:
    case Op::scatter:
    case Op::scatterv: return rooted(b, call, op), true;
    default: return false;
  }
}

}  // namespace

/// A collective that is carried out by a plan; kNone if it is none, or nothing is known of where its data goes.
std::uint32_t Engine::planned(std::uint32_t r, const CallEvent& call) {
  if (!info_.comms.valid(call.comm)) return kNone;
  Plan plan;
  if (trace::has(call.op, trace::kOpNeighbor)) {
    if (!neighbor_steps(r, call, plan)) return kNone;
  } else {
    const trace::Comm& comm = info_.comms[call.comm];
    if (!comm.is_inter()) return kNone;
    Bridge bridge(comm, r, machine_.collectives, plan);
    if (!bridge.member()) refuse(r, "is no member of communicator " + std::to_string(call.comm));
    if (call.root >= 0 && static_cast<std::uint32_t>(call.root) >= bridge.others()) {
      refuse(r, "names root " + std::to_string(call.root) + " of a group of " + std::to_string(bridge.others()));
    }
    if (!between(bridge, call, trace::traits(call.op).blocking)) return kNone;
  }
  const std::uint32_t index = collectives_.take();
  Collective& c = collectives_[index];
  c.rank = r;
  c.comm = call.comm;
  c.steps = static_cast<std::uint32_t>(plan.size());
  c.planned = 1;
  c.tag = CollectiveTag::kPlanned;
  c.root_or_plan = side_.keep(std::move(plan));
  return index;
}

/// A communicator with a topology has been made: the call lists ranks in it, plus one; 0 stands for MPI_PROC_NULL.
void Engine::learn_neighbors(std::uint32_t r, const CallEvent& call) {
  if (!makes_topology(call.op) || (call.flags & trace::kEventCountsLost) != 0) return;
  Neighbors& n = side_.neighbors[SideTables::key(r, call.comm)];
  const auto take = [&](std::span<const std::uint64_t> listed, std::vector<std::uint32_t>& into) {
    into.clear();
    for (const std::uint64_t one : listed) into.push_back(one == 0 ? coll::kNobody : world(r, call.comm, static_cast<std::int32_t>(one - 1)));
  };
  take(call.counts, n.to);
  take(call.recv_counts, n.from);
}

/// Null if they are not known. A copy of the communicator with the topology has it too.
const Neighbors* Engine::neighbors_on(std::uint32_t r, std::uint32_t comm) const {
  const auto learned = [&](std::uint32_t of) {
    const auto found = side_.neighbors.find(SideTables::key(r, of));
    return found == side_.neighbors.end() ? nullptr : &found->second;
  };
  const Neighbors* found = learned(comm);
  const bool told = info_.comms[comm].parent != trace::kCommNone;
  for (std::uint32_t c = info_.comms[comm].parent; found == nullptr && c >= trace::kFirstComm; c = info_.comms[c].parent) found = learned(c);
  // Of what it was made is not said in traces of other tools and of earlier versions: there the members tell.
  for (std::uint32_t c = trace::kFirstComm; !told && found == nullptr && c < info_.comms.size(); ++c) {
    if (info_.comms[c].group == info_.comms[comm].group) found = learned(c);
  }
  return found;
}

bool Engine::neighbor_steps(std::uint32_t r, const CallEvent& call, Plan& plan) {
  const Neighbors* const known = neighbors_on(r, call.comm);
  if (known == nullptr) return false;
  const Neighbors& n = *known;
  const Op op = trace::traits(call.op).blocking;
  const bool gathers = op == Op::neighbor_allgather || op == Op::neighbor_allgatherv;
  for (std::size_t k = 0; k < std::max(n.to.size(), n.from.size()); ++k) {
    Step step;
    step.wait = false;
    if (k < n.to.size()) {
      step.send_bytes = gathers ? call.bytes : block(call.counts, call.bytes, n.to.size(), k);
      if (step.send_bytes != 0) step.to = n.to[k];
    }
    if (k < n.from.size() && block(call.recv_counts, call.recv_bytes, n.from.size(), k) != 0) step.from = n.from[k];
    plan.push_back(step);
  }
  return true;
}

}  // namespace fallow::sim
