// Switches and network cards beyond their ports: what they did between messages, by the rules of the links. Each
// passes messages through as it comes to them; one that is at rest or waking holds them until it is back.
#pragma once

#include <span>
#include <vector>

#include "sim/link_rest.hpp"

namespace fallow::sim {

/// Sums over switches or cards.
struct PartTotals {
  std::uint64_t parts = 0, rests = 0, late = 0;
  TimeSum low = 0, deep = 0, delay = 0;  ///< each part counts as often as it has ports (a card has one)
};

class Parts {
 public:
  Parts() = default;
  Parts(LinkPolicy policy, const RestStates& states, Time react, std::uint32_t parts)
      : policy_(policy), states_(states), react_(react), parts_(parts) {}

  bool active() const noexcept { return !parts_.empty(); }

  /// A message comes to part `i` at `at`; returns when it goes through. `until`: when its tail will have passed.
  Time pass(std::uint32_t i, Time at) noexcept {
    Part& p = parts_[i];
    if (at <= p.free) return at < p.awake ? late(p, at, p.awake) : at;
    const RestResult r = end_of_gap(policy_, p.plan, states_, p.free, at);
    p.free = r.ready;
    if (r.rests == 0) return r.ready;
    count(p, r);
    p.plan = RestPlan{};
    if (r.ready <= at) return at;
    p.awake = r.ready;
    return late(p, at, r.ready);
  }
  /// The tail of what it last held on the way into its node.
  Time& let_in(std::uint32_t i) noexcept { return parts_[i].let_in; }
  /// Until then messages come to it by events.
  Time& events_until(std::uint32_t i) noexcept { return parts_[i].events_until; }
  void busy(std::uint32_t i, Time until) noexcept { parts_[i].free = std::max(parts_[i].free, until); }

  /// All that is served by part `i` is silent from plan.begin until messages come that wake links at plan.wake.
  void plan(std::uint32_t i, RestPlan silence) noexcept {
    if (policy_.rule != LinkRule::planned) return;
    Part& p = parts_[i];
    const Time began = std::max(p.plan.begin, p.free);  // what has not begun is planned anew
    if (p.plan.wake > began && silence.begin > began) {
      if (silence.begin < p.plan.wake) {
        const Time up = p.plan.deep ? states_.deep.up : states_.rest.up;
        p.plan.wake = silence.wake >= kNever ? kNever : std::max(silence.begin, silence.wake + react_ - up);  // not before it is told
        return;
      }
      const RestResult r = end_of_gap(policy_, p.plan, states_, p.free, silence.begin);
      count(p, r);
      const RestState& state = p.plan.deep ? states_.deep : states_.rest;
      if (r.rests != 0) p.awake = std::max(p.plan.wake, std::max(p.plan.begin, p.free) + state.down) + state.up;
      p.free = std::max(p.free, r.ready);
    }
    p.plan = plan_for(policy_, states_, silence, react_);
  }

  /// What is served by part `i` is about to send: it wakes at `at`, if a plan has it rest.
  void activate(std::uint32_t i, Time at) noexcept { parts_[i].plan.wake = std::min(parts_[i].plan.wake, at); }

  /// Of the first parts, as many as `ports` has: the ports of each, by which its times count. At `end` all is over.
  PartTotals totals(std::span<const std::uint32_t> ports, Time end) const noexcept {
    PartTotals t;
    for (std::size_t i = 0; i < ports.size() && i < parts_.size(); ++i) {
      const Part& p = parts_[i];
      const RestResult open = end > p.free ? end_of_gap(policy_, p.plan, states_, p.free, end, true) : RestResult{};
      t.parts += ports[i];
      t.low += TimeSum{p.low + open.low} * ports[i];
      t.deep += TimeSum{p.deep + open.deep} * ports[i];
      t.rests += p.rests + open.rests;
      t.late += p.late;
      t.delay += p.delay;
    }
    return t;
  }
  std::size_t memory_bytes() const noexcept { return parts_.capacity() * sizeof(Part); }

 private:
  struct Part {
    Time free = 0;  // when the last tail has passed
    Time awake = 0; // when it is back from its last rest
    Time let_in = 0;
    Time events_until = -1;
    Time low = 0, deep = 0, delay = 0;
    RestPlan plan;
    std::uint32_t rests = 0, late = 0;
  };
  static void count(Part& p, const RestResult& r) noexcept {
    p.low += r.low;
    p.deep += r.deep;
    p.rests += r.rests;
  }
  /// A message that came at `at` goes through at `ready`.
  static Time late(Part& p, Time at, Time ready) noexcept {
    ++p.late;
    p.delay += ready - at;
    return ready;
  }

  LinkPolicy policy_;
  RestStates states_;
  Time react_ = 0;
  std::vector<Part> parts_;
};

}  // namespace fallow::sim
