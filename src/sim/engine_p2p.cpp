// Messages between two ranks: eager ones go at once, longer ones are announced, cleared by the receiver once it has
// matched them, and then sent. A sender's long request is done when the data has come.
#include "sim/engine.hpp"

namespace fallow::sim {

using trace::CallEvent;

std::uint32_t Engine::world_of(std::uint32_t r, std::uint32_t comm, std::int32_t peer) const {
  const std::int32_t rank = info_.comms.valid(comm) ? info_.comms.world_rank(comm, static_cast<std::int32_t>(r), peer) : -1;
  if (rank < 0 || static_cast<std::uint32_t>(rank) >= size_) {
    refuse(r, "names rank " + std::to_string(peer) + " of communicator " + std::to_string(comm) + ", which there is not");
  }
  return static_cast<std::uint32_t>(rank);
}

bool Engine::block_on(std::uint32_t r, std::uint32_t node) {
  if (node == kCompleted) return true;
  Rank& rank = ranks_[r];
  Request& n = requests_[node];
  if ((n.flags & kDone) != 0) {
    catch_up(r, n.time, lag_of_request(node));
    give_request(node);
    return true;
  }
  n.flags |= kWaited;
  ++rank.pending;
  rank.state = State::waiting;
  return false;
}

bool Engine::send(std::uint32_t r, const CallEvent& call, std::uint16_t flags) {
  const bool blocks = trace::has(call.op, trace::kOpBlocks);
  Rank& rank = ranks_[r];
  std::uint32_t request = kCompleted;
  if (call.peer == trace::kNoPeer) [[unlikely]] ++left_out(call);
  if (call.peer >= 0) {
    const std::uint32_t comm = context(call);
    request = start_send(r, kNone, key_of(comm, r), tag_of(call.tag), world(r, comm, call.peer), call.bytes, flags, rank.now);
  }
  if (blocks) return block_on(r, request);
  keep(r, call, request);
  return true;
}

bool Engine::receive(std::uint32_t r, const CallEvent& call) {
  const bool blocks = trace::has(call.op, trace::kOpBlocks);
  std::uint32_t request = kCompleted;
  if (call.peer == trace::kNoPeer) [[unlikely]] ++left_out(call);
  if (call.peer >= 0 || call.peer == trace::kAnyPeer) {
    if (call.peer == trace::kAnyPeer) [[unlikely]] any_source_ = true;
    const std::uint32_t comm = context(call);
    request = take_request(r);
    Request& n = requests_[request];
    n.key = key_of(comm, source_of(r, comm, call.peer));
    n.tag = tag_of(call.tag);
    const bool told = call.peer >= 0 && call.tag >= 0 && call.bytes != 0 && call.bytes < kNone;
    n.owner = told ? static_cast<std::uint32_t>(call.bytes) : kNone;
    post(request, ranks_[r].now);
  }
  if (blocks) return block_on(r, request);
  keep(r, call, request);
  return true;
}

bool Engine::send_receive(std::uint32_t r, const CallEvent& call) {
  if (!trace::has(call.op, trace::kOpBlocks)) return start_send_receive(r, call), true;
  CallEvent half = call;
  half.op = trace::Op::recv;
  half.peer = call.recv_peer;
  half.tag = call.recv_tag;
  half.bytes = call.recv_bytes;
  if (call.peer == trace::kNoPeer && call.recv_peer == trace::kNoPeer) [[unlikely]] --left_out(call);  // it is one call
  const bool received = receive(r, half);
  half.op = trace::Op::send;
  half.peer = call.peer;
  half.tag = call.tag;
  half.bytes = call.bytes;
  const bool sent = send(r, half, 0);
  return received && sent;
}

/// Its request is complete when both messages are: they are the parts of a collective of no further steps.
void Engine::start_send_receive(std::uint32_t r, const CallEvent& call) {
  if (call.peer == trace::kNoPeer || call.recv_peer == trace::kNoPeer) [[unlikely]] ++left_out(call);
  Rank& rank = ranks_[r];
  const std::uint32_t comm = context(call), index = collectives_.take();
  Collective& c = collectives_[index];
  c.rank = r;
  c.now = rank.now;
  c.issuing = true;
  c.request = take_request(r);
  keep(r, call, c.request);
  if (lags_ != nullptr) [[unlikely]] lags_->collective(index) = acting_;
  const auto part = [&](std::uint32_t request, std::uint16_t flags) -> Request& {
    Request& n = requests_[request];
    n.owner = index;
    n.flags = static_cast<std::uint16_t>(flags | kOfCollective);
    ++c.pending;
    return n;
  };
  if (call.recv_peer >= 0 || call.recv_peer == trace::kAnyPeer) {
    if (call.recv_peer == trace::kAnyPeer) [[unlikely]] any_source_ = true;
    const std::uint32_t in = take_request(r);
    Request& n = part(in, 0);
    n.key = key_of(comm, source_of(r, comm, call.recv_peer));
    n.tag = tag_of(call.recv_tag);
    post(in, rank.now);
  }
  if (call.peer >= 0) {
    const std::uint32_t out = start_send(r, kNone, key_of(comm, r), tag_of(call.tag), world(r, comm, call.peer), call.bytes, 0, rank.now);
    if (out != kCompleted) part(out, kSends);
  }
  c.issuing = false;
  c.now = std::max(c.now, rank.now);
  if (c.pending == 0) finish(index);
}

bool Engine::probe(std::uint32_t r, const CallEvent& call) {
  if (call.peer == trace::kNullPeer || call.peer == trace::kNoPeer) return true;
  Rank& rank = ranks_[r];
  const std::uint32_t comm = context(call);
  const std::uint32_t found = arrived_.find_message(rank.unexpected, key_of(comm, source_of(r, comm, call.peer)), tag_of(call.tag));
  if (found != kNone) {
    catch_up(r, pool_[found].time, lag_of_message(found));
    return true;
  }
  ++rank.pending;
  rank.state = State::probing;
  return false;
}

/// Sends to world rank `to`. `request` is a persistent request or kNone. Returns what stands for the send: kCompleted
/// if it is complete already.
std::uint32_t Engine::start_send(std::uint32_t r, std::uint32_t request, std::uint64_t key, std::int32_t tag, std::uint32_t to,
                                 std::uint64_t bytes, std::uint16_t flags, Time& now) {
  check_length(r, bytes);
  now += machine_.message.overhead;
  const bool eager = bytes <= machine_.message.eager_limit && (flags & kSynchronous) == 0;
  if (eager && network_.sends_plain() && Envelope::fits(key, tag) && !same_node(r, to)) [[likely]] {
    ++messages_;
    network_.send_plain(tie_of(to, r, ++ranks_[r].messages), Envelope::pack(key, tag), bytes, now, clock_);
    if (request != kNone) complete(request, now, acting_);
    return kCompleted;
  }
  const std::uint32_t message = pool_.take();
  Node& m = pool_[message];
  m.key = key;
  m.tag = tag;
  m.rank = to;
  m.peer = r;
  m.bytes = bytes;
  if (path_ != nullptr) [[unlikely]] path_->sent(message, r, now, ranks_[r].now);
  if (lags_ != nullptr) [[unlikely]] lags_->message(message) = acting_;
  if (eager) {
    transmit(message, now);
    if (request != kNone) complete(request, now, acting_);
    return kCompleted;
  }
  m.flags = kRendezvous;
  const bool buffered = (flags & kBuffered) != 0;
  if (buffered && request != kNone) complete(request, now, acting_);  // a persistent one: what goes on has one of its own
  if (buffered || request == kNone) {
    request = take_request(r);
    requests_[request].flags = buffered ? kSends | kFreed : kSends;
  }
  m.owner = request;
  transmit(message, now);
  return buffered ? kCompleted : request;
}

void Engine::check_length(std::uint32_t r, std::uint64_t bytes) const {
  if (bytes > longest_message_) [[unlikely]] refuse(r, "a message of " + std::to_string(bytes) + " bytes takes longer than can be simulated");
}

/// When the rank looks for what has come before it asked: the clock has to be there, to tell that from what comes later.
/// 0 where the call asks for no message.
Time Engine::looks_for_messages(std::uint32_t r, const CallEvent& call) const noexcept {
  const Time begun = ranks_[r].now + machine_.message.call_overhead + policy_.cost.call;
  if (call.op == trace::Op::start || call.op == trace::Op::startall) return begun;  // which may send at once, too
  const trace::OpKind kind = trace::traits(call.op).kind;
  const bool asks = trace::has(call.op, trace::kOpReceives) && trace::has(call.op, trace::kOpStarts) &&
                    (kind == trace::OpKind::recv || kind == trace::OpKind::start);
  return asks ? begun + machine_.message.receive_overhead : 0;
}

/// Posts a receive whose key and tag are set, from `now` on; true if a message was there.
bool Engine::post(std::uint32_t request, Time& now) {
  Request& n = requests_[request];
  Rank& rank = ranks_[rank_of(request)];
  now += machine_.message.receive_overhead;
  n.time = now;
  if (lags_ != nullptr) [[unlikely]] lags_->request(request) = acting_;
  if (rank.unexpected.count != 0) {
    const std::uint32_t message = arrived_.take_message(rank.unexpected, n.key, n.tag);
    if (message != kNone) {
      if (pool_[message].time <= now) n.time = now += machine_.message.unexpected;
      match(request, message, std::max(now, pool_[message].time));
      return true;
    }
  }
  n.flags |= kQueued;
  posted_.append(rank.posted, request);
  return false;
}

void Engine::arrive(const Event& event) {
  const std::uint32_t message = event.index;
  Node& m = pool_[message];
  if ((m.flags & (kClear | kData | kOneSided)) == 0) [[likely]] {
    Rank& rank = ranks_[m.rank];
    const std::uint32_t receive = posted_.take_receive(rank.posted, m.key, m.tag);
    m.time = event.time;
    if (receive != kNone) came_before(requests_[receive], event.time);
    if (receive != kNone) return match(receive, message, std::max(event.time, requests_[receive].time));
    return unexpected(message, event.time);
  }
  if ((m.flags & kOneSided) != 0) return one_sided_arrived(message, event.time);
  if ((m.flags & kClear) != 0) {  // back at the sender: the data goes
    std::swap(m.rank, m.peer);
    m.flags = kData;
    m.bytes = (std::uint64_t{m.order} << 32) | static_cast<std::uint32_t>(m.tag);
    return transmit(message, event.time);
  }
  const std::uint32_t receive = m.other;
  const Told told(*this, message);
  pool_.give(message);
  complete(receive, event.time, lag_of_message(message));  // its sender hears of it by an event of its own
}

/// A message that is no record arrives. It becomes one if it has to wait.
void Engine::deliver(const Event& event) {
  const std::uint32_t r = target_of(event.tie), source = origin_of(event.tie);
  const std::uint64_t key = Envelope::key(event.index, source);
  const std::int32_t tag = Envelope::tag(event.index);
  const std::uint32_t receive = posted_.take_receive(ranks_[r].posted, key, tag);
  if (receive != kNone) [[likely]] {
    Request& n = requests_[receive];
    n.flags = static_cast<std::uint16_t>(n.flags & ~kQueued);
    came_before(n, event.time);
    return complete(receive, std::max(event.time, n.time) + machine_.message.match, 0);
  }
  const std::uint32_t message = pool_.take();
  Node& m = pool_[message];
  m.key = key;
  m.tag = tag;
  m.rank = r;
  m.peer = source;
  unexpected(message, event.time);
}

/// Nobody has asked for the message yet, unless by a probe.
void Engine::unexpected(std::uint32_t message, Time at) {
  Node& m = pool_[message];
  Rank& rank = ranks_[m.rank];
  m.time = at;
  arrived_.append(rank.unexpected, message);
  if (rank.state != State::probing) return;
  CallEvent call;
  source_.again(m.rank, call);
  const std::uint32_t comm = context(call);
  const std::uint64_t key = key_of(comm, source_of(m.rank, comm, call.peer));
  if (arrived_.find_message(rank.unexpected, key, tag_of(call.tag)) == kNone) return;
  if (path_ != nullptr) [[unlikely]] path_->probed(message, m.rank, at, rank.now);
  if (lags_ != nullptr) [[unlikely]] delay(m.rank, at, lags_->message(message));
  came(m.rank, at);
}

/// The data of a request is at its receiver.
void Engine::sent(const Event& event) {
  const std::uint32_t request = pool_[event.index].owner;
  const Told told(*this, event.index);
  pool_.give(event.index);
  complete(request, event.time, lag_of_message(event.index));
}

/// A message and a receive have found each other at `at`.
void Engine::match(std::uint32_t receive, std::uint32_t message, Time at) {
  Node& m = pool_[message];
  Request& n = requests_[receive];
  n.flags = static_cast<std::uint16_t>(n.flags & ~kQueued);
  const bool late = n.time >= at;  // the receive came after the message
  if (path_ != nullptr && (n.flags & (kOfCollective | kPersistent)) == 0 && n.owner != kNone && n.owner < m.bytes) [[unlikely]] {
    if (too_short_.count++ == 0) too_short_ = {1, m.peer, m.rank, static_cast<std::uint32_t>(m.key >> 32), m.tag, m.bytes, n.owner};
  }
  const Time lag = lags_ != nullptr ? Lags::joined(n.time, lags_->request(receive), m.time, lags_->message(message)) : 0;
  at += machine_.message.match;
  if ((m.flags & kRendezvous) == 0) {
    const Told told(*this, message);
    pool_.give(message);
    return complete(receive, at, lag);
  }
  if (lags_ != nullptr) [[unlikely]] lags_->message(message) = lag;
  if (path_ != nullptr && late) [[unlikely]] path_->sent(message, rank_of(receive), at, ranks_[rank_of(receive)].now);  // who cleared it held it up
  // The answer goes back; what it clears is kept where a waiting message has its tag and place.
  m.order = static_cast<std::uint32_t>(m.bytes >> 32);
  m.tag = static_cast<std::int32_t>(static_cast<std::uint32_t>(m.bytes));
  m.bytes = 0;
  m.flags = kClear;
  m.other = receive;
  std::swap(m.rank, m.peer);
  transmit(message, at);
}

void Engine::complete(std::uint32_t request, Time at, Time lag) {
  Request& n = requests_[request];
  if ((n.flags & kOfCollective) != 0) {
    const std::uint32_t owner = n.owner;
    give_request(request);
    return collective_part_done(owner, at, lag);
  }
  if ((n.flags & kFreed) != 0) return give_request(request);
  n.time = at;
  if (lags_ != nullptr) [[unlikely]] lags_->request(request) = lag;
  n.flags |= kDone;
  if ((n.flags & kWaited) == 0) return;
  const std::uint32_t r = rank_of(request);
  adopt(r, at, ranks_[r].now);
  if (lags_ != nullptr) [[unlikely]] delay(r, at, lag);
  if ((n.flags & kPersistent) != 0) {
    n.flags = static_cast<std::uint16_t>(n.flags & ~(kWaited | kDone | kActive));
  } else {
    give_request(request);
  }
  came(r, at);
}

/// Takes a message on its way at `at`, through the node's memory or the network.
void Engine::transmit(std::uint32_t message, Time at) {
  Node& m = pool_[message];
  Rank& from = ranks_[m.peer];
  ++messages_;
  const std::uint32_t count = ++from.messages;
  if (!same_node(m.rank, m.peer)) [[likely]] return network_.send(message, at, clock_, count);
  if (memory_free_.empty()) [[unlikely]] memory_free_ = Slice<Time>(ranks_.first(), ranks_.last() - ranks_.first());
  Time& free = memory_free_[m.peer];
  free = std::min(kNever, std::max(at, free) + duration_of(wire_bytes(m), machine_.node.memory_ps_per_kib));
  const Time there = free + machine_.node.memory_latency;
  const std::uint64_t tie = tie_of(m.rank, m.peer, count);
  if ((m.flags & kData) != 0) queue_.push({there, tie_back(tie), network_.notice_of(message), EventKind::sent});
  queue_.push({there, tie, message, EventKind::arrive});
}

}  // namespace fallow::sim
