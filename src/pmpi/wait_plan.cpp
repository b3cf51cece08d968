// What is known of a wait when it is to be decided how long to sleep: sleep_plan.hpp decides.

#include "pmpi/sleep_plan.hpp"
#include "pmpi/wait_parts.hpp"

namespace fallow::pmpi {
namespace {

using predict::WaitPlan;

/// The wait of a thread, as next_step() asks for it.
struct AskedWait {
  Thread& t;
  std::uint64_t now;
  Runtime& rt = runtime();

  /// All have come to a collective call with much data: all of them are needed until these are there.
  bool moves_data() const noexcept {
    WaitState& w = t.wait;
    if (w.moves_until == 0) {
      const double ns = data_move_for_ns(t);
      if (ns > 0) w.moves_until = now + rt.clock.to_ticks(ns);
    }
    return now < w.moves_until;
  }
  bool does_not_weigh() const noexcept { return rt.options.mode == WaitMode::sleep || rt.oversubscribed; }
  /// All have come to the call lately: it is about to end, and who came last has woken those who slept.
  bool is_about_to_end() const noexcept {
    WaitState& w = t.wait;
    if (w.all_came == 0 && all_have_come(t)) w.all_came = now;
    return w.all_came != 0 && rt.clock.to_ns(now - w.all_came) < kGiveWayNs;
  }
  bool needs_target_unseen() const noexcept { return pmpi::needs_target_unseen(t); }
  bool is_contended() const noexcept { return rt.whole_job_here && rt.contention.contended(rt.clock.to_ns(now)); }
  bool is_limited() const noexcept { return rt.whole_job_here && rt.contention.limited(rt.clock.to_ns(now)); }
  bool has_rivals() const noexcept { return now < rt.node.page().rivals_until.load(std::memory_order_relaxed); }
  bool is_long_by_itself() const noexcept {
    const bool moved = t.wait.moves_until != 0;  // it may last for that, which takes both ranks
    return !moved && pmpi::is_long_by_itself(rt.clock.to_ns(now - t.enter), rt.waits.summary(known_key(t)));
  }
  /// Others wait for it in the middle of the call.
  bool is_needed_with_debts() const noexcept { return t.wait.held_up != 0 && rt.node.page().budget.in_debt(); }
  bool was_held() const noexcept { return t.wait.held; }
  bool holding_pays() const noexcept { return rt.holding.pays(); }
  bool has_just_woken() const noexcept { return t.woke_at != 0 && now < answered_by(t.woke_at, rt.costs, rt.clock.rate()); }
  void earn() const noexcept { rt.node.page().budget.earn(now); }
  bool may_be_needed_unseen() const noexcept {
    return pmpi::may_be_needed_unseen(rt.windows.load(std::memory_order_relaxed), surroundings(), rt.polls_tell || rt.sockets.trusted());
  }
  /// One wait in many is, by lot.
  bool is_compared() const noexcept {
    WaitState& w = t.wait;
    if (!may_be_compared(surroundings(), rt.clock.to_ns(now - t.enter))) return false;
    if (w.phase == WaitPhase::none) w.compared = rt.toll.compares(key_of(t));
    return w.compared;
  }
};

WaitPlan plan_growing(Thread& t, std::uint64_t now) noexcept {
  Runtime& rt = runtime();
  const auto usual_ns = [&] { return static_cast<double>(rt.waits.summary(known_key(t)).p90.value); };
  Surroundings where = surroundings();
  where.limited = rt.contention.limited(rt.clock.to_ns(now));
  const GrowingPlan grown = growing_plan(t.wait, {t.enter, now, has_many_steps(t)}, where, rt.clock.rate(), usual_ns);
  t.wait.yields = grown.yields;
  return grown.plan;
}

WaitPlan weigh(const Thread& t, std::uint64_t now) noexcept {
  const Runtime& rt = runtime();
  const Budget& budget = runtime().node.page().budget;
  const double lasting = rt.whole_job_here ? rt.late.lasting_share() : rt.toll.lasting_share(key_of(t));
  const double held_up = held_up_by(rt.node.attached());
  const Weighed weighed{.price = price_of_delay(budget.price(somebody_sleeps()), lasting, held_up),
                        .held_up = held_up,
                        .after_sleep_ns = after_sleep_ns(t),
                        .longest_ns = rt.clock.to_ns(static_cast<std::uint64_t>(budget.bearable())),
                        .end_wakes = comes_from_here(t) || rt.sockets.trusted(),
                        .slept = t.wait.sleeps != 0,
                        .many_steps = has_many_steps(t)};
  return rt.waits.plan(known_key(t), to_nanoseconds(rt.clock.to_ns(now - t.enter)), costs_of_sleep(rt.costs, weighed), weighed.price);
}

}  // namespace

WaitPlan make_plan(Thread& t, std::uint64_t now) noexcept {
  const Runtime& rt = runtime();
  const Step step = next_step(AskedWait{t, now});
  t.wait.yields = step == Step::give_way;
  t.wait.held = t.wait.held || step == Step::hold;
  switch (step) {
    case Step::grow: return plan_growing(t, now);
    case Step::hold: return {to_nanoseconds(0), to_nanoseconds(Holding::kHoldNs)};
    case Step::await_answer: return {to_nanoseconds(0), to_nanoseconds(rt.clock.to_ns(answered_by(t.woke_at, rt.costs, rt.clock.rate()) - now))};
    case Step::weigh: return weigh(t, now);
    case Step::stay_awake:
    case Step::give_way: break;
  }
  return {to_nanoseconds(0), to_nanoseconds(kGraceNs)};
}

}  // namespace fallow::pmpi
