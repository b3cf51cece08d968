// Messages that are nothing but bytes, where nothing has a say but links, which rest as their own idleness decides, and
// borders between domains: most of all. They need no record: their event has their ranks and their envelope, and a Held
// what else there is to know while they are held before a link.
#include "sim/network_take.hpp"

namespace fallow::sim {

void Network::send_plain(std::uint64_t tie, std::uint32_t envelope, std::uint64_t bytes, Time ready, Time now) {
  if (now >= over_) [[unlikely]] return arrive_only({made_again(tie, envelope, bytes), ready, 0, tie}, 2);
  if (direct_) return send_direct(tie, envelope, bytes, ready, now);
  Deferred& d = defer({kNone, ready, 0, tie}, now);
  d.bytes = bytes;
  d.envelope = envelope;
}

/// Puts off what has been sent, and fetches its links.
Network::Deferred& Network::defer(const Walk& walk, Time now) {
  if (deferred_count_ == deferred_.size()) walk_deferred();
  Deferred& d = deferred_[deferred_count_++];
  d.walk = walk;
  d.now = now;
  deferred_until_ = std::min(deferred_until_, walk.at);
  topology_->route(node_of(origin_of(walk.tie)), node_of(target_of(walk.tie)), d.path);
  fetch(d.path.links[0]);
  fetch(d.path.links[1]);
  if (!far_) return d;  // the others are mostly taken later, by events
  constexpr std::uint32_t kUsual = 6;  // fetched without asking how many there are
  for (std::uint32_t hop = 2; hop < kUsual; ++hop) fetch(d.path.links[std::min(hop, d.path.count - 1)]);
  for (std::uint32_t hop = kUsual; hop < d.path.count; ++hop) fetch(d.path.links[hop]);
  return d;
}

void Network::walk_deferred() {
  for (std::size_t i = 0; i < deferred_count_; ++i) {
    const Deferred& d = deferred_[i];
    if (d.walk.index == kNone) [[likely]] {
      set_out_plain(d);
    } else {
      set_out(d.walk, d.path, d.now);
    }
  }
  deferred_count_ = 0;
  deferred_until_ = kNever;
}

/// set_out() for most messages.
void Network::set_out_plain(const Deferred& d) {
  const Path& path = d.path;
  const std::uint32_t target = node_of(target_of(d.walk.tie));
  const bool away = leaves(node_of(origin_of(d.walk.tie)), target);
  const std::uint32_t until = away ? path.count / 2 : path.count;
  Time at = d.walk.at, tail = 0;
  std::uint32_t hop = 0;
  do {
    Link& link = links_[path.links[hop]];
    if (at - d.now > machine_.lookahead || d.now <= link.events_until) {
      link.events_until = std::max(link.events_until, at);
      if (away) held_before(until - hop, at, target);
      return queue_.push(hold_plain(d, at, tail, hop, away ? until : 0));
    }
    at = take(path.links[hop], at, tail, d.bytes, {});
  } while (++hop < until);
  if (away) return push(hold_plain(d, at, tail, hop, 0), target);
  queue_.push({tail + machine_.message.latency, d.walk.tie, d.envelope, EventKind::deliver});
}

Event Network::hold_plain(const Deferred& d, Time at, Time tail, std::uint32_t hop, std::uint32_t border) {
  const std::uint64_t tie = d.walk.tie;
  const std::uint32_t held = pack(d.envelope, d.bytes, std::max<Time>(0, tail - at), d.path, hop, border);
  if (held != kNone) [[likely]] return {at, tie, held, EventKind::pass};
  const std::uint32_t message = made_again(tie, d.envelope, d.bytes);
  return hold({message, at, tail, tie}, pool_[message], d.path, hop, border);
}

/// The record of a message that had none.
std::uint32_t Network::made_again(std::uint64_t tie, std::uint32_t envelope, std::uint64_t bytes) {
  const std::uint32_t message = pool_.take();
  Node& node = pool_[message];
  node.key = Envelope::key(envelope, origin_of(tie));
  node.tag = Envelope::tag(envelope);
  node.rank = target_of(tie);
  node.peer = origin_of(tie);
  node.bytes = bytes;
  return message;
}

/// A Held for what waits before link `hop`; kNone if it does not fit.
std::uint32_t Network::pack(std::uint32_t envelope, std::uint64_t bytes, Time behind, const Path& path, std::uint32_t hop, std::uint32_t border) {
  const std::uint32_t left = path.count - hop;
  if (left >= Held::kMostLinks + (hop == 0 ? 1 : 0) || bytes >> Held::kLengthBits != 0 || behind >> 32 != 0) [[unlikely]] return kNone;
  const std::uint32_t index = held_.take();
  Held& held = held_[index];
  held.keep_way(path.links, path.count);
  held.envelope = envelope;
  held.bytes = static_cast<std::uint32_t>(bytes) & ((1u << Held::kLengthBits) - 1);
  held.left = left & ((1u << Held::kLinkBits) - 1);
  held.border = (border > hop ? border - hop : 0) & ((1u << Held::kLinkBits) - 1);
  held.behind = static_cast<std::uint32_t>(behind);
  return index;
}

/// walk() for what most events are about: a plain message that was held and knows the rest of its way.
void Network::pass(const Event& event) {
  Held& held = held_[event.index];
  if (event.time >= over_) [[unlikely]] {
    const Walk here{made_again(event.tie, held.envelope, held.bytes), event.time, event.time + held.behind, event.tie};
    const std::uint32_t links = held.left;
    held_.give(event.index);
    return arrive_only(here, links);
  }
  if (direct_) {
    const std::uint32_t envelope = held.envelope, behind = held.behind;
    held_.give(event.index);
    return end_direct(event.tie, envelope, event.time, event.time + behind);
  }
  const std::uint32_t last = nodes() + node_of(target_of(event.tie));
  std::uint32_t left = held.left, border = held.border;
  std::uint32_t number = left == Held::kMostLinks ? node_of(origin_of(event.tie)) : held.next(left - 1, last);
  if (left > 1) fetch(held.next(left - 2, last));
  Time at = event.time, tail = event.time + held.behind;
  for (;;) {
    at = take(number, at, tail, held.bytes, {});
    if (--left == 0) break;
    number = held.next(left - 1, last);
    Link& link = links_[number];
    const bool crosses = border == 1;
    border -= border != 0 ? 1 : 0;
    if (!crosses) {
      if (at - event.time <= machine_.lookahead && event.time >= link.events_until) continue;
      link.events_until = std::max(link.events_until, at);
    }
    held_before(border, at, node_of(target_of(event.tie)));
    const Time behind = std::max<Time>(0, tail - at);
    if (behind >> 32 != 0) [[unlikely]] return unpack(event.index, event.tie, at, tail, left, crosses);
    held.behind = static_cast<std::uint32_t>(behind);
    held.left = left & ((1u << Held::kLinkBits) - 1);
    held.border = border & ((1u << Held::kLinkBits) - 1);
    if (crosses) return push({at, event.tie, event.index, EventKind::pass}, node_of(target_of(event.tie)));
    return queue_.push({at, event.tie, event.index, EventKind::pass});
  }
  const std::uint32_t envelope = held.envelope;
  held_.give(event.index);
  queue_.push({tail + machine_.message.latency, event.tie, envelope, EventKind::deliver});
}

/// A held message that has become too different from others to be a Held goes on as any other.
void Network::unpack(std::uint32_t index, std::uint64_t tie, Time at, Time tail, std::uint32_t left, bool crosses) {
  const Held held = held_[index];
  held_.give(index);
  const std::uint32_t source = origin_of(tie), target = target_of(tie);
  const std::uint32_t message = made_again(tie, held.envelope, held.bytes);
  Node& node = pool_[message];
  Path path;
  topology_->route(node_of(source), node_of(target), path);
  node.hop = (path.count - left) & 0x7f;
  node.time = tail;
  node.chain = path.links[path.count - left];
  if (crosses) return push({at, tie, message, EventKind::hop}, node_of(target));
  queue_.push({at, tie, message, EventKind::hop});
}

/// send_loggp() for messages without a record.
void Network::send_direct(std::uint64_t tie, std::uint32_t envelope, std::uint64_t bytes, Time ready, Time now) {
  Time tail = 0;
  const std::uint32_t card = node_of(origin_of(tie)), target = node_of(target_of(tie));
  const Time at = take(card, ready, tail, bytes, {});
  if (!edge_rests_ || (at - now <= machine_.lookahead && !leaves(card, target))) return end_direct(tie, envelope, at, tail);
  if ((tail - at) >> 32 != 0) [[unlikely]] {
    const std::uint32_t message = made_again(tie, envelope, bytes);
    pool_[message].time = tail;
    pool_[message].chain = nodes() + target;
    return push({at, tie, message, EventKind::hop}, target);
  }
  const std::uint32_t index = held_.take();
  Held& held = held_[index];
  held.envelope = envelope;
  held.left = 1;
  held.behind = static_cast<std::uint32_t>(tail - at);
  push({at, tie, index, EventKind::pass}, target);
}

void Network::end_direct(std::uint64_t tie, std::uint32_t envelope, Time at, Time tail) {
  const std::uint32_t target = node_of(target_of(tie)), last = nodes() + target;
  if (edge_rests_) {  // as take() has it, but for what the link carries
    Link& link = links_[last];
    const Time begin = link.free + timers_[0], low_from = begin + machine_.link.rest.down;
    const Time rested = at > begin ? -1 : 0;
    const Time wake = std::max(at, low_from), late = (wake + machine_.link.rest.up - at) & rested;
    link.low += (wake - low_from) & rested;
    link.delay += late;
    link.rests -= static_cast<std::uint32_t>(rested);
    tail = detail::behind_held(link.events_until, tail, late);
    link.free = std::max(link.free, tail);
  }
  push({tail + machine_.link.latency + machine_.message.latency, tie, envelope, EventKind::deliver}, target);
}

}  // namespace fallow::sim
