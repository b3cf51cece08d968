#include "sim/network.hpp"

#include <stdexcept>

namespace fallow::sim {

Network::Network(const Machine& machine, LinkPolicy edge, LinkPolicy upper, NodePool& pool, EventQueue& queue)
    : machine_(machine), edge_(edge), upper_(upper), topology_(make_topology(machine.topology)), pool_(pool), queue_(queue),
      links_(topology_->links()), plans_(edge.rule == LinkRule::planned ? 2 * topology_->nodes() : 0),
      train_bytes_(std::max<std::uint64_t>(1, machine.message.segment * machine.message.train_segments)),
      ranks_per_node_(machine.node.ranks), one_per_node_(machine.node.ranks == 1),
      edge_rests_(edge.rule != LinkRule::always_on), upper_rests_(upper.rule != LinkRule::always_on) {
  if (machine.link.ps_per_kib <= 0 || machine.link.ps_per_kib > 0xffffffff) throw std::invalid_argument("a link's bandwidth is out of range");
  if (machine.node.ranks == 0) throw std::invalid_argument("a node has at least one rank");
  if (edge_rests_ || upper_rests_) rests_.resize(links_.size());
  for (std::uint32_t l = 0; l < links_.size(); ++l) {
    const std::uint32_t relative = topology_->relative_bandwidth(l);
    const Time rate = relative == 0 ? machine.link.ps_per_kib : machine.link.ps_per_kib * 1000 / relative;
    links_[l].ps_per_kib = static_cast<std::uint32_t>(rate);
  }
}

void Network::send(std::uint32_t index, Time ready, Time now, std::uint32_t count) {
  Node& node = pool_[index];
  node.hop = 0;
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
  const std::uint32_t card = node_of(node.peer);
  taking_ = index;
  const Time at = take(card, ready, tail, wire_bytes(node));
  if (edge_rests_) {
    const std::uint32_t last = nodes() + node_of(node.rank);
    Link& link = links_[last];
    if (at > link.free) tail += wake(last, at) - at;
    link.free = std::max(link.free, tail);
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
    }
    taking_ = (node->flags & kTrain) != 0 ? node->owner : w.index;
    w.at = take(path.links[hop], w.at, w.tail, bytes);
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
Time Network::take(std::uint32_t number, Time at, Time& tail, std::uint64_t bytes) noexcept {
  Link& link = links_[number];
  Time start = at;
  if (at <= link.free) {
    start = link.free;
  } else {
    if (number < 2 * nodes() ? edge_rests_ : upper_rests_) start = wake(number, at);
    else if (recorder_ != nullptr) [[unlikely]] recorded_gap(number, link.free, at, {at});
  }
  const Time duration = serialize(bytes, link.ps_per_kib);
  const Time end = std::max(start + duration, tail);
  if (recorder_ != nullptr) [[unlikely]] recorder_->sends(number, nodes(), start, end);
  link.busy += duration;
  link.free = end;
  tail = end + machine_.link.latency;
  return start + machine_.link.latency;
}

/// Ends the gap of a link with a message that reaches it at `arrival`; returns when it can carry it.
Time Network::wake(std::uint32_t number, Time arrival) noexcept {
  const RestResult r = gap(number, links_[number].free, arrival);
  if (recorder_ != nullptr) [[unlikely]] recorded_gap(number, links_[number].free, arrival, r);
  if (r.rests == 0) return r.ready;
  add_rest(number, r, arrival);
  rests_[number].late += r.ready > arrival ? 1 : 0;
  if (number < plans_.size()) plans_[number] = RestPlan{};
  return r.ready;
}

void Network::add_rest(std::uint32_t number, const RestResult& r, Time arrival) noexcept {
  LinkRests& sums = rests_[number];
  sums.low += r.low;
  sums.deep += r.deep;
  sums.rests += r.rests;
  sums.delay += r.ready - arrival;
}

void Network::plan(std::uint32_t node, RestPlan plan) noexcept {
  replan(node, plan);
  replan(nodes() + node, plan);
}

void Network::replan(std::uint32_t number, RestPlan plan) noexcept {
  RestPlan& old = plans_[number];
  Link& link = links_[number];
  const Time began = std::max(old.begin, link.free);
  if (old.wake > began && plan.begin > began) {
    if (plan.begin < old.wake) {
      old.wake = plan.wake;
      return;
    }
    const RestResult r = gap(number, link.free, plan.begin);  // it is over: count it, and begin anew
    if (recorder_ != nullptr) [[unlikely]] recorder_->rested(number, nodes(), link.free, r, edge_, old, machine_.link);
    add_rest(number, r, r.ready);
    link.free = r.ready;
  }
  old = plan;
}

void Network::recorded_gap(std::uint32_t link, Time from, Time at, const RestResult& r) const {
  const LinkPolicy& policy = link < 2 * nodes() ? edge_ : upper_;
  recorder_->idled(link, nodes(), from, at);
  if (r.rests == 0) return;
  recorder_->rested(link, nodes(), from, r, policy, link < plans_.size() ? plans_[link] : RestPlan{}, machine_.link);
  if (r.ready > at && recorder_->path() != nullptr) recorder_->path()->held(taking_, r.ready - at);
}

void Network::finish_record(Time end) const {
  for (std::uint32_t l = 0; l < links_.size(); ++l) {
    if (end <= links_[l].free) continue;
    const bool rests = l < 2 * nodes() ? edge_rests_ : upper_rests_;
    recorded_gap(l, links_[l].free, end, rests ? gap(l, links_[l].free, end) : RestResult{end});
  }
}

RestResult Network::gap(std::uint32_t link, Time idle_from, Time arrival) const noexcept {
  if (link >= 2 * nodes()) return end_of_gap(upper_, RestPlan{}, machine_.link, idle_from, arrival);
  return end_of_gap(edge_, plans_.empty() ? RestPlan{} : plans_[link], machine_.link, idle_from, arrival);
}

LinkTotals Network::totals(LinkClass link_class, std::uint32_t used, Time end) const {
  LinkTotals t;
  const std::uint32_t from = link_class == LinkClass::edge ? 0 : 2 * nodes();
  const std::uint32_t to = link_class == LinkClass::edge ? 2 * nodes() : topology_->links();
  for (std::uint32_t l = from; l < to; ++l) {
    if (l < 2 * nodes() && (l < nodes() ? l : l - nodes()) >= used) continue;
    const LinkTotals one = total(l, end);
    ++t.links;
    t.busy += one.busy;
    t.rests += one.rests;
    t.late += one.late;
    t.low += one.low;
    t.deep += one.deep;
    t.delay += one.delay;
  }
  return t;
}

LinkTotals Network::total(std::uint32_t l, Time end) const {
  const Link& link = links_[l];
  LinkTotals t;
  t.links = 1;
  t.busy = link.busy;
  if (rests_.empty()) return t;
  const RestResult open = end > link.free ? gap(l, link.free, end) : RestResult{};
  const LinkRests& sums = rests_[l];
  t.rests = sums.rests + open.rests;
  t.late = sums.late;
  t.low = sums.low + open.low;
  t.deep = sums.deep + open.deep;
  t.delay = sums.delay;
  return t;
}

}  // namespace fallow::sim
