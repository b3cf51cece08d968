#include "sim/network.hpp"

#include <cmath>
#include <stdexcept>

namespace fallow::sim {

Network::Network(const Machine& machine, const NetworkPolicy& policy, NodePool& pool, EventQueue& queue)
    : machine_(machine), edge_(policy.edge), upper_(policy.upper), compress_(policy.compress), topology_(make_topology(machine.topology)),
      pool_(pool), queue_(queue), links_(topology_->links()),
      train_bytes_(std::max<std::uint64_t>(1, machine.message.segment * machine.message.train_segments)),
      ranks_per_node_(machine.node.ranks), one_per_node_(machine.node.ranks == 1),
      edge_rests_(edge_.rule != LinkRule::always_on), upper_rests_(upper_.rule != LinkRule::always_on), parts_rest_(false) {
  if (machine.link.ps_per_kib <= 0 || machine.link.ps_per_kib > 0xffffffff) throw std::invalid_argument("a link's bandwidth is out of range");
  if (machine.node.ranks == 0) throw std::invalid_argument("a node has at least one rank");
  for (std::uint32_t l = 0; l < links_.size(); ++l) {
    const std::uint32_t relative = topology_->relative_bandwidth(l);
    const Time rate = relative == 0 ? machine.link.ps_per_kib : machine.link.ps_per_kib * 1000 / relative;
    links_[l].ps_per_kib = static_cast<std::uint32_t>(rate);
  }
  prepare_rests(policy);
}

void Network::send(std::uint32_t index, Time ready, Time now, std::uint32_t count) {
  Node& node = pool_[index];
  node.hop = 0;
  node.squeezed = 0;
  if (lanes_on_ != 0 && compresses(wire_bytes(node), (node.key & kCollectiveKey) != 0)) {
    node.squeezed = 1;
    node.bytes = static_cast<std::uint64_t>(std::ceil(static_cast<double>(node.bytes) * compress_.ratio));
  }
  const std::uint64_t tie = tie_of(node.rank, node.peer, count);
  if (machine_.contention == Contention::none) return send_loggp(node, index, ready, tie);
  walk({index, ready, 0, tie}, now, false);
}

void Network::hop(const Event& event) {
  walk({event.index, event.time, pool_[event.index].time, event.tie}, event.time, true);
}

// The card sends one message after the other; behind it all links are free (Alexandrov et al., LogGP, 1995).
void Network::send_loggp(Node& node, std::uint32_t index, Time ready, std::uint64_t tie) {
  Time tail = 0;
  const std::uint32_t card = node_of(node.peer), last = nodes() + node_of(node.rank);
  taking_ = index;
  if (cards_.active()) ready = held(ready, cards_.pass(card, ready));
  const Time at = take(card, ready, tail, wire_bytes(node), node.squeezed != 0);
  if (edge_rests_ || lanes_on_ != 0) {
    Link& link = links_[last];
    Time start = at;
    if (edge_rests_ && at > link.free) start = wake(last, at);
    if (lanes_on_ != 0) at_width(last, at, start, serialize(wire_bytes(node), link.ps_per_kib), node.squeezed != 0);
    tail += start - at;
    link.free = std::max(link.free, tail);
  }
  if (cards_.active()) {
    cards_.busy(card, tail);
    tail += held(at, cards_.pass(node_of(node.rank), at)) - at;
    cards_.busy(node_of(node.rank), tail);
  }
  queue_.push({tail + machine_.link.latency + machine_.message.latency, tie, index, EventKind::arrive});
}

void Network::walk(Walk w, Time now, bool by_event) {
  Path path;
  Node* node = &pool_[w.index];
  topology_->route(node_of(node->peer), node_of(node->rank), path);
  for (std::uint32_t hop = node->hop; hop < path.count; ++hop) __builtin_prefetch(&links_[path.links[hop]], 1);
  std::uint64_t bytes = wire_bytes(*node);
  for (std::uint32_t hop = node->hop; hop < path.count; ++hop) {
    Link& link = links_[path.links[hop]];
    taking_ = (node->flags & kTrain) != 0 ? node->owner : w.index;
    if (parts_rest_) w.at = held(w.at, pass_origin(path.links[hop], w.at));
    if (!by_event && (w.at - now > machine_.lookahead || now < link.events_until)) {
      link.events_until = std::max(link.events_until, w.at);
      node->hop = static_cast<std::uint8_t>(hop);
      node->time = w.tail;
      node->chain = path.links[hop];
      queue_.push({w.at, w.tie, w.index, EventKind::hop});
      return;
    }
    by_event = false;
    if (hop == 0 && bytes > train_bytes_ && (node->flags & kData) != 0) {
      split(w, *node, bytes);
      node = &pool_[w.index];
      taking_ = node->owner;
    }
    w.at = take(path.links[hop], w.at, w.tail, bytes, node->squeezed != 0);
    if (parts_rest_) leave_origin(path.links[hop]);
  }
  if (cards_.active()) {
    const std::uint32_t card = node_of(node->rank);
    w.tail += held(w.at, cards_.pass(card, w.at)) - w.at;
    cards_.busy(card, w.tail);
  }
  if ((node->flags & kTrain) != 0) {
    pool_.give(w.index);
    return;
  }
  queue_.push({w.tail + machine_.message.latency, w.tie, w.index, EventKind::arrive});
}

/// Sends one train of a long message and lets the rest queue for the card again. `walk` goes on as the train.
void Network::split(Walk& w, Node& message, std::uint64_t& bytes) {
  const std::uint32_t source = node_of(message.peer);
  const std::uint32_t rest = w.index;
  const std::uint32_t train = pool_.take();
  Node& part = pool_[train];
  part.rank = message.rank;
  part.peer = message.peer;
  part.flags = kTrain;
  part.owner = rest;
  part.squeezed = message.squeezed;
  bytes = part.bytes = train_bytes_;
  message.bytes -= train_bytes_;
  message.hop = 0;
  message.time = 0;
  message.chain = source;
  Link& card = links_[source];
  const Time again = std::max(w.at, card.free) + serialize(train_bytes_, card.ps_per_kib);
  queue_.push({again, w.tie, rest, EventKind::hop});
  w.index = train;
}

/// Takes a link at `at`, the earliest, and moves `tail` to its far end. Returns when the head gets there.
Time Network::take(std::uint32_t number, Time at, Time& tail, std::uint64_t bytes, bool squeezed) noexcept {
  Link& link = links_[number];
  Time start = at;
  if (at <= link.free) {
    start = link.free;
  } else {
    if (number < 2 * nodes() ? edge_rests_ : upper_rests_) start = wake(number, at);
    else if (recorder_ != nullptr) [[unlikely]] recorded_gap(number, link.free, at, {at});
  }
  Time duration = serialize(bytes, link.ps_per_kib);
  if (lanes_on_ != 0) duration = at_width(number, at, start, duration, squeezed);
  const Time end = std::max(start + duration, tail);
  if (recorder_ != nullptr) [[unlikely]] recorder_->sends(number, nodes(), start, end);
  link.busy += duration;
  link.free = end;
  tail = end + machine_.link.latency;
  return start + machine_.link.latency;
}

}  // namespace fallow::sim
