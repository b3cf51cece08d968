// What a replay shows beside its sums, for those who ask: what ranks, cores and links did over time, how long links
// idled, the critical path. The engine tells it what happens if there is one; it changes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/critical_path.hpp"
#include "sim/link_rest.hpp"
#include "sim/time.hpp"
#include "trace/op.hpp"

namespace fallow::sim {

/// A call of a rank. What it waited: first `waited` awake, then `slept`, at its end.
struct CallSpan {
  Time begin = 0, end = 0, waited = 0, slept = 0;
  std::uint32_t rank = 0;
  trace::Op op = trace::Op::other;
};

enum class LinkState : std::uint8_t { sending, low, deep, changing };  ///< else: on, and idle

struct LinkSpan {
  Time begin = 0, end = 0;
  std::uint32_t link = 0;
  LinkState state = LinkState::sending;
};

struct TimelineOptions {
  Time from = 0, to = kNever;
  std::uint32_t ranks = 64;        ///< the first so many, and the links of their nodes
  std::size_t most = 200'000;      ///< spans of calls, and of links; where one is reached, the timeline ends
};

/// How long links idled between messages: by powers of two of nanoseconds, bin i from 2^i.
struct IdleHistogram {
  static constexpr std::size_t kBins = 44;
  std::array<std::uint64_t, kBins> count{};
  std::array<TimeSum, kBins> time{};
  /// The publication's classes (Dickov, Table 5.1): below 20 us, from there to below 200 us, longer.
  std::array<std::uint64_t, 3> class_count{};
  std::array<TimeSum, 3> class_time{};

  void add(Time gap) noexcept {
    const auto ns = static_cast<std::uint64_t>(std::max<Time>(gap / kNs, 1));
    const std::size_t bin = std::min<std::size_t>(kBins - 1, static_cast<std::size_t>(std::bit_width(ns)) - 1);
    const std::size_t c = gap < 20 * kUs ? 0 : gap < 200 * kUs ? 1 : 2;
    ++count[bin];
    time[bin] += gap;
    ++class_count[c];
    class_time[c] += gap;
  }
};

class Recorder {
 public:
  /// Of `edge_links` links of cards, those of the first `nodes` nodes are in use.
  Recorder(std::uint32_t ranks, std::uint32_t ranks_per_node, const TimelineOptions* timeline, bool path)
      : used_((ranks + ranks_per_node - 1) / ranks_per_node), expected_(ranks), caught_up_(ranks, 0) {
    if (timeline != nullptr) options_ = *timeline, draws_ = true;
    if (path) path_ = std::make_unique<CriticalPath>(ranks);
    shown_ = (std::min(options_.ranks, ranks) + ranks_per_node - 1) / ranks_per_node;
  }

  CriticalPath* path() noexcept { return path_.get(); }
  bool draws() const noexcept { return draws_; }

  /// A rank's predictor had expected the call that it has left.
  void expected(std::uint32_t rank) { ++expected_[rank]; }
  const std::vector<std::uint64_t>& expected() const noexcept { return expected_; }

  /// A rank has waited awake so long for what it knew the time of, in the call that it is in: `waited` of call() comes on top.
  void caught_up(std::uint32_t rank, Time waited) { caught_up_[rank] += waited; }

  void call(std::uint32_t rank, trace::Op op, Time begin, Time end, Time waited, Time slept) {
    waited += std::exchange(caught_up_[rank], 0);
    if (!draws_ || rank >= options_.ranks || !wanted(begin, end)) return;
    if (calls_.size() >= options_.most) return cut(begin);
    calls_.push_back({begin, end, waited, slept, rank, op});
  }

  /// `nodes`: of the topology; what is numbered from 2 * nodes on lies between switches.
  void sends(std::uint32_t link, std::uint32_t nodes, Time begin, Time end) {
    if (!draws_ || !shown(link, nodes) || !wanted(begin, end)) return;
    if (!links_.empty() && links_.back().link == link && links_.back().state == LinkState::sending && links_.back().end == begin) {
      links_.back().end = end;
      return;
    }
    span(link, LinkState::sending, begin, end);
  }

  /// The link, idle since `from`, takes no message before the end of a rest.
  void holds(std::uint32_t link, Time from) {
    if (idle_since_.size() <= link) idle_since_.resize(link + 1, kNever);
    idle_since_[link] = std::min(idle_since_[link], from);
  }
  /// A message has come to the link at `at`, or the run has ended; it idled since `from`, or since it was first held. `nodes`: as above.
  void idled(std::uint32_t link, std::uint32_t nodes, Time from, Time at) {
    if (link < idle_since_.size()) from = std::min(from, std::exchange(idle_since_[link], kNever));
    if (at > from && in_use(link, nodes)) (link < 2 * nodes ? edge_idle_ : upper_idle_).add(at - from);
  }
  /// It rested in a gap that began at `from`, as `r` says.
  void rested(std::uint32_t link, std::uint32_t nodes, Time from, const RestResult& r, const LinkPolicy& policy,
              const RestPlan& plan, const LinkSpec& spec);

  /// The run is over: what links would have done beyond its end is not drawn.
  void finish(Time end);

  const std::vector<CallSpan>& calls() const noexcept { return calls_; }
  const std::vector<LinkSpan>& links() const noexcept { return links_; }
  const IdleHistogram& edge_idle() const noexcept { return edge_idle_; }
  const IdleHistogram& upper_idle() const noexcept { return upper_idle_; }
  Time complete_until() const noexcept { return cut_; }  ///< kNever: nothing was left out

 private:
  bool wanted(Time begin, Time end) const noexcept { return begin < std::min(options_.to, cut_) && end > options_.from; }
  bool in_use(std::uint32_t link, std::uint32_t nodes) const noexcept {
    return link >= 2 * nodes || (link < nodes ? link : link - nodes) < used_;
  }
  bool shown(std::uint32_t link, std::uint32_t nodes) const noexcept {
    return link < 2 * nodes && (link < nodes ? link : link - nodes) < shown_;
  }
  void cut(Time at) noexcept { cut_ = std::min(cut_, at); }
  void span(std::uint32_t link, LinkState state, Time begin, Time end) {
    if (end <= begin) return;
    if (links_.size() >= options_.most) return cut(begin);
    links_.push_back({begin, end, link, state});
  }

  TimelineOptions options_;
  bool draws_ = false;
  std::uint32_t used_, shown_ = 0;
  std::vector<std::uint64_t> expected_;
  std::vector<Time> caught_up_;  // of each rank, since its last call()
  Time cut_ = kNever;
  std::vector<CallSpan> calls_;
  std::vector<LinkSpan> links_;
  IdleHistogram edge_idle_, upper_idle_;
  std::vector<Time> idle_since_;  ///< of links that rests hold; kNever: of the others
  std::unique_ptr<CriticalPath> path_;
};

}  // namespace fallow::sim
