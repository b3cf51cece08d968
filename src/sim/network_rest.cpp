// What links, switches and cards do between messages, and how many lanes are on.
#include <utility>

#include "sim/network.hpp"

namespace fallow::sim {
namespace {

constexpr std::uint32_t kFewRests = 4, kManyRests = 64;  // on the way of one message, and of one that waits for others in turn

}  // namespace

/// Nodes that all begin to rest at once may delay each other one after the other, before any has seen how much comes of
/// it: so they begin one by one, when the budget bears ever more rests on one message's way.
void Network::prepare_silences(std::uint32_t used) {
  const std::uint32_t least = std::clamp(used / 2, 1u, kFewRests), most = std::clamp(used / 4, least, kManyRests);
  silences_.resize(nodes());
  for (std::uint32_t n = 0; n < nodes(); ++n) silences_[n].expect_rests(least + static_cast<std::uint32_t>(mix(n) % (most - least + 1)));
}

void Network::prepare_rests(const NetworkPolicy& policy, std::uint32_t used) {
  const std::uint32_t links = topology_->links();
  if (upper_.rule == LinkRule::planned) {
    plans_.resize(links);
  } else if (edge_.rule == LinkRule::planned) {
    plans_.resize(std::size_t{2} * nodes());
  }
  silence_ = policy.silence;
  if (silence_.rests && edge_.rule == LinkRule::planned) prepare_silences(used);
  if (compress_.active()) {
    lanes_on_ = compress_.lanes_of(machine_.link.lanes);
    widths_.resize(machine_.contention == Contention::none ? edge_links_ : links);  // without contention the others carry nothing
  }
  const Time react = machine_.link.rest.up;
  if (policy.cards.rule != LinkRule::always_on) {
    cards_ = Parts(policy.cards, machine_.node.card.states, react, nodes());
  }
  if (policy.switches.rule != LinkRule::always_on) {
    origin_.resize(links);
    for (std::uint32_t l = 0; l < links; ++l) origin_[l] = topology_->origin(l);
    switches_ = Parts(policy.switches, machine_.switches.states, react, topology_->switches());
  }
  parts_rest_ = cards_.active() || switches_.active();
  packs_ = !parts_rest_ && links < 1u << Held::kNumberBits;
  defers_ = edge_.rule != LinkRule::planned && upper_.rule != LinkRule::planned && !parts_rest_ && lanes_on_ == 0;
  const auto plain = [](const LinkPolicy& p) { return p.rule == LinkRule::always_on || (p.rule == LinkRule::timer && p.deep_timer == kNever); };
  plain_ = defers_ && plain(edge_) && plain(upper_) && machine_.link.rest.up > 0 && rates_.empty();
  direct_ = machine_.contention == Contention::none && plain_;
  links_.resize(direct_ ? edge_links_ : links);
  if (edge_rests_ || upper_rests_) {
    if (!plain_) more_.resize(links);
  }
  timers_ = {edge_quiet_, upper_quiet_};
  if (upper_.rule == LinkRule::planned || policy.switches.rule == LinkRule::planned) list_served();
}

/// For each group of nodes the links between switches, and the switches, that serve it.
void Network::list_served() {
  const std::vector<std::uint32_t> sizes = topology_->group_sizes();
  std::uint32_t groups = 0;
  for (const std::uint32_t size : sizes) {
    group_offset_.push_back(groups);
    groups += nodes() / size;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;  // group, what serves it
  const auto add = [&](NodeGroup g, std::uint32_t number) { all.emplace_back(group_offset_[g.level] + g.index, number); };
  if (upper_.rule == LinkRule::planned) {
    for (std::uint32_t l = 2 * nodes(); l < links_.size(); ++l) add(topology_->group_of_link(l), l);
  }
  if (switches_.active()) {
    for (std::uint32_t s = 0; s < topology_->switches(); ++s) add(topology_->group_of_switch(s), kSwitchBit | s);
  }
  std::sort(all.begin(), all.end());
  served_from_.assign(groups + 1, 0);
  for (const auto& [group, number] : all) {
    ++served_from_[group + 1];
    served_.push_back(number);
  }
  for (std::uint32_t g = 0; g < groups; ++g) served_from_[g + 1] += served_from_[g];
}

std::span<const std::uint32_t> Network::served(NodeGroup group) const noexcept {
  if (served_from_.empty()) return {};
  const std::uint32_t g = group_offset_[group.level] + group.index;
  return {served_.data() + served_from_[g], served_from_[g + 1] - served_from_[g]};
}

/// What the message comes from when it takes `link`, a card or a switch, lets it through at the time returned.
Time Network::pass_origin(std::uint32_t link, Time at) noexcept {
  if (link < nodes()) return cards_.active() ? cards_.pass(link, at) : at;
  return switches_.active() ? switches_.pass(origin_[link], at) : at;
}

void Network::leave_origin(std::uint32_t link) noexcept {
  if (link < nodes()) {
    if (cards_.active()) cards_.busy(link, links_[link].free);
  } else if (switches_.active()) {
    switches_.busy(origin_[link], links_[link].free);
  }
}

/// The card of its receiver lets a message in whose head comes to it at `at`; returns when its tail is through.
Time Network::into_node(const Node& node, Time at, Time tail) noexcept {
  const std::uint32_t card = node_of(node.rank);
  const Time wait = held(at, cards_.pass(card, at)) - at;
  tail = is_bulk(node) ? tail + wait : held(tail + wait, detail::behind_held(cards_.let_in(card), tail, wait));
  cards_.busy(card, tail);
  return tail;
}

/// Time that the message takes on this link, `duration` with all lanes; moves `start` if it has to wait for them. A
/// message that is not compressed has the link widened where fewer lanes would cost it more than that. `idle`: it finds
/// the link idle, at rest or on its way back.
Time Network::at_width(std::uint32_t number, Time at, bool idle, Time& start, Time duration, bool squeezed) noexcept {
  Width& w = widths_[number];
  const Time react = machine_.link.rest.up;
  const Time reduced = duration * machine_.link.lanes / lanes_on_;
  if (w.since >= 0 && squeezed && idle) narrow(number, at);
  if (w.since < 0) {
    if (squeezed || reduced - duration <= react) return reduced;
    const bool woken = idle && start > at;
    widen(number, woken ? at : start);
    w.ready = woken ? start : start + react;
  }
  if (squeezed && start < w.ready) return reduced;
  start = std::max(start, w.ready);
  return duration;
}

void Network::widen(std::uint32_t number, Time at) noexcept {
  Width& w = widths_[number];
  w.since = at;
  w.ready = at + machine_.link.rest.up;
  w.rested = rested(number);
}

void Network::narrow(std::uint32_t number, Time at) noexcept {
  Width& w = widths_[number];
  w.wide += std::max<Time>(0, at - w.since - (rested(number) - w.rested));
  w.since = -1;
}

/// Ends the gap of a link with a message that reaches it at `arrival`; returns when it can carry it.
Time Network::wake(std::uint32_t number, Time arrival) noexcept {
  const Gap g = gap(number, links_[number].free, arrival);
  const RestResult r = g.both();
  if (recorder_ != nullptr) [[unlikely]] recorded_gap(number, links_[number].free, arrival, g);
  if (!woken_.empty()) [[unlikely]] woken_[number] = {arrival, r.ready};
  if (rests_in_silence(number)) wake_other(number, arrival, g);
  if (r.rests == 0) return r.ready;
  add_rest(number, r, arrival, true);
  if (number < plans_.size()) plans_[number] = RestPlan{};
  return r.ready;
}

/// A message has reached one of a node's links at `arrival`, after `mine`: the silence is over, and the other direction
/// wakes as well, as one card drives both.
void Network::wake_other(std::uint32_t number, Time arrival, const Gap& mine) noexcept {
  const bool up = number < nodes();
  const std::uint32_t node = up ? number : number - nodes(), other = up ? number + nodes() : node;
  Silence& silence = silences_[node];
  const Quiet q = quiet(node);
  Link& link = links_[other];
  const Gap g = arrival > link.free ? gap(other, link.free, arrival) : Gap{};  // by what was known until now
  if (arrival > q.from) silence.ended(arrival, arrival - q.from, q.kind, silence_, machine_.link.rest);
  if (mine.planned.rests + mine.late.rests == 0) return;
  const RestResult r = g.both();
  if (r.rests == 0) return;
  if (recorder_ != nullptr) [[unlikely]] recorded_rests(other, link.free, g);
  add_rest(other, r, r.ready, false);
  hold_until(other, r.ready);
  link.bulk = 0;
  plans_[other] = RestPlan{};
}

/// `message`: one that came at `arrival` has ended it.
void Network::add_rest(std::uint32_t number, const RestResult& r, Time arrival, bool message) noexcept {
  Link& sums = links_[number];
  sums.low += r.low;
  sums.delay += r.ready - arrival;
  links_[number].rests += r.rests;
  if (more_.empty()) return;
  more_[number].deep += r.deep;
  more_[number].awake = r.ready;
  more_[number].late += message && r.ready > arrival ? 1 : 0;
}

/// A rest keeps the link from messages until `ready`.
void Network::hold_until(std::uint32_t number, Time ready) noexcept {
  Link& link = links_[number];
  if (lags_ != nullptr) lags_->link(number) += ready - link.free;
  if (!woken_.empty()) woken_[number] = {link.free, ready};
  if (recorder_ != nullptr) [[unlikely]] recorder_->holds(number, link.free);
  link.free = ready;
}

void Network::plan(std::uint32_t node, RestPlan plan) noexcept {
  const LinkSpec& spec = machine_.link;
  if (edge_.rule == LinkRule::planned && affords(node, plan.begin, spec.rest)) {
    const bool deep = affords(node, plan.begin, spec.deep);
    const Time silent = silences_.empty() ? kNever : silence_begin(node);
    for (const std::uint32_t link : {node, nodes() + node}) {
      if (silent < plan.begin) {
        rest_on(link, silent, plan.wake);
      } else {
        replan(link, plan, deep);
      }
    }
  }
  if (cards_.active() && affords(node, plan.begin, machine_.node.card.states.rest)) cards_.plan(node, plan);
}

void Network::plan_group(NodeGroup group, RestPlan plan, std::uint32_t node) noexcept {
  const LinkSpec& spec = machine_.link;
  const bool links = affords(node, plan.begin, spec.rest), deep = affords(node, plan.begin, spec.deep);
  const bool switches = affords(node, plan.begin, machine_.switches.states.rest);
  for (const std::uint32_t number : served(group)) {
    if (number < kSwitchBit) {
      if (links) replan(number, plan, deep);
    } else if (switches) {
      switches_.plan(number - kSwitchBit, plan);
    }
  }
}

void Network::activate(std::uint32_t node, Time at, bool wide) noexcept {
  for (const std::uint32_t link : {node, nodes() + node}) {
    if (edge_.rule == LinkRule::planned) plans_[link].wake = std::min(plans_[link].wake, at);
    if (!wide || lanes_on_ == 0 || widths_[link].since >= 0) continue;
    const Time free = links_[link].free;
    const bool waking = at <= free && more_[link].back == free;  // nothing has come to it since a rest before
    widen(link, waking ? at : std::max(at, free));
    if (at <= free) continue;
    const RestResult open = gap(link, free, at).both();  // what it has rested so far is not counted yet
    widths_[link].rested += open.low + open.deep;
  }
  if (cards_.active()) cards_.activate(node, at);
}

void Network::activate_group(NodeGroup group, Time at) noexcept {
  for (const std::uint32_t number : served(group)) {
    if (number < kSwitchBit) {
      plans_[number].wake = std::min(plans_[number].wake, at);
    } else {
      switches_.activate(number - kSwitchBit, at);
    }
  }
}

/// `deep`: it may rest in the deeper state, if its policy has that.
void Network::replan(std::uint32_t number, RestPlan plan, bool deep) noexcept {
  const LinkPolicy& policy = number < 2 * nodes() ? edge_ : upper_;
  const LinkSpec& spec = machine_.link;
  RestPlan& old = plans_[number];
  Link& link = links_[number];
  const Time began = std::max(old.begin, link.free);
  if (old.wake > began && plan.begin > began) {
    if (plan.begin < old.wake) {  // it rests on, in the same state
      old.wake = old.deep && plan.wake < kNever ? std::max(plan.begin, plan.wake + spec.rest.up - spec.deep.up) : plan.wake;  // not before it is told
      return;
    }
    const Gap g = gap(number, link.free, old.wake);  // it is over: count it, and begin anew once the link is back, perhaps before the plan begins
    if (recorder_ != nullptr) [[unlikely]] recorded_rests(number, link.free, g);
    const RestResult r = g.both();
    add_rest(number, r, r.ready, false);
    hold_until(number, r.ready);
    more_[number].back = r.ready;
  }
  old = policy.deep_timer == kNever || !deep ? plan : plan_for(policy, spec, plan, spec.rest.up);
}

/// A message reaches at `arrival` a link that is not idle: perhaps as it is on its way back from a rest before the present plan, and
/// this is the first since; returns when it can carry it.
Time Network::until_back(std::uint32_t number, Time arrival) noexcept {
  if (more_.empty()) return arrival;
  const Time back = std::exchange(more_[number].back, 0);
  if (back <= arrival) return arrival;
  ++more_[number].late;
  links_[number].delay += back - arrival;
  return back;
}

/// It rests after a silence, since `begin`, and wakes by the plan now.
void Network::rest_on(std::uint32_t number, Time begin, Time wake) noexcept {
  Link& link = links_[number];
  const Gap g = gap(number, link.free, begin);  // a planned rest before the silence
  if (g.planned.rests != 0) {
    if (recorder_ != nullptr) [[unlikely]] recorded_rests(number, link.free, g);
    add_rest(number, g.planned, g.planned.ready, false);
    hold_until(number, g.planned.ready);
  }
  plans_[number] = {begin, wake};
}

void Network::recorded_rests(std::uint32_t link, Time from, const Gap& g) const {
  const LinkPolicy& policy = link < 2 * nodes() ? edge_ : upper_;
  recorder_->rested(link, nodes(), from, g.planned, policy, link < plans_.size() ? plans_[link] : RestPlan{}, machine_.link);
  if (g.late.rests != 0) recorder_->rested(link, nodes(), g.late_from, g.late, {LinkRule::timer}, {}, machine_.link);
}

void Network::recorded_gap(std::uint32_t link, Time from, Time at, const Gap& g) const {
  recorder_->idled(link, nodes(), from, at);
  const RestResult r = g.both();
  if (r.rests == 0) return;
  recorded_rests(link, from, g);
  if (r.ready <= at || recorder_->path() == nullptr) return;
  recorder_->path()->held(taking_, r.ready - at);
}

void Network::finish_record(Time end) const {
  for (std::uint32_t l = 0; l < topology_->links(); ++l) {
    const Time free = state(l).free;
    if (end <= free) {
      recorder_->idled(l, nodes(), free, end);
      continue;
    }
    const bool rests = l < 2 * nodes() ? edge_rests_ : upper_rests_;
    recorded_gap(l, free, end, rests ? gap(l, free, end, true) : Gap{{end}, {}});
  }
  recorder_->finish(end);
}

RestResult Network::Gap::both() const noexcept {
  RestResult r = planned;
  if (late.rests == 0) return r;
  r.low += late.low;
  r.rests += late.rests;
  r.ready = late.ready;
  return r;
}

Network::Gap Network::gap(std::uint32_t link, Time idle_from, Time arrival, bool last) const noexcept {
  const RestPlan plan = link < plans_.size() ? plans_[link] : RestPlan{};
  Gap g;
  g.planned = end_of_gap(link < 2 * nodes() ? edge_ : upper_, plan, machine_.link, idle_from, arrival, last);
  if (!rests_in_silence(link)) return g;
  g.late_from = silence_begin(link < nodes() ? link : link - nodes());
  if (arrival > g.late_from) g.late = detail::after_timer({LinkRule::timer}, machine_.link, g.late_from, arrival);
  return g;
}

Network::Quiet Network::quiet(std::uint32_t node) const noexcept {
  Quiet q{0, Silence::kPlain};
  for (const std::uint32_t number : {node, nodes() + node}) {
    const RestPlan& plan = plans_[number];
    Time from = links_[number].free;
    const Time begin = std::max(plan.begin, from);
    if (plan.wake > begin) {
      const RestState& state = plan.deep ? machine_.link.deep : machine_.link.rest;
      from = plan.wake >= kNever ? kNever : std::max(plan.wake, begin + state.down) + state.up;
      q.kind = Silence::kAfterPlan;
    }
    q.from = std::max(q.from, from);
  }
  return q;
}

/// When a node's links rest after a silence, if no message comes.
Time Network::silence_begin(std::uint32_t node) const noexcept {
  const Quiet q = quiet(node);
  return silences_[node].begin(q.from, q.kind, silence_, machine_.link.rest);
}

LinkTotals Network::totals(LinkClass link_class, std::uint32_t used, Time end) const {
  LinkTotals t;
  const std::uint32_t from = link_class == LinkClass::edge ? 0 : 2 * nodes();
  const std::uint32_t to = link_class == LinkClass::edge ? 2 * nodes() : topology_->links();
  for (std::uint32_t l = from; l < to; ++l) {
    if (!own(l) || (l < 2 * nodes() && (l < nodes() ? l : l - nodes()) >= used)) continue;
    t += total(l, end);
  }
  return t;
}

LinkTotals Network::total(std::uint32_t l, Time end) const {
  const Link link = state(l);
  LinkTotals t;
  t.links = 1;
  // What nobody received may be under way at the end. What it has found at rest just before counts as if it were sent at once: only a link
  // that has LinkMore knows since when it is back. A link that takes nothing before it is back from a rest sends nothing until then.
  const Time sends_from = more_.empty() ? end : std::max(end, more_[l].awake);
  t.busy = std::max<Time>(0, link.busy - std::max<Time>(0, link.free - sends_from));
  if (edge_rests_ || upper_rests_) {
    const RestResult open = end > link.free ? gap(l, link.free, end, true).both() : RestResult{};
    t.rests = link.rests + open.rests;
    t.late = more_.empty() ? link.rests : more_[l].late;
    t.low = link.low + open.low;
    t.deep = (more_.empty() ? 0 : more_[l].deep) + open.deep;
    t.delay = link.delay;
  }
  if (l >= widths_.size()) return t;
  const Width& w = widths_[l];
  const auto rested = static_cast<Time>(t.low + t.deep);
  const Time wide = w.since < 0 || end < w.since ? w.wide : w.wide + std::max<Time>(0, end - w.since - (rested - w.rested));
  t.narrow = end - rested - wide;
  return t;
}

/// Switches count by the ports that drive a link between switches or one to a node in use.
PartTotals Network::switch_totals(std::uint32_t used, Time end) const {
  if (!switches_.active()) return {};
  std::vector<std::uint32_t> ports(topology_->switches(), 0);
  for (std::uint32_t l = nodes(); l < topology_->links(); ++l) {
    if (l < nodes() + used || l >= 2 * nodes()) ++ports[origin_[l]];
  }
  return switches_.totals(ports, end);
}

PartTotals Network::card_totals(std::uint32_t used, Time end) const {
  return cards_.totals(std::vector<std::uint32_t>(used, 1), end);
}

}  // namespace fallow::sim
