#include "sim/critical_path.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

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
  mark();
  fold();
  free_.clear();
  for (std::size_t link = links_.size(); link-- > 0;) {  // the first is taken first
    if (uses_[link] == 0) free_.push_back(static_cast<std::uint32_t>(link));
  }
  if (2 * free_.size() < links_.size()) room_ += links_.size() - free_.size();
  room_ = std::max<std::size_t>(4096, room_);
}

void CriticalPath::mark() {
  uses_.assign(links_.size(), 0);
  users_.resize(links_.size());
  const auto use = [this](std::uint32_t link) {
    for (std::uint32_t user = kNone; link != kNone; user = std::exchange(link, parents_[link])) {
      users_[link] = user;
      if (uses_[link]++ != 0) return;
    }
  };
  for (const PathHead& head : heads_) use(head.link);
  for (const PathMessage& m : messages_) {
    if (m.rank != kNone) use(m.head.link);
  }
  for (const std::uint32_t link : received_) use(link);
}

/// Sums up what all paths share that begin with the same link: that one, as long as nothing but one other link uses it.
void CriticalPath::fold() {
  for (auto b = beginnings_.begin(); b != beginnings_.end();) {
    const bool used = uses_[b->first] != 0;
    if (!used) shares_ -= b->second.ranks.size();
    b = used ? std::next(b) : beginnings_.erase(b);
  }
  const auto passed = [this](std::uint32_t link) { return uses_[link] == 1 && users_[link] != kNone; };
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    if (uses_[link] == 0 || parents_[link] != kNone || !passed(link)) continue;
    auto node = beginnings_.extract(link);
    Beginning beginning = node.empty() ? Beginning{} : std::move(node.mapped());
    std::uint32_t first = link;
    for (; passed(first); first = users_[first]) {
      add(beginning, links_[first]);
      uses_[first] = 0;
    }
    parents_[first] = kNone;
    beginnings_.emplace(first, std::move(beginning));
    if (shares_ > kMostShares) forget_ranks();
  }
}

void CriticalPath::add(Beginning& b, const Link& link) {
  const PathShare& s = link.share;
  ++b.messages;
  if (!splits_) {
    b.unsplit += s;
    return;
  }
  const std::size_t before = b.ranks.size();
  b.ranks[link.from] += {s.computing, s.in_calls, 0, 0, s.core_wake};
  b.ranks[link.to] += {0, 0, s.transfer, s.link_wake, 0};
  shares_ += b.ranks.size() - before;
}

/// Where hundreds of ranks have paths with nothing in common that go through hundreds of others, all these would take too much memory.
void CriticalPath::forget_ranks() noexcept {
  splits_ = false;
  for (auto& [link, beginning] : beginnings_) {
    for (const auto& [rank, share] : std::exchange(beginning.ranks, {})) beginning.unsplit += share;
  }
  shares_ = 0;
}

CriticalPathResult CriticalPath::result(std::uint32_t rank, Time end) const {
  CriticalPathResult found{std::vector<PathShare>(heads_.size()), {}, 0};
  found.ranks[rank] += own(heads_[rank], end);
  std::uint32_t first = kNone;
  for (std::uint32_t link = heads_[rank].link; link != kNone; link = parents_[link]) {
    const PathShare& s = links_[link].share;
    found.ranks[links_[link].from] += {s.computing, s.in_calls, 0, 0, s.core_wake};
    found.ranks[links_[link].to] += {0, 0, s.transfer, s.link_wake, 0};
    ++found.messages;
    first = link;
  }
  const auto b = beginnings_.find(first);
  if (b == beginnings_.end()) return found;
  for (const auto& [of, share] : b->second.ranks) found.ranks[of] += share;
  found.unsplit = b->second.unsplit;
  found.messages += b->second.messages;
  return found;
}

}  // namespace fallow::sim
