#include "sim/critical_path.hpp"

#include <algorithm>

namespace fallow::sim {

PathShare CriticalPath::own(const PathHead& head, Time until) noexcept {
  PathShare share;
  share.computing = head.computing;
  share.core_wake = head.waking;
  share.in_calls = until - head.since - head.computing - head.waking;
  return share;
}

void CriticalPath::sent(std::uint32_t message, std::uint32_t rank, Time at, Time reached) {
  if (message >= messages_.size()) messages_.resize(message + 1 + message / 2);
  PathMessage& m = messages_[message];
  m.head = heads_[rank];
  m.rank = rank;
  m.at = std::max(at, m.head.since);
  m.head.computing -= std::clamp<Time>(reached - m.at, 0, m.head.computing);
  m.head.waking = std::min(m.head.waking, m.at - m.head.since - m.head.computing);
  m.held = 0;
}

void CriticalPath::copy(std::uint32_t message, std::uint32_t other) {
  const PathMessage m = message < messages_.size() ? messages_[message] : PathMessage{};
  if (other >= messages_.size()) messages_.resize(other + 1 + other / 2);
  messages_[other] = m;
}

void CriticalPath::adopt(const PathMessage& m, std::uint32_t rank, Time at) {
  if (m.rank == kNone) return;
  const std::uint32_t number = take();
  parents_[number] = m.head.link;
  Link& link = links_[number];
  link.from = m.rank;
  link.to = rank;
  link.share = own(m.head, m.at);
  link.share.link_wake = std::min(m.held, std::max<Time>(0, at - m.at));
  link.share.transfer = at - m.at - link.share.link_wake;
  heads_[rank] = {number, at, 0, 0};
}

void CriticalPath::add(const Link& link) {
  PathShare& from = totals_[link.from];
  PathShare& to = totals_[link.to];
  from.computing += link.share.computing;
  from.in_calls += link.share.in_calls;
  from.core_wake += link.share.core_wake;
  to.transfer += link.share.transfer;
  to.link_wake += link.share.link_wake;
  ++on_path_;
}

/// A link when none is free.
std::uint32_t CriticalPath::make() {
  if (links_.size() == room_) {
    collect();
    if (!free_.empty()) return take();
  }
  links_.emplace_back();
  parents_.push_back(kNone);
  return static_cast<std::uint32_t>(links_.size() - 1);
}

/// Frees links that no path goes through any more. There may be more of them unless half are free then.
void CriticalPath::collect() {
  if (mark() == 1) fold();
  free_.clear();
  for (std::size_t link = links_.size(); link-- > 0;) {  // the first is taken first
    if (uses_[link] == 0) free_.push_back(static_cast<std::uint32_t>(link));
  }
  if (2 * free_.size() < links_.size()) room_ += links_.size() - free_.size();
  room_ = std::max<std::size_t>(4096, room_);
}

/// Counts the uses of all links. Returns how many beginnings there are, those of paths without a link included.
std::size_t CriticalPath::mark() {
  std::size_t beginnings = 0;
  uses_.assign(links_.size(), 0);
  const auto use = [&](std::uint32_t link) {
    for (; link != kNone; link = parents_[link]) {
      if (uses_[link]++ != 0) return;
    }
    ++beginnings;
  };
  for (const PathHead& head : heads_) use(head.link);
  for (const PathMessage& m : messages_) {
    if (m.rank != kNone) use(m.head.link);
  }
  for (const std::uint32_t link : received_) use(link);
  return beginnings;
}

/// Sums up the beginning that all paths share: from their one beginning on, a link with one use that is not a head's is passed by all.
void CriticalPath::fold() {
  std::vector<std::uint32_t> chain;
  for (std::uint32_t link = heads_[0].link; link != kNone; link = parents_[link]) chain.push_back(link);
  while (chain.size() > 1 && uses_[chain.back()] == 1) {
    const std::uint32_t first = chain.back();
    chain.pop_back();
    add(links_[first]);
    uses_[first] = 0;
    parents_[chain.back()] = kNone;
  }
}

CriticalPathResult CriticalPath::result(std::uint32_t rank, Time end) {
  const PathShare last = own(heads_[rank], end);
  totals_[rank].computing += last.computing;
  totals_[rank].in_calls += last.in_calls;
  totals_[rank].core_wake += last.core_wake;
  for (std::uint32_t link = heads_[rank].link; link != kNone; link = parents_[link]) add(links_[link]);
  return {totals_, on_path_};
}

}  // namespace fallow::sim
