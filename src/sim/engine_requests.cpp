// What programs do with requests, and one-sided operations.
#include "sim/engine.hpp"

namespace fallow::sim {

using trace::CallEvent;

std::uint32_t Engine::take_request(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (rank.spare == kNone) {
    const std::uint32_t first = requests_.take_row(kTogether);
    for (std::uint32_t i = kTogether; i-- > 0;) {
      requests_[first + i].next = rank.spare;
      rank.spare = first + i;
    }
    if (rows_.size() <= first / kTogether) rows_.resize(first / kTogether + 1);
    rows_[first / kTogether] = r;
  }
  const std::uint32_t taken = rank.spare;
  Request& n = requests_[taken];
  rank.spare = n.next;
  n = Request{};
  return taken;
}

void Engine::give_request(std::uint32_t request) {
  Request& n = requests_[request];
  Rank& rank = ranks_[rank_of(request)];
  n.next = rank.spare;
  rank.spare = request;
}

std::uint32_t& Engine::request(std::uint32_t r, std::uint32_t number) {
  if (number >= RequestTables::kMaxNumber) refuse(r, "names request " + std::to_string(number) + ": too large a number");
  return tables_.entry(ranks_[r].requests, number);
}

/// Remembers what the call's request stands for.
void Engine::keep(std::uint32_t r, const CallEvent& call, std::uint32_t what) {
  if (call.requests.empty()) {  // the recorder could not follow it: nobody will ask
    if (what == kCompleted) return;
    Request& n = requests_[what];
    if ((n.flags & kDone) != 0) return give_request(what);
    n.flags |= kFreed;
    return;
  }
  std::uint32_t& entry = request(r, call.requests[0]);
  if (entry != kNone && entry != kCompleted) refuse(r, "creates request " + std::to_string(call.requests[0]) + ", which is in use");
  entry = what;
}

/// Waits for what has completed in the recorded call; a test that found nothing does nothing.
bool Engine::wait(std::uint32_t r, const CallEvent& call) {
  Rank& rank = ranks_[r];
  RequestTables::Table table = rank.requests;
  for (const std::uint32_t number : call.completed) {
    if (number == trace::kNoRequest) continue;
    std::uint32_t& entry = table.bits != 0 && number >> table.bits == 0 ? tables_.entry(table, number) : request(r, number);
    const std::uint32_t node = entry;
    if (node == kCompleted) {
      entry = kNone;
      continue;
    }
    if (node == kNone) {
      if ((call.flags & trace::kEventRequestsLost) != 0 || info_.ranks[r].dropped != 0) continue;
      refuse(r, "waits for request " + std::to_string(number) + ", which does not exist");
    }
    Request& n = requests_[node];
    const bool persistent = (n.flags & kPersistent) != 0;
    if (!persistent) entry = kNone;
    if ((n.flags & kDone) != 0) {
      catch_up(r, n.time, lag_of_request(node));
      if (persistent) {
        n.flags = static_cast<std::uint16_t>(n.flags & ~(kDone | kActive));
      } else {
        give_request(node);
      }
    } else if (!persistent || (n.flags & kActive) != 0) {
      if ((n.flags & kWaited) != 0) [[unlikely]] refuse(r, "waits for request " + std::to_string(number) + " twice");
      n.flags |= kWaited;
      ++rank.pending;
    }
  }
  if (rank.pending == 0) return true;
  rank.state = State::waiting;
  return false;
}

void Engine::make_persistent(std::uint32_t r, const CallEvent& call, std::uint16_t flags) {
  const std::uint32_t node = take_request(r);
  Request& n = requests_[node];
  const std::uint32_t comm = context(call);
  n.flags = static_cast<std::uint16_t>(flags | kPersistent);
  n.tag = tag_of(call.tag);
  if (call.peer == trace::kNoPeer) [[unlikely]] ++left_out(call);
  Persistent made{kNone, call.bytes, comm, call.peer, call.tag};
  if ((flags & kSends) != 0) {
    n.key = key_of(comm, r);
    if (call.peer >= 0) made.peer = world(r, comm, call.peer);
    if (call.op == trace::Op::psend_init && !call.counts.empty() && info_.ranks[r].dropped == 0) made.parts = call.counts[0];
  } else {
    n.key = key_of(comm, source_of(r, comm, call.peer));
    if (call.peer >= 0 || call.peer == trace::kAnyPeer) made.peer = r;
  }
  n.owner = side_.keep(made);
  keep(r, call, node);
}

/// What a persistent receive is to take this time.
void Engine::aim(std::uint32_t r, Request& n, const Persistent& made, std::uint64_t outcome, std::uint64_t tag) {
  const bool told = outcome >= trace::kOutcomeFrom;
  const std::int32_t source = told ? static_cast<std::int32_t>(outcome - trace::kOutcomeFrom) : made.source;
  if (source == trace::kAnyPeer) [[unlikely]] any_source_ = true;
  n.key = key_of(made.comm, source_of(r, made.comm, source));
  n.tag = tag_of(told ? static_cast<std::int32_t>(tag) : made.tag);
}

void Engine::start(std::uint32_t r, const CallEvent& call) {
  const bool told = !call.counts.empty() && call.counts.size() == call.requests.size() && call.recv_counts.size() == call.requests.size();
  for (std::size_t i = 0; i < call.requests.size(); ++i) {
    const std::uint32_t number = call.requests[i];
    const std::uint64_t outcome = told ? call.counts[i] : trace::kOutcomeUnsaid;
    const std::uint32_t node = request(r, number);
    if (node == kNone || node == kCompleted || (requests_[node].flags & kPersistent) == 0) {
      if ((call.flags & trace::kEventRequestsLost) != 0 || info_.ranks[r].dropped != 0) continue;
      refuse(r, "starts request " + std::to_string(number) + ", which is not persistent");
    }
    Request& n = requests_[node];
    Rank& rank = ranks_[r];
    if ((n.flags & kActive) != 0) refuse(r, "starts request " + std::to_string(number) + ", which is active");
    n.flags |= kActive;
    acting_ = lag_of_rank(r);  // a collective's parts may have been started meanwhile
    if ((n.flags & kTemplate) != 0) {
      const std::uint32_t index = collectives_.take();
      collectives_[index] = collectives_[n.owner];
      launch(r, index);
    } else if (Persistent& made = side_.persistent[n.owner]; made.peer == kNone || outcome == trace::kOutcomeCancelled) {
      n.flags = static_cast<std::uint16_t>(n.flags & ~kActive);  // at once: what goes nowhere MPICH takes for inactive, and may not name in a wait
    } else if (made.parts != 0) {
      made.missing = made.parts;
    } else if ((n.flags & kSends) != 0) {
      start_send(r, node, n.key, n.tag, made.peer, made.bytes, n.flags & (kSynchronous | kBuffered), rank.now);
    } else {
      aim(r, n, made, outcome, told ? call.recv_counts[i] : 0);
      post(node, rank.now);
    }
  }
}

/// Partitions of a send that has been started: with the last one it goes.
void Engine::ready(std::uint32_t r, const CallEvent& call) {
  if (call.requests.empty() || call.counts.empty()) return;
  const std::uint32_t node = request(r, call.requests[0]);
  if (node == kNone || node == kCompleted) return;
  Request& n = requests_[node];
  if ((n.flags & (kPersistent | kTemplate | kSends | kActive)) != (kPersistent | kSends | kActive)) return;
  Persistent& made = side_.persistent[n.owner];
  if (made.missing == 0) return;
  made.missing -= std::min(made.missing, call.counts[0]);
  if (made.missing == 0) start_send(r, node, n.key, n.tag, made.peer, made.bytes, 0, ranks_[r].now);
}

void Engine::cancel(std::uint32_t r, const CallEvent& call) {
  for (const std::uint32_t number : call.requests) {
    const std::uint32_t node = request(r, number);
    if (node != kNone && node != kCompleted) cancelled_ = true;
    if (node == kNone || node == kCompleted || (requests_[node].flags & kQueued) == 0) continue;
    Rank& rank = ranks_[r];
    posted_.remove(rank.posted, node);
    requests_[node].flags = static_cast<std::uint16_t>(requests_[node].flags & ~kQueued);
    complete(node, rank.now, lag_of_rank(r));
  }
}

void Engine::release(std::uint32_t r, const CallEvent& call) {
  for (const std::uint32_t number : call.requests) {
    std::uint32_t& entry = request(r, number);
    const std::uint32_t node = entry;
    entry = kNone;
    if (node == kNone || node == kCompleted) continue;
    Request& n = requests_[node];
    const bool idle = (n.flags & kPersistent) != 0 && (n.flags & kActive) == 0;
    if ((n.flags & (kPersistent | kTemplate)) == kPersistent) side_.drop_persistent(n.owner);
    if (idle || (n.flags & kDone) != 0) {
      give_request(node);
    } else {
      n.flags = static_cast<std::uint16_t>((n.flags & ~kPersistent) | kFreed);
    }
  }
}

/// A put, get or accumulate: one message there, for those that fetch another one back.
void Engine::one_sided(std::uint32_t r, const CallEvent& call) {
  const bool fetches = trace::has(call.op, trace::kOpReceives);
  std::uint32_t handle = kNone;
  if (trace::has(call.op, trace::kOpCreates) && !call.requests.empty()) {
    handle = call.peer < 0 ? kCompleted : take_request(r);
    keep(r, call, handle);
  }
  if (call.peer == trace::kNoPeer) [[unlikely]] ++left_out(call);
  if (call.peer < 0) return;
  check_length(r, std::max(call.bytes, call.recv_bytes));
  const std::uint32_t message = pool_.take();
  Node& m = pool_[message];
  m.rank = world(r, context(call), call.peer);
  m.peer = r;
  m.flags = static_cast<std::uint16_t>(kOneSided | (fetches ? kRendezvous : 0));
  m.bytes = trace::has(call.op, trace::kOpSends) ? call.bytes : 0;
  m.key = trace::has(call.op, trace::kOpSends) ? call.recv_bytes : call.bytes;  // what comes back
  m.owner = handle;
  Rank& rank = ranks_[r];
  rank.now += machine_.message.overhead;
  ++rank.one_sided;
  if (path_ != nullptr) [[unlikely]] path_->sent(message, r, rank.now, rank.now);
  if (lags_ != nullptr) [[unlikely]] lags_->message(message) = acting_;
  transmit(message, rank.now);
}

void Engine::one_sided_arrived(std::uint32_t message, Time at) {
  Node& m = pool_[message];
  if ((m.flags & kRendezvous) != 0) {  // at the target: what was asked for goes back
    std::swap(m.rank, m.peer);
    m.flags = kOneSided | kClear;
    m.bytes = m.key;
    return transmit(message, at);
  }
  const std::uint32_t origin = (m.flags & kClear) != 0 ? m.rank : m.peer;
  const std::uint32_t handle = m.owner;
  const Told told(*this, message);
  pool_.give(message);
  Rank& rank = ranks_[origin];
  --rank.one_sided;
  if (handle != kNone) complete(handle, at, lag_of_message(message));
  if (!rank.flushing) return;
  adopt(origin, at, rank.now);
  if (lags_ != nullptr) [[unlikely]] delay(origin, at, lags_->message(message));
  came(origin, at);
}

/// Waits until all one-sided operations of this rank are complete at their targets.
bool Engine::flush(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (rank.one_sided == 0) return true;
  rank.pending += rank.one_sided;
  rank.flushing = true;
  rank.state = State::waiting;
  return false;
}

}  // namespace fallow::sim
