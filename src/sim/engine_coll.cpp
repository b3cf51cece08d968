// Collectives, carried out message by message. Their messages match in a context of their own, by a tag that counts
// the rank's collectives on the communicator and says which it is, so that ranks which make different ones do not meet.
#include "sim/engine.hpp"

#include "coll/select.hpp"
#include "sim/synchronizing.hpp"
#include "sim/threads_in_turn.hpp"

namespace fallow::sim {

using coll::Operation;
using trace::CallEvent;
using trace::Op;

namespace {

constexpr std::uint32_t kCollectiveContext = 1u << 31;

/// What moves the data of `op`; false if nothing here does.
bool operation_of(Op op, Operation& operation) noexcept {
  switch (op) {
    case Op::barrier: operation = Operation::barrier; return true;
    case Op::bcast: operation = Operation::bcast; return true;
    case Op::reduce: operation = Operation::reduce; return true;
    case Op::allreduce: operation = Operation::allreduce; return true;
    case Op::gather:
    case Op::gatherv: operation = Operation::gather; return true;
    case Op::scatter:
    case Op::scatterv: operation = Operation::scatter; return true;
    case Op::allgather:
    case Op::allgatherv: operation = Operation::allgather; return true;
    case Op::alltoall:
    case Op::alltoallv:
    case Op::alltoallw: operation = Operation::alltoall; return true;
    case Op::reduce_scatter:
    case Op::reduce_scatter_block: operation = Operation::reduce_scatter; return true;
    case Op::scan: operation = Operation::scan; return true;
    case Op::exscan: operation = Operation::exscan; return true;
    default: return false;
  }
}

coll::Shape shape_of(coll::Library library, std::uint32_t rank, std::uint32_t size, std::uint32_t root, std::uint64_t bytes) noexcept {
  return {rank, size, root, bytes, coll::segment_of(library, bytes)};
}

/// Whether all ranks name one size for `op`: that of the vector, or of a block.
bool of_one_size(Op op) noexcept {
  return op != Op::barrier && op != Op::gatherv && op != Op::scatterv && op != Op::allgatherv && op != Op::alltoallv && op != Op::alltoallw;
}

bool by_counts(Op op) noexcept { return op == Op::alltoallv || op == Op::alltoallw || op == Op::scatterv; }

}  // namespace

bool Engine::collective(std::uint32_t r, const CallEvent& call) {
  const trace::OpTraits& traits = trace::traits(call.op);
  if (traits.kind == trace::OpKind::rma) return one_sided(r, call), true;
  const bool known = info_.comms.valid(call.comm), usable = known && !info_.comms[call.comm].is_inter();
  if (traits.kind == trace::OpKind::rma_sync) {
    if (call.op != Op::win_fence) return epoch(r, call);
    const bool flushed = flush(r);
    if (!known) [[unlikely]] ++left_out(call);
    return synchronize(r, call) && flushed;
  }
  if (traits.kind == trace::OpKind::io) return file(r, call);
  if (!known && call.comm != trace::kCommNone) refuse(r, "names communicator " + std::to_string(call.comm) + ", which there is not");
  Operation operation{};
  if (known && synchronizes(call.op)) {
    learn_neighbors(r, call);
    return synchronize(r, call);
  }
  const std::uint32_t index = usable && operation_of(traits.blocking, operation) ? prepare(r, operation, call) : planned(r, call);
  if (index == kNone) {
    const bool moves = traits.kind == trace::OpKind::collective || traits.kind == trace::OpKind::start;
    const bool untold = !known || trace::has(call.op, trace::kOpNeighbor);  // who takes part, or who are neighbors
    if (untold && moves && trace::has(call.op, trace::kOpCollective)) ++left_out(call);
    return pass(r, call), true;
  }
  const bool persistent = (traits.bits & trace::kOpPersistent) != 0;
  const bool counted = by_counts(traits.blocking) && !call.counts.empty() && collectives_[index].planned == 0 && !persistent;
  if ((traits.bits & trace::kOpCreates) != 0) {
    const std::uint32_t handle = take_request(r);
    Request& n = requests_[handle];
    n.owner = index;
    n.flags = persistent ? kPersistent | kTemplate : 0;
    Collective& c = collectives_[index];
    c.request = handle;
    keep(r, call, handle);
    if (persistent) return c.tag = next_tag(r, c.comm, c.tag | CollectiveTag::kPersistent), true;
    counted ? exchange_counts(index, call) : begin(r, index);
    return true;
  }
  if (counted) return exchange_counts(index, call);
  return begin(r, index);
}

/// A call whose data, if there is any, is not replayed: its request is complete as soon as somebody asks.
void Engine::pass(std::uint32_t r, const CallEvent& call) {
  if (trace::has(call.op, trace::kOpPersistent)) {
    CallEvent empty = call;
    empty.peer = trace::kNullPeer;
    make_persistent(r, empty, 0);
  } else if (trace::has(call.op, trace::kOpCreates)) {
    keep(r, call, kCompleted);
  }
}

/// The call waits for its communicator, or begins to. Where that is not known it waits for nobody.
bool Engine::synchronize(std::uint32_t r, const CallEvent& call) {
  const bool known = info_.comms.valid(call.comm), starts = (call.flags & kEventStarts) != 0;
  if (!known && starts) keep(r, call, kCompleted);
  if (!known) return true;
  CallEvent barrier;
  barrier.op = starts ? Op::ibarrier : Op::barrier;
  barrier.comm = call.comm;
  barrier.requests = call.requests;
  if (starts) return collective(r, barrier);
  return begin(r, info_.comms[call.comm].is_inter() ? planned(r, barrier) : prepare(r, Operation::barrier, barrier));
}

std::uint32_t Engine::next_tag(std::uint32_t r, std::uint32_t comm, std::uint32_t kind) {
  return CollectiveTag::of(comm == trace::kCommWorld ? ranks_[r].collectives++ : tags_[std::uint64_t{comm} << 32 | r]++, kind);
}

/// Shape and algorithm of this rank's part, not yet begun.
std::uint32_t Engine::prepare(std::uint32_t r, Operation operation, const CallEvent& call) {
  const std::uint32_t index = collectives_.take();
  Collective& c = collectives_[index];
  const auto caller = static_cast<std::int32_t>(r);
  const bool on_world = call.comm == trace::kCommWorld;
  c.rank = r;
  c.comm = call.comm;
  c.size = on_world ? size_ : info_.comms.size_of(call.comm, caller);
  const std::int32_t member = on_world ? caller : info_.comms.rank_in(call.comm, caller);
  if (member < 0) refuse(r, "is no member of communicator " + std::to_string(call.comm));
  c.member = static_cast<std::uint32_t>(member);
  const std::uint32_t root = call.root < 0 ? 0 : static_cast<std::uint32_t>(call.root);
  if (root >= c.size) refuse(r, "names root " + std::to_string(call.root) + " in a communicator of " + std::to_string(c.size));
  c.root_or_plan = root;
  c.tag = CollectiveTag::kind(static_cast<std::uint32_t>(operation), root);
  c.bytes = operation == Operation::barrier ? 0 : call.bytes;  // whatever another tool says
  if (operation == Operation::alltoall) c.bytes = call.bytes / c.size;
  if (operation == Operation::scatter) c.bytes = c.member == root ? call.bytes / c.size : call.recv_bytes;
  const Op base = trace::traits(call.op).blocking;
  if (base == Op::allgatherv && call.recv_bytes != 0) c.bytes = call.recv_bytes / c.size;
  coll::Algorithm algorithm = coll::choose(machine_.collectives, operation, c.size, c.bytes);
  if (base == Op::gatherv) algorithm = coll::Algorithm::gather_linear;
  if (base == Op::scatterv) algorithm = coll::Algorithm::scatter_linear;
  if (base == Op::alltoallv || base == Op::alltoallw) algorithm = coll::Algorithm::alltoall_linear;
  if (base == Op::allgatherv) algorithm = coll::Algorithm::allgather_ring;
  c.algorithm = static_cast<std::uint32_t>(algorithm) & 0x3f;
  c.steps = coll::step_count(algorithm, shape_of(machine_.collectives, c.member, c.size, root, c.bytes));
  if (nothing_for(c, call)) c.steps = 0;
  if (path_ != nullptr && of_one_size(base)) [[unlikely]] sizes_.see(call.op, c.comm, collectives_of(r, c.comm), c.size, {r, ranks_[r].calls, c.bytes});
  return index;
}

/// Whether this rank has no part in it: where nothing at all moves, from which both libraries return at once, and where its block is
/// empty, which the root does not send. Other tools' traces, which name no MPI library, may leave sizes out.
bool Engine::nothing_for(const Collective& c, const CallEvent& call) const noexcept {
  switch (trace::traits(call.op).blocking) {
    case Op::gatherv:  // its root may have something of others, and not know from whom
    case Op::alltoallv:
    case Op::alltoallw:  // the counts say it
    case Op::barrier: return false;
    case Op::scatterv:  // of a persistent one the counts are gone when it starts: there it sends all the same
      return !trace::has(call.op, trace::kOpPersistent) && (c.member == c.root_or_plan ? call.bytes : c.bytes) == 0;
    default: return call.bytes == 0 && call.recv_bytes == 0 && !info_.mpi_version.empty();
  }
}

/// Starts what prepare() made; false if the rank is blocked in it.
bool Engine::begin(std::uint32_t r, std::uint32_t index) {
  Collective& c = collectives_[index];
  c.tag = next_tag(r, c.comm, c.tag);
  return launch(r, index);
}

/// The same once it has its tag.
bool Engine::launch(std::uint32_t r, std::uint32_t index) {
  Collective& c = collectives_[index];
  c.now = ranks_[r].now;
  if (lags_ != nullptr) [[unlikely]] lags_->collective(index) = lags_->rank(r);
  const bool done = advance(index);
  return begun(r, index, done);
}

/// What follows once a collective's first messages are on their way.
bool Engine::begun(std::uint32_t r, std::uint32_t index, bool done) {
  Rank& rank = ranks_[r];
  Collective& c = collectives_[index];
  if (c.request != kNone) {
    if (done) finish(index);
    return true;
  }
  if (!done) {
    ++rank.pending;
    rank.state = State::waiting;
    return false;
  }
  if (lags_ != nullptr) [[unlikely]] delay(r, c.now, lags_->collective(index));
  rank.now = std::max(rank.now, c.now);
  drop_plan(c);
  collectives_.give(index);
  return rank.pending == 0;
}

coll::Step Engine::step_of(const Collective& c, std::uint32_t step) const noexcept {
  if (c.planned != 0) [[unlikely]] return side_.plan(c.root_or_plan)[step];
  return coll::step_at(static_cast<coll::Algorithm>(c.algorithm), shape_of(machine_.collectives, c.member, c.size, c.root_or_plan, c.bytes), step);
}

/// Goes through the steps until it has to wait; true when the last is done.
bool Engine::advance(std::uint32_t index) {
  Collective& c = collectives_[index];
  c.issuing = true;
  while (c.step < c.steps) {
    const coll::Step step = step_of(c, c.step);
    ++c.step;
    exchange(c, index, step);
    if (step.wait && c.pending != 0) {
      c.issuing = false;
      return false;
    }
    if (c.pending == 0) {
      c.now += c.reduce;
      c.reduce = 0;
    }
  }
  c.issuing = false;
  return c.pending == 0;
}

void Engine::exchange(Collective& c, std::uint32_t index, const coll::Step& step) {
  const std::uint32_t comm = c.comm | kCollectiveContext;
  if (lags_ != nullptr) [[unlikely]] acting_ = lags_->collective(index);
  const auto partner = [&](std::uint32_t rank) {  // plans name world ranks
    return c.planned == 0 ? world(c.rank, c.comm, static_cast<std::int32_t>(rank)) : rank;
  };
  if (step.from != coll::kNobody) {
    const std::uint32_t request = take_request(c.rank);
    Request& n = requests_[request];
    n.key = key_of(comm, partner(step.from));
    n.tag = static_cast<std::int32_t>(c.tag);
    n.owner = index;
    n.flags = kOfCollective;
    ++c.pending;
    c.reduce += duration_of(step.reduce_bytes, machine_.message.reduce_ps_per_kib);
    post(request, c.now);
  }
  if (step.to != coll::kNobody) {
    const std::uint32_t request = start_send(c.rank, kNone, key_of(comm, c.rank), static_cast<std::int32_t>(c.tag),
                                             partner(step.to), step.send_bytes, 0, c.now);
    if (request != kCompleted) {
      requests_[request].flags |= kOfCollective;
      requests_[request].owner = index;
      ++c.pending;
    }
  }
}

/// Exchanges whose blocks differ: everything at once, while the call's counts can be read. Blocks of 0 do not move.
bool Engine::exchange_counts(std::uint32_t index, const CallEvent& call) {
  Collective& c = collectives_[index];
  const std::uint32_t size = c.size;
  if (call.counts.size() < size || (!call.recv_counts.empty() && call.recv_counts.size() < size)) {
    refuse(c.rank, "has fewer counts than its communicator has ranks");
  }
  c.now = ranks_[c.rank].now;
  c.tag = next_tag(c.rank, c.comm, c.tag);
  if (lags_ != nullptr) [[unlikely]] lags_->collective(index) = lags_->rank(c.rank);
  c.step = c.steps;
  c.issuing = true;
  for (std::uint32_t k = 1; k < size; ++k) {
    coll::Step step;
    const std::uint32_t to = (c.member + k) % size;
    const std::uint32_t from = (c.member + size - k) % size;
    if (call.counts[to] != 0) step.to = to, step.send_bytes = call.counts[to];
    if (!call.recv_counts.empty() && call.recv_counts[from] != 0) step.from = from;
    exchange(c, index, step);
  }
  c.issuing = false;
  return begun(c.rank, index, c.pending == 0);
}

void Engine::collective_part_done(std::uint32_t index, Time at, Time lag) {
  Collective& c = collectives_[index];
  if (lags_ != nullptr) [[unlikely]] lags_->collective(index) = Lags::joined(c.now, lags_->collective(index), at, lag);
  if (c.request == kNone) adopt(c.rank, at, c.now);
  c.now = std::max(c.now, at);
  if (--c.pending != 0 || c.issuing) return;
  c.now += c.reduce;
  c.reduce = 0;
  if (advance(index)) finish(index);
}

/// The last step of a collective is done that its rank has left or is blocked in.
void Engine::finish(std::uint32_t index) {
  const Collective c = collectives_[index];
  const Time lag = lags_ != nullptr ? lags_->collective(index) : 0;
  collectives_.give(index);
  const bool once = c.request == kNone || (requests_[c.request].flags & kTemplate) == 0;
  if (once) drop_plan(c);
  if (c.request != kNone) {
    complete(c.request, c.now, lag);
  } else {
    if (lags_ != nullptr) [[unlikely]] delay(c.rank, c.now, lag);
    came(c.rank, c.now);
  }
}

}  // namespace fallow::sim
