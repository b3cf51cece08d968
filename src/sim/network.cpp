#include "sim/network.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/network_take.hpp"

namespace fallow::sim {

Network::Network(const Machine& machine, const NetworkPolicy& policy, NodePool& pool, EventQueue& queue, std::uint32_t used, Share share)
    : machine_(machine), edge_(policy.edge), upper_(policy.upper), compress_(policy.compress), topology_(make_topology(machine.topology)),
      domains_(*topology_, machine, used), share_(share), pool_(pool), queue_(queue), rate_(static_cast<std::uint32_t>(machine.link.ps_per_kib)),
      train_bytes_(std::max<std::uint64_t>(1, machine.message.segment * machine.message.train_segments)),
      ranks_per_node_(machine.node.ranks), one_per_node_(machine.node.ranks == 1),
      edge_rests_(edge_.rule != LinkRule::always_on), upper_rests_(upper_.rule != LinkRule::always_on), parts_rest_(false),
      edge_links_(2 * topology_->nodes()), edge_quiet_(edge_.quiet()), upper_quiet_(upper_.quiet()),
      edge_timed_(edge_.rule == LinkRule::timer), upper_timed_(upper_.rule == LinkRule::timer) {
  if (machine.link.ps_per_kib <= 0 || machine.link.ps_per_kib > 0xffffffff) throw std::invalid_argument("a link's bandwidth is out of range");
  if (machine.node.ranks == 0) throw std::invalid_argument("a node has at least one rank");
  const std::uint32_t links = topology_->links();
  for (std::uint32_t l = 0; l < links; ++l) {
    const std::uint32_t relative = topology_->relative_bandwidth(l);
    if (relative == 0) continue;
    if (rates_.empty()) rates_.assign(links, rate_);
    const Time slower = machine.link.ps_per_kib * 1000 / relative;
    if (slower > 0xffffffff) throw std::invalid_argument("a link's bandwidth is out of range");
    rates_[l] = static_cast<std::uint32_t>(slower);
  }
  prepare_rests(policy, used);
  find_border();
  far_ = links_.size() * sizeof(Link) > kHugePage;
}

/// Domains are as far from each other as any two of them are. Who is told of what has come over a border hears of it
/// at least a link and the latency of a message later.
void Network::find_border() {
  if (domains_.count() == 1) return;
  if (machine_.contention == Contention::full) {
    Path path;
    topology_->route(domains_.first_node(0), domains_.first_node(1), path);
    links_to_border_ = path.count / 2;
  }
  const Time latency = machine_.link.latency;
  to_border_ = std::min(links_to_border_ * latency, latency + machine_.message.latency);
}

std::uint64_t Network::longest_message() const noexcept {
  constexpr Time kLongest = kNever / 16;  // 40 hours
  const std::uint32_t slowest = rates_.empty() ? rate_ : *std::max_element(rates_.begin(), rates_.end());
  return static_cast<std::uint64_t>((TimeSum{kLongest} << 10) / std::max<Time>(slowest, machine_.node.memory_ps_per_kib));
}

void Network::send(std::uint32_t index, Time ready, Time now, std::uint32_t count) {
  Node& node = pool_[index];
  node.hop = 0;
  node.squeezed = 0;
  node.left = 0;
  if (lanes_on_ != 0 && compresses(wire_bytes(node), (node.key & kCollectiveKey) != 0)) {
    node.squeezed = 1;
    node.bytes = static_cast<std::uint64_t>(std::ceil(static_cast<double>(node.bytes) * compress_.ratio));
  }
  const std::uint64_t tie = tie_of(node.rank, node.peer, count);
  if (now >= over_) [[unlikely]] return arrive_only({index, ready, 0, tie}, 2);
  if (machine_.contention == Contention::none) return send_loggp(node, index, ready, now, tie);
  if (!defers_) {
    Path path;
    topology_->route(node_of(node.peer), node_of(node.rank), path);
    return walk({index, ready, 0, tie}, path, now, false);
  }
  defer({index, ready, 0, tie}, now);
}

void Network::hop(const Event& event) {
  Node& node = pool_[event.index];
  const Walk here{event.index, event.time, node.time, event.tie};
  if (machine_.contention == Contention::none) return event.time >= over_ ? arrive_only(here, 1) : end_loggp(here, node);
  Path path;
  find_way(node, node_of(node.peer), node_of(node.rank), path);
  if (event.time >= over_) [[unlikely]] return arrive_only(here, path.count - node.hop);
  const std::uint32_t near = std::min(path.count, node.hop + 3u);  // what was held is often held again
  for (std::uint32_t hop = node.hop; hop < near; ++hop) fetch(path.links[hop]);
  walk(here, path, event.time, true);
}

/// A message that has `links` left to take when all is over.
void Network::arrive_only(Walk w, std::uint32_t links) {
  w.tail = std::max(w.at, w.tail) + links * machine_.link.latency;
  end_walk(w);
}

/// walk() for messages where nothing but links has a say.
void Network::set_out(Walk w, const Path& path, Time now) {
  Node& node = pool_[w.index];
  const std::uint64_t bytes = wire_bytes(node);
  if (bytes > train_bytes_ && (node.flags & kData) != 0) [[unlikely]] return walk(w, path, now, false);
  const bool away = leaves(node);
  const Manner manner = manner_of(node);
  taking_ = w.index;
  const std::uint32_t until = away ? path.count / 2 : path.count;
  std::uint32_t hop = 0;
  do {
    Link& link = links_[path.links[hop]];
    if (w.at - now > machine_.lookahead || now <= link.events_until) {
      link.events_until = std::max(link.events_until, w.at);
      if (away) held_before(until - hop, w.at, node_of(node.rank));
      return queue_.push(hold(w, node, path, hop, away ? until : 0));
    }
    w.at = take(path.links[hop], w.at, w.tail, bytes, manner);
  } while (++hop < until);
  if (!away) return end_walk(w);
  const std::uint32_t target = node_of(node.rank);
  push(hold(w, node, path, hop, 0), target);
}

// The card sends one message after the other; behind it all links are free (Alexandrov et al., LogGP, 1995). That of the
// receiver may rest: a message that comes to it long after the clock finds it as others will have left it by then.
void Network::send_loggp(Node& node, std::uint32_t index, Time ready, Time now, std::uint64_t tie) {
  Time tail = 0;
  const std::uint32_t card = node_of(node.peer), last = nodes() + node_of(node.rank);
  taking_ = index;
  if (cards_.active()) ready = held(ready, cards_.pass(card, ready));
  const Time at = take(card, ready, tail, wire_bytes(node), manner_of(node));
  if (cards_.active()) cards_.busy(card, links_[card].free);
  if (cards_.active() || ((edge_rests_ || lanes_on_ != 0) && (at - now > machine_.lookahead || leaves(node)))) {
    node.time = tail;
    node.chain = last;
    return push({at, tie, index, EventKind::hop}, node_of(node.rank));
  }
  end_loggp({index, at, tail, tie}, node);
}

void Network::end_loggp(Walk w, const Node& node) {
  const std::uint32_t card = node_of(node.peer), last = nodes() + node_of(node.rank);
  taking_ = w.index;
  if (edge_rests_ || lanes_on_ != 0) {
    Link& link = links_[last];
    Time start = w.at;
    bool idle = w.at > link.free;
    if (edge_rests_ && idle) {
      start = wake(last, w.at);
      if (lags_ != nullptr) lags_->message(taking_) += start - w.at;
    } else if (edge_rests_) {
      start = held(w.at, until_back(last, w.at));
      idle = start > w.at;
    }
    if (lanes_on_ != 0) at_width(last, w.at, idle, start, serialize(wire_bytes(node), rate(last)), node.squeezed != 0);
    const Time tail = w.tail + start - w.at;
    w.tail = is_bulk(node) ? tail : held(tail, detail::behind_held(link.events_until, w.tail, start - w.at));
    link.free = std::max(link.free, w.tail);
  }
  if (cards_.active()) {
    cards_.busy(card, w.tail);
    w.tail = into_node(node, w.at, w.tail);
  }
  w.tail += machine_.link.latency;
  end_walk(w);
}

/// The links of a held message's way from where it is; of any other all.
void Network::find_way(Node& node, std::uint32_t source, std::uint32_t target, Path& path) const noexcept {
  if (node.left == 0) return topology_->route(source, target, path);
  path.count = std::uint32_t{node.hop} + node.left;
  path.links[node.hop] = node.chain;
  for (std::uint32_t after = node.left - 1u; after-- > 0;) path.links[path.count - 1 - after] = node.kept(after);
  node.left = 0;
}

void Network::walk(const Walk& begun, const Path& path, Time now, bool by_event) {
  Walk w = begun;
  Node* node = &pool_[w.index];
  const std::uint32_t target = node_of(node->rank);
  const std::uint32_t border = leaves(*node) ? path.count / 2 : Path::kMaxHops;
  std::uint64_t bytes = wire_bytes(*node);
  const Time sent = by_event ? 0 : 1;  // by its rank just now: the event of the one before it may be still to happen (ADR 32)
  for (std::uint32_t hop = node->hop; hop < path.count; ++hop) {
    taking_ = (node->flags & kTrain) != 0 ? node->owner : w.index;
    if (!by_event) {
      if (hop == border) {
        return push(hold(w, *node, path, hop, 0), target);
      }
      Link& link = links_[path.links[hop]];
      if (w.at - now > machine_.lookahead || now < link.events_until + sent) {
        link.events_until = std::max(link.events_until, w.at);
        if (border < Path::kMaxHops && hop < border) held_before(border - hop, w.at, target);
        return queue_.push(hold(w, *node, path, hop, border < Path::kMaxHops ? border : 0));
      }
    }
    by_event = false;
    if (parts_rest_) w.at = held(w.at, pass_origin(path.links[hop], w.at));  // not before its time: others may come there first
    if (hop == 0 && bytes > train_bytes_ && (node->flags & kData) != 0) {
      split(w, *node, bytes);
      node = &pool_[w.index];
      taking_ = node->owner;
    }
    w.at = take(path.links[hop], w.at, w.tail, bytes, manner_of(*node));
    if (parts_rest_) leave_origin(path.links[hop]);
  }
  if (cards_.active()) {
    Time& until = cards_.events_until(target);
    if (!by_event && (w.at - now > machine_.lookahead || now <= until)) {  // others may come to the card before, as to a link
      until = std::max(until, w.at);
      node->hop = path.count & 0x7f;
      node->time = w.tail;
      node->chain = path.links[path.count - 1];
      return queue_.push({w.at, w.tie, w.index, EventKind::hop});
    }
    taking_ = (node->flags & kTrain) != 0 ? node->owner : w.index;
    w.tail = into_node(*node, w.at, w.tail);
  }
  end_walk(w);
}

/// The event by which a message goes on before whose next link it is held. A plain message needs no record but a Held, if
/// it fits. `border`: the first link behind one that the message crosses, if it is not there yet.
Event Network::hold(const Walk& w, Node& node, const Path& path, std::uint32_t hop, std::uint32_t border) {
  if (packs_ && node.flags == 0 && node.squeezed == 0 && Envelope::fits(node.key, node.tag) && !keeps_records()) [[likely]] {
    const std::uint32_t held = pack(Envelope::pack(node.key, node.tag), node.bytes, std::max<Time>(0, w.tail - w.at), path, hop, border);
    if (held != kNone) [[likely]] {
      pool_.give(w.index);
      return {w.at, w.tie, held, EventKind::pass};
    }
  }
  node.hop = hop & 0x7f;
  node.time = w.tail;
  node.chain = path.links[hop];
  node.keep_way(path.links + hop + 1, path.count - hop - 1);
  return {w.at, w.tie, w.index, EventKind::hop};
}

void Network::accept(const Mail& mail) {
  Event event = mail.event;
  if (const Node* node = std::get_if<Node>(&mail.message)) {
    event.index = pool_.take();
    pool_[event.index] = *node;
    if (lags_ != nullptr) lags_->message(event.index) = mail.lag;
  } else if (const Held* held = std::get_if<Held>(&mail.message)) {
    event.index = held_.take();
    held_[event.index] = *held;
  }
  queue_.push(event);
}

/// The tail of a message is through its last link: it arrives, and its sender may be told.
void Network::end_walk(const Walk& w) {
  const Node& node = pool_[w.index];
  const Time at = w.tail + machine_.message.latency;
  if (node.flags == 0) return deliver({at, w.tie, w.index, EventKind::arrive}, node);
  if ((node.flags & kTrain) != 0) return pool_.give(w.index);
  if ((node.flags & (kOneSided | kRendezvous | kClear)) == kOneSided) {  // a put: only its origin waits for it
    return push({at, tie_back(w.tie), w.index, EventKind::arrive}, node_of(node.peer));
  }
  if ((node.flags & kData) != 0) push({at, tie_back(w.tie), notice_of(w.index), EventKind::sent}, node_of(node.peer));
  push({at, w.tie, w.index, EventKind::arrive}, node_of(node.rank));
}

/// The arrival of a plain message. Its record is given back with that, if the event can tell all there is to know.
void Network::deliver(Event event, const Node& node) {
  const std::uint32_t at = node_of(node.rank);
  if (!Envelope::fits(node.key, node.tag) || keeps_records()) [[unlikely]] return push(event, at);
  pool_.give(event.index);
  event.index = Envelope::pack(node.key, node.tag);
  event.kind = EventKind::deliver;
  push(event, at);
}

std::uint32_t Network::notice_of(std::uint32_t data) {
  const std::uint32_t notice = pool_.take();
  pool_[notice].owner = pool_[data].owner;
  if (recorder_ != nullptr && recorder_->path() != nullptr) recorder_->path()->copy(data, notice);
  if (lags_ != nullptr) lags_->message(notice) = lags_->message(data);
  return notice;
}

/// An event that takes place at a node.
void Network::push(const Event& event, std::uint32_t node) {
  if (share_.count > 1) {
    const std::uint32_t share = share_of(node);
    if (share != share_.index) {
      if (event.kind == EventKind::deliver) return boxes_[share].push_back({event, {}});
      if (event.kind == EventKind::pass) {
        boxes_[share].push_back({event, held_[event.index]});
        return held_.give(event.index);
      }
      boxes_[share].push_back({event, pool_[event.index], lags_ != nullptr ? lags_->message(event.index) : 0});
      return pool_.give(event.index);
    }
  }
  queue_.push(event);
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
  const Time again = std::max(w.at, card.free) + serialize(train_bytes_, rate(source));
  queue_.push({again, w.tie, rest, EventKind::hop});
  w.index = train;
}

/// wake() for the rule that simulations at scale have, when nobody wants to know.
inline Time Network::wake_timed(std::uint32_t number, const LinkPolicy& policy, Time arrival) noexcept {
  const RestResult r = detail::after_timer(policy, machine_.link, links_[number].free, arrival);
  add_rest(number, r, arrival, true);
  return r.ready;
}

/// Tells the recorder what take() is about to do.
void Network::tell_take(std::uint32_t number, Time at) noexcept {
  const Time free = links_[number].free;
  CriticalPath* const path = recorder_->path();
  if (at <= free) {
    if (path != nullptr && at < woken_[number].until) path->held(taking_, woken_[number].until - std::max(at, woken_[number].from));
    return;
  }
  recorder_->idled(number, nodes(), free, at);
  const Time begin = free + timers_[number >= edge_links_ ? 1 : 0];
  if (at <= begin || path == nullptr) return;
  const Time ready = std::max(at, begin + machine_.link.rest.down) + machine_.link.rest.up;
  woken_[number] = {at, ready};
  path->held(taking_, ready - at);
}

/// take() where more has a say than timers.
Time Network::take_any(std::uint32_t number, Time at, Time& tail, std::uint64_t bytes, Manner manner) noexcept {
  Link& link = links_[number];
  const bool bulk = manner.bulk;
  const Time free = link.free;
  Time start = at;
  bool idle = at > link.free;
  if (!idle) {
    start = link.free;
    idle = until_back(number, at) > at;
    if (recorder_ != nullptr) [[unlikely]] recorder_->idled(number, nodes(), link.free, at);
    if (!woken_.empty() && at < woken_[number].until) [[unlikely]] recorder_->path()->held(taking_, woken_[number].until - std::max(at, woken_[number].from));  // behind who wakes it
  } else {
    link.bulk = 0;
    const bool edge = number < edge_links_;
    if (at - link.free > (edge ? edge_quiet_ : upper_quiet_)) start = (edge ? edge_timed_ : upper_timed_) ? wake_timed(number, edge ? edge_ : upper_, at) : wake(number, at);
    else if (recorder_ != nullptr) [[unlikely]] recorded_gap(number, link.free, at, {{at}, {}});
  }
  if (lags_ != nullptr) lags_->take(number, taking_, free, at, start);
  Time duration = serialize(bytes, rate(number));
  if (lanes_on_ != 0) duration = at_width(number, at, idle, start, duration, manner.squeezed);
  if (recorder_ != nullptr) [[unlikely]] recorder_->sends(number, nodes(), start, std::max(start + duration, tail));
  link.busy += duration;
  if (link.bulk != 0 && !bulk) return slip_in(number, at, tail, duration);
  const Time end = std::max(start + duration, tail);
  if (bulk) set_bulk(number, bulk_of(number) + end - start);
  link.free = end;
  tail = end + machine_.link.latency;
  return start + machine_.link.latency;
}

void Network::keep_long(std::uint32_t number, Time bulk) noexcept { long_bulk_[number] = bulk; }

/// A message that finds trains of long messages before it does not wait for their end: packets of both take turns. It
/// never overtakes what is matched in order, which trains are not (docs/adr/0032).
Time Network::slip_in(std::uint32_t number, Time at, Time& tail, Time duration) noexcept {
  Link& link = links_[number];
  const Time packet = serialize(machine_.message.segment, rate(number));
  const Time start = std::min(std::max(at + packet, link.free - bulk_of(number)), link.free);
  const Time end = std::max(start + duration + std::min(duration, link.free - start), tail);
  link.free = std::max(link.free + duration, end);
  set_bulk(number, link.free - end);
  tail = end + machine_.link.latency;
  return start + machine_.link.latency;
}

}  // namespace fallow::sim
