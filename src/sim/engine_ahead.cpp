// What the next events will touch is brought nearer: with many ranks it has left the cache since they last ran. Some events at
// a time, and kind by kind, as which kind comes next is hard to foresee for the processor.
#include "sim/engine.hpp"

namespace fallow::sim {
namespace {

/// By kind of event; comparisons would become branches.
constexpr std::array<std::uint8_t, 8> only(EventKind kind) {
  std::array<std::uint8_t, 8> is{};
  is[static_cast<std::size_t>(kind)] = 1;
  return is;
}
constexpr std::array<std::uint8_t, 8> kPass = only(EventKind::pass), kDeliver = only(EventKind::deliver);

constexpr std::uint32_t kFewRanks = 2048;  ///< what so many keep stays near without being asked for

}  // namespace

/// The three stages of what is brought: each needs what the one before it has, eight events earlier.
void Engine::fetch_ahead() noexcept {
  if (ranks_.last() - ranks_.first() < kFewRanks) {
    until_fetch_ = ~0u;
    return;
  }
  until_fetch_ = Upcoming::kMost;
  newest_ = (newest_ + 1) % upcoming_.size();
  Upcoming& first = upcoming_[newest_];
  const Upcoming& third = upcoming_[(newest_ + 1) % upcoming_.size()];  // the oldest
  const Upcoming& second = upcoming_[(newest_ + 2) % upcoming_.size()];
  sort_out(first);
  for (std::uint32_t i = 0; i < first.passes; ++i) network_.prefetch_held(first.held[i]);
  for (std::uint32_t i = 0; i < first.deliveries; ++i) ranks_.prefetch(first.receivers[i]);
  for (std::uint32_t i = 0; i < first.others; ++i) fetch_first(first.other[i]);
  for (std::uint32_t i = 0; i < second.passes; ++i) network_.prefetch_links(second.held[i], second.targets[i]);
  for (std::uint32_t i = 0; i < second.deliveries; ++i) fetch_receive(second.receivers[i]);
  for (std::uint32_t i = 0; i < second.others; ++i) fetch_second(second.other[i]);
  for (std::uint32_t i = 0; i < third.deliveries; ++i) fetch_end(third.receivers[i]);
  for (std::uint32_t i = 0; i < third.others; ++i) fetch_third(third.other[i]);
}

/// The events that come as the 25th to the 32nd from now, as far as they are known.
void Engine::sort_out(Upcoming& u) const noexcept {
  const std::span<const ShortEvent> known = queue_.known();
  const std::size_t begin = std::min(known.size(), 3 * Upcoming::kMost), end = std::min(known.size(), begin + Upcoming::kMost);
  u.passes = u.deliveries = u.others = 0;
  for (const ShortEvent& e : known.subspan(begin, end - begin)) {
    const auto kind = static_cast<std::size_t>(e.kind());
    const std::uint32_t target = target_of(e.tie());
    u.held[u.passes] = e.index(), u.targets[u.passes] = target;
    u.passes += kPass[kind];
    u.receivers[u.deliveries] = target;
    u.deliveries += kDeliver[kind];
    u.other[u.others] = e;
    u.others += 1u - kPass[kind] - kDeliver[kind];
  }
}

void Engine::fetch_first(const ShortEvent& e) const noexcept {
  if (e.kind() == EventKind::access) return;
  if (e.kind() != EventKind::resume) {
    if (path_ != nullptr) [[unlikely]] path_->prefetch_message(e.index());
    return pool_.prefetch(e.index());
  }
  if (path_ != nullptr) [[unlikely]] path_->prefetch_head(e.index());
  source_.prefetch(e.index(), 0);
  ranks_.prefetch(e.index());
}

void Engine::fetch_second(const ShortEvent& e) const noexcept {
  if (e.kind() == EventKind::access) return;
  if (e.kind() == EventKind::resume) return source_.prefetch(e.index(), 1);
  if (e.kind() == EventKind::hop) return network_.prefetch_next(pool_[e.index()]);
  const std::uint32_t rank = pool_[e.index()].rank;
  if (path_ != nullptr) [[unlikely]] path_->prefetch_head(rank);
  ranks_.prefetch(rank);
}

void Engine::fetch_third(const ShortEvent& e) const noexcept {
  if (e.kind() == EventKind::resume) return fetch_start(e.index());
  if (e.kind() != EventKind::arrive) return;
  const std::uint32_t r = pool_[e.index()].rank;
  if (ranks_.holds(r)) fetch_receive(r);  // what comes back from a rank of another share is no arrival at that
}

/// What a message's arrival at a rank will look for.
void Engine::fetch_receive(std::uint32_t r) const noexcept {
  const Rank& rank = ranks_[r];
  if (rank.posted.count > 1) {
    if (rank.posted.front() != kNone) requests_.prefetch_row(rank.posted.front(), kTogether);
  } else if (rank.posted.front() != kNone) {
    requests_.prefetch(rank.posted.front());
    source_.prefetch(r, 0);
  }
  if (network_.far() && rank.unexpected.front() != kNone) pool_.prefetch(rank.unexpected.front());
}

/// What a rank that goes on will ask for.
void Engine::fetch_start(std::uint32_t r) const noexcept {
  network_.prefetch_card(r);
  const Rank& rank = ranks_[r];
  if (rank.spare != kNone) requests_.prefetch_row(rank.spare, kTogether);
  if (rank.unexpected.front() != kNone) pool_.prefetch(rank.unexpected.front());
  tables_.prefetch(rank.requests);
  source_.prefetch(r, 2);
}

/// The same for ranks that begin.
void Engine::prefetch_starting() const noexcept {
  constexpr std::uint32_t kFar = 12, kNear = 6;
  const std::uint32_t left = ranks_.last() - starting_;
  if (left > kFar) {
    ranks_.prefetch(starting_ + kFar);
    source_.prefetch(starting_ + kFar, 1);
  }
  if (left > kNear) {
    network_.prefetch_card(starting_ + kNear);
    source_.prefetch(starting_ + kNear, 2);
  }
}

/// What follows the last message that a rank waits for, or its collective.
void Engine::fetch_end(std::uint32_t r) const noexcept {
  const Rank& rank = ranks_[r];
  if (rank.posted.count != 1 || rank.posted.front() == kNone) return;
  const Request& last = requests_[rank.posted.front()];
  if ((last.flags & kOfCollective) != 0) {
    collectives_.prefetch(last.owner);
    network_.prefetch_card(r);
    source_.prefetch(r, 3);
  } else if (rank.pending == 1) {
    source_.prefetch(r, 3);
  }
}

}  // namespace fallow::sim
