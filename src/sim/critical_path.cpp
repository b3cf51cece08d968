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

std::uint32_t CriticalPath::take() {
  if (++live_ > fold_at_) {
    fold();
    fold_at_ = std::max<std::size_t>(4096, 2 * live_);
  }
  if (free_.empty()) {
    links_.emplace_back();
    return static_cast<std::uint32_t>(links_.size() - 1);
  }
  const std::uint32_t link = free_.back();
  free_.pop_back();
  links_[link] = Link{};
  return link;
}

void CriticalPath::release(std::uint32_t link) {
  while (link != kNone && --links_[link].references == 0) {
    const std::uint32_t parent = links_[link].parent;
    free_.push_back(link);
    --live_;
    link = parent;
  }
}

void CriticalPath::sent(std::uint32_t message, std::uint32_t rank, Time at, Time reached) {
  if (message >= messages_.size()) messages_.resize(message + 1 + message / 2);
  PathMessage& m = messages_[message];
  if (m.rank != kNone) release(m.head.link);
  m.head = heads_[rank];
  m.rank = rank;
  m.at = std::max(at, m.head.since);
  m.head.computing -= std::clamp<Time>(reached - m.at, 0, m.head.computing);
  m.head.waking = std::min(m.head.waking, m.at - m.head.since - m.head.computing);
  m.held = 0;
  if (m.head.link != kNone) ++links_[m.head.link].references;
}

void CriticalPath::copy(std::uint32_t message, std::uint32_t other) {
  const PathMessage m = message < messages_.size() ? messages_[message] : PathMessage{};
  if (other >= messages_.size()) messages_.resize(other + 1 + other / 2);
  if (messages_[other].rank != kNone) release(messages_[other].head.link);
  messages_[other] = m;
  if (m.rank != kNone && m.head.link != kNone) ++links_[m.head.link].references;
}

void CriticalPath::adopt(const PathMessage& m, std::uint32_t rank, Time at) {
  if (m.rank == kNone) return;
  const std::uint32_t number = take();
  Link& link = links_[number];
  link.parent = m.head.link;
  if (link.parent != kNone) ++links_[link.parent].references;
  link.from = m.rank;
  link.to = rank;
  link.share = own(m.head, m.at);
  link.share.link_wake = std::min(m.held, std::max<Time>(0, at - m.at));
  link.share.transfer = at - m.at - link.share.link_wake;
  link.references = 1;
  PathHead& head = heads_[rank];
  release(head.link);
  head = {number, at, 0, 0};
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

/// Sums up the beginning that all paths share, if there is one.
void CriticalPath::fold() {
  std::size_t without = 0;  // paths that begin with their rank itself
  for (const PathHead& head : heads_) without += head.link == kNone ? 1 : 0;
  if (without != 0) return;
  std::vector<std::uint32_t> chain;
  for (std::uint32_t link = heads_[0].link; link != kNone; link = links_[link].parent) chain.push_back(link);
  // From its beginning on, a link with one reference that is not a head's is passed by all, if nothing else begins anew.
  std::size_t roots = 0;
  for (const Link& link : links_) roots += link.references != 0 && link.parent == kNone ? 1 : 0;
  for (const PathMessage& m : messages_) roots += m.rank != kNone && m.head.link == kNone ? 1 : 0;
  if (roots != 1) return;
  while (chain.size() > 1 && links_[chain.back()].references == 1) {
    const std::uint32_t first = chain.back();
    chain.pop_back();
    add(links_[first]);
    links_[first].references = 0;
    links_[chain.back()].parent = kNone;
    free_.push_back(first);
    --live_;
  }
}

CriticalPathResult CriticalPath::result(std::uint32_t rank, Time end) {
  const PathShare last = own(heads_[rank], end);
  totals_[rank].computing += last.computing;
  totals_[rank].in_calls += last.in_calls;
  totals_[rank].core_wake += last.core_wake;
  for (std::uint32_t link = heads_[rank].link; link != kNone; link = links_[link].parent) add(links_[link]);
  return {totals_, on_path_};
}

}  // namespace fallow::sim
