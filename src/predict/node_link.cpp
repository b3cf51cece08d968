#include "predict/node_link.hpp"

#include <algorithm>
#include <limits>

namespace fallow::predict {

NodeLink::NodeLink(std::size_t ranks, const ReactTimes& react) : react_(react), idle_until_(ranks), in_call_(ranks) {}

Nanoseconds NodeLink::on_enter(std::size_t rank, Nanoseconds now) noexcept {
  if (in_call_ == 0) {
    const Nanoseconds oracle = oracle_rest(now - quiet_since_, react_);
    if (oracle.value > 0) oracle_low_ += oracle - react_.down;
  }
  ++in_call_;
  idle_until_[rank] = Nanoseconds(0);
  if (rest_until_.value > 0) {  // the first to come: wake, if the timer has not done so
    const RestOutcome outcome = rest_outcome(rest_until_ - rest_from_, now - rest_from_, react_);
    low_ += outcome.low;
    full_at_ = now + outcome.delay;
    rest_until_ = Nanoseconds(0);
  }
  const Nanoseconds wait = std::max(Nanoseconds(0), full_at_ - now);
  delay_ += wait;
  return wait;
}

void NodeLink::on_exit(std::size_t rank, Nanoseconds now, Nanoseconds rest_for) noexcept {
  --in_call_;
  idle_until_[rank] = rest_for.value > 0 ? now + rest_for : Nanoseconds(0);
  if (in_call_ > 0) return;
  quiet_since_ = now;
  Nanoseconds first(std::numeric_limits<std::int64_t>::max());
  for (const Nanoseconds until : idle_until_) first = std::min(first, until);
  if (first <= now + react_.down) return;  // one of them is not predicted idle for long enough
  rest_from_ = now;
  rest_until_ = first;
  ++rests_;
}

namespace {

struct Rank {
  std::size_t next = 0;
  bool in_call = false;
  Nanoseconds shift;  // its delays so far
  Nanoseconds entered;
};

Nanoseconds next_time(const Rank& rank, std::span<const Event> stream) noexcept {
  if (rank.next >= stream.size()) return Nanoseconds(std::numeric_limits<std::int64_t>::max());
  const Event& event = stream[rank.next];
  return (rank.in_call ? event.exit : event.enter) + rank.shift;
}

}  // namespace

NodeEvaluation evaluate_node(std::span<const std::span<const Event>> streams, std::span<Predictor* const> predictors,
                             const EvaluateParams& params) {
  NodeLink link(streams.size(), params.react);
  std::vector<Rank> ranks(streams.size());
  NodeEvaluation sum;
  for (std::size_t r = 0; r < streams.size(); ++r)  // before its first call a rank is not predicted
    link.on_exit(r, Nanoseconds(0), Nanoseconds(0));
  for (;;) {
    std::size_t who = 0;
    Nanoseconds now(std::numeric_limits<std::int64_t>::max());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const Nanoseconds t = next_time(ranks[r], streams[r]);
      if (t < now) {
        now = t;
        who = r;
      }
    }
    if (now.value == std::numeric_limits<std::int64_t>::max()) break;
    Rank& rank = ranks[who];
    Event event = streams[who][rank.next];
    if (!rank.in_call) {
      event.enter += rank.shift;
      rank.entered = event.enter;
      predictors[who]->on_enter(event);
      const Nanoseconds wait = link.on_enter(who, now);
      if (params.delays_shift) rank.shift += wait;
      rank.in_call = true;
      sum.delay_worst_rank = std::max(sum.delay_worst_rank, rank.shift);
    } else {
      event.enter = rank.entered;
      event.exit = now;
      link.on_exit(who, now, predictors[who]->on_exit(event).rest_for);
      rank.in_call = false;
      ++rank.next;
      sum.run = std::max(sum.run, now);
    }
  }
  sum.low = link.low();
  sum.oracle_low = link.oracle_low();
  sum.delay = link.delay();
  sum.rests = link.rests();
  return sum;
}

}  // namespace fallow::predict
