#include "trace/outcomes.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace fallow::trace {
namespace {

bool starts(Op op) noexcept { return op == Op::start || op == Op::startall; }
/// Sends and receives whose data move from here on, with a request of their own.
bool posts(Op op) noexcept { return has(op, kOpCreates) && has(op, kOpStarts) && has(op, kOpSends | kOpReceives) && !has(op, kOpCollective); }

/// What a send or receive would have been called with, had the program known.
void settle(CallEvent& event, std::uint32_t outcome, std::int32_t tag) noexcept {
  const bool both = has(event.op, kOpSends) && has(event.op, kOpReceives);
  if (outcome == kOutcomeCancelled) (both ? event.recv_peer : event.peer) = kNullPeer;
  if (outcome < kOutcomeFrom || !has(event.op, kOpReceives)) return;
  (both ? event.recv_peer : event.peer) = static_cast<std::int32_t>(outcome - kOutcomeFrom);
  (both ? event.recv_tag : event.tag) = std::max(tag, 0);
}

}  // namespace

/// Reads a rank and links what is said at the end of each request with its beginning.
class Outcomes::Finder {
 public:
  explicit Finder(std::vector<Change>& changes) : changes_(changes) {}

  void read(EventSource& source, std::uint32_t rank) {
    CallEvent e;
    source.rewind(rank);
    for (std::uint64_t n = 0; source.next(rank, e); ++n) take(e, n);
    source.rewind(rank);
    std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return std::pair(a.event, a.slot) < std::pair(b.event, b.slot); });
    changes_.shrink_to_fit();
  }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  struct Open {
    std::uint64_t event = kNever, cancelled = kNever;
    std::uint32_t slot = 0;
  };

  void take(const CallEvent& e, std::uint64_t n) {
    if (posts(e.op)) {
      if (!e.requests.empty()) open_[e.requests[0]] = {n, kNever, 0};
    } else if (starts(e.op)) {
      for (std::uint32_t i = 0; i < e.requests.size(); ++i) open_[e.requests[i]] = {n, kNever, i};
    } else if (e.op == Op::cancel) {
      for (const std::uint32_t number : e.requests) open_[number].cancelled = n;
    } else if (tells_outcomes(e)) {
      const auto ended = ended_in(e);
      for (std::size_t i = 0; i < ended.size(); ++i) close(ended[i], e.counts[i], e.recv_counts[i]);
    }
  }

  void close(std::uint32_t number, std::uint64_t outcome, std::uint64_t tag) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto found = open_.find(number);
    if (found == open_.end() || outcome == kOutcomeUnsaid || outcome > kMost) return;
    const Open begun = found->second;
    open_.erase(found);
    if (begun.event == kNever) return;
    const auto said = static_cast<std::uint32_t>(outcome);
    changes_.push_back({begun.event, begun.slot, said, tag <= kMost ? static_cast<std::int32_t>(tag) : kNoTag});
    if (begun.cancelled != kNever && outcome != kOutcomeCancelled) changes_.push_back({begun.cancelled, 0, said, kNoTag});
  }

  std::vector<Change>& changes_;
  std::unordered_map<std::uint32_t, Open> open_;
};

Outcomes::Outcomes(EventSource& source) : source_(source), ranks_(source.info().ranks.size()) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (source_.has_outcomes(r)) Finder(ranks_[r].changes).read(source_, r);
  }
}

Outcomes::Outcomes(std::unique_ptr<EventSource> source) : Outcomes(*source) { owned_ = std::move(source); }

/// The changes of one event; its lists stay valid until the next one.
void Outcomes::change(Rank& rank, CallEvent& event) const {
  const std::uint64_t number = rank.changes[rank.first].event;
  const auto each = [&](auto&& use) {
    for (std::size_t i = rank.first; i < rank.changes.size() && rank.changes[i].event == number; ++i) use(rank.changes[i]);
  };
  if (event.op == Op::cancel) {
    event.requests = {};
  } else if (starts(event.op)) {
    rank.outcomes.assign(event.requests.size(), kOutcomeUnsaid);
    rank.tags.assign(event.requests.size(), 0);
    each([&](const Change& c) {
      rank.outcomes[c.slot] = c.outcome;
      rank.tags[c.slot] = static_cast<std::uint64_t>(std::max(c.tag, 0));
    });
    event.counts = rank.outcomes;
    event.recv_counts = rank.tags;
  } else {
    each([&](const Change& c) { settle(event, c.outcome, c.tag); });
  }
}

bool Outcomes::next(std::uint32_t rank, CallEvent& event) {
  if (!source_.next(rank, event)) return false;
  Rank& r = ranks_[rank];
  const std::uint64_t number = r.event++;
  if (r.next == r.changes.size() || r.changes[r.next].event != number) return true;
  r.first = r.next;
  while (r.next < r.changes.size() && r.changes[r.next].event == number) ++r.next;
  change(r, event);
  return true;
}

void Outcomes::again(std::uint32_t rank, CallEvent& event) {
  source_.again(rank, event);
  Rank& r = ranks_[rank];
  if (r.next != 0 && r.changes[r.next - 1].event + 1 == r.event) change(r, event);
}

void Outcomes::rewind(std::uint32_t rank) {
  source_.rewind(rank);
  Rank& r = ranks_[rank];
  r.next = r.first = 0;
  r.event = 0;
}

std::unique_ptr<EventSource> with_outcomes(std::unique_ptr<EventSource> source) {
  const auto ranks = static_cast<std::uint32_t>(source->info().ranks.size());
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (source->has_outcomes(r)) return std::make_unique<Outcomes>(std::move(source));
  }
  return source;
}

}  // namespace fallow::trace
