#include "predict/node_link.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace fallow::predict {

NodeLink::NodeLink(std::size_t ranks, const ReactTimes& react) : react_(react), idle_until_(ranks), in_call_(ranks) {}

Nanoseconds NodeLink::on_enter(Nanoseconds now) noexcept {
  if (in_call_ == 0) {
    const Nanoseconds oracle = oracle_rest(now - quiet_since_, react_);
    if (oracle.value > 0) oracle_low_ += oracle - react_.down;
  }
  ++in_call_;
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
  idle_until_[rank] = rest_for == kForGood ? kForGood : rest_for.value > 0 ? now + rest_for : Nanoseconds(0);
  if (in_call_ > 0) return;
  quiet_since_ = now;
  Nanoseconds first = kForGood;
  for (const Nanoseconds until : idle_until_) first = std::min(first, until);
  if (first == kForGood) return;           // nobody comes any more
  if (first <= now + react_.down) return;  // one of them is not predicted idle for long enough
  rest_from_ = now;
  rest_until_ = first;
  ++rests_;
}

namespace {

struct Rank {
  Event event;         // the one that begins or ends next, as recorded
  bool started = false, in_call = false;
  Nanoseconds shift;   // its delays so far
  Nanoseconds entered;
};

/// What happens next: the earliest, among equals of the lowest rank.
struct Next {
  Nanoseconds when;
  std::size_t rank;
  bool operator>(const Next& o) const noexcept { return when != o.when ? when > o.when : rank > o.rank; }
};

class Streams final : public RankEvents {
 public:
  explicit Streams(std::span<const std::span<const Event>> streams) : streams_(streams), next_(streams.size()) {}
  bool next(std::size_t rank, Event& event) override {
    if (next_[rank] >= streams_[rank].size()) return false;
    event = streams_[rank][next_[rank]++];
    return true;
  }

 private:
  std::span<const std::span<const Event>> streams_;
  std::vector<std::size_t> next_;
};

class NodeRun {
 public:
  NodeRun(RankEvents& events, std::span<Predictor* const> predictors, const EvaluateParams& params)
      : events_(events), predictors_(predictors), params_(params), link_(predictors.size(), params.react),
        ranks_(predictors.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!advance(r)) link_.on_exit(r, Nanoseconds(0), NodeLink::kForGood);
    }
    if (!queue_.empty()) first_ = queue_.top().when;
  }

  NodeEvaluation operator()() {
    while (!queue_.empty()) {
      const Next now = queue_.top();
      queue_.pop();
      if (ranks_[now.rank].in_call) {
        exit(now);
      } else {
        enter(now);
      }
    }
    sum_.low = link_.low();
    sum_.oracle_low = link_.oracle_low();
    sum_.delay = link_.delay();
    sum_.rests = link_.rests();
    return sum_;
  }

 private:
  /// False at the rank's end.
  bool advance(std::size_t r) {
    if (!events_.next(r, ranks_[r].event)) return false;
    queue_.push({ranks_[r].event.enter + ranks_[r].shift, r});
    return true;
  }

  void enter(const Next& now) {
    Rank& rank = ranks_[now.rank];
    Event event = rank.event;
    event.enter = rank.entered = now.when;
    predictors_[now.rank]->on_enter(event);
    // What is before a rank's first call is no gap: nobody, not even the oracle, is asked to predict it.
    if (!rank.started) link_.on_exit(now.rank, now.when, Nanoseconds(0));
    rank.started = true;
    const Nanoseconds wait = link_.on_enter(now.when);
    if (params_.delays_shift) rank.shift += wait;
    rank.in_call = true;
    sum_.delay_worst_rank = std::max(sum_.delay_worst_rank, rank.shift);
    queue_.push({rank.event.exit + rank.shift, now.rank});
  }

  void exit(const Next& now) {
    Rank& rank = ranks_[now.rank];
    Event event = rank.event;
    event.enter = rank.entered;
    event.exit = now.when;
    const Nanoseconds rest_for = predictors_[now.rank]->on_exit(event).rest_for;
    rank.in_call = false;
    sum_.run = std::max(sum_.run, now.when - first_);
    const bool more = advance(now.rank);
    link_.on_exit(now.rank, now.when, more ? rest_for : NodeLink::kForGood);
  }

  RankEvents& events_;
  std::span<Predictor* const> predictors_;
  EvaluateParams params_;
  NodeLink link_;
  std::vector<Rank> ranks_;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue_;
  Nanoseconds first_;
  NodeEvaluation sum_;
};

}  // namespace

NodeEvaluation evaluate_node(RankEvents& events, std::span<Predictor* const> predictors, const EvaluateParams& params) {
  return NodeRun(events, predictors, params)();
}

NodeEvaluation evaluate_node(std::span<const std::span<const Event>> streams, std::span<Predictor* const> predictors,
                             const EvaluateParams& params) {
  Streams events(streams);
  return evaluate_node(events, predictors, params);
}

}  // namespace fallow::predict
