// Links and what passes over them. A message, or a train of 2 KB segments of a long one, takes each link of its way
// in one closed form: its head goes on after the link's latency, its tail no faster than the link or than it came.
// Links serve in the order in which messages reach them, up to Machine::lookahead (docs/adr/0032).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sim/domains.hpp"
#include "sim/event_queue.hpp"
#include "sim/horizon.hpp"
#include "sim/lags.hpp"
#include "sim/link_rest.hpp"
#include "sim/machine.hpp"
#include "sim/node_pool.hpp"
#include "sim/parts.hpp"
#include "sim/policy.hpp"
#include "sim/recorder.hpp"
#include "sim/silence.hpp"
#include "sim/topology.hpp"

namespace fallow::sim {

/// One direction of one link: what every message asks of it.
struct alignas(16) Link {
  Time free = 0;         ///< when the last train has left it
  Time events_until = -1; ///< up to then trains reach it by events; without contention: the tail of what a rest last held
  Time busy = 0;         ///< time spent sending
  std::uint32_t bulk = 0;  ///< the last part of its work until `free` that is trains of long messages, ps; kLongBulk: see there
  std::uint32_t rests = 0;
  Time low = 0;    ///< time at rest
  Time delay = 0;  ///< that messages had from finding it at rest
};
static_assert(sizeof(Link) == 48);
/// Trains for more than 4 ms, where many senders meet: Network has their time apart.
inline constexpr std::uint32_t kLongBulk = 0xffffffff;

/// What links have that do not rest by a timer in one state: else there is no deep rest, and each rest ends late.
struct LinkMore {
  Time deep = 0;           ///< time in the deep state
  std::uint64_t late = 0;  ///< messages that found it at rest
  Time back = 0;           ///< from a rest that was planned before the present one, until a message has come since
  Time awake = 0;          ///< when it was, or will be, back from its last rest
};

/// Sums over the links of a class.
struct LinkTotals {
  std::uint64_t links = 0, rests = 0, late = 0;
  TimeSum busy = 0, low = 0, deep = 0, delay = 0;
  TimeSum narrow = 0;  ///< awake with the fewer lanes that compressed messages need

  LinkTotals& operator+=(const LinkTotals& o) noexcept {
    links += o.links, rests += o.rests, late += o.late;
    busy += o.busy, low += o.low, deep += o.deep, delay += o.delay, narrow += o.narrow;
    return *this;
  }
};

/// An event for another share, with the message that it is about.
struct Mail {
  Event event;
  std::variant<std::monostate, Node, Held> message;
  Time lag = 0;
};
using Mailbox = std::vector<Mail>;

class Network {
 public:
  /// `used`: nodes that have ranks. Throws std::invalid_argument if the topology cannot be built.
  Network(const Machine& machine, const NetworkPolicy& policy, NodePool& pool, EventQueue& queue, std::uint32_t used = 1, Share share = {});

  const Domains& domains() const noexcept { return domains_; }
  Share share() const noexcept { return share_; }
  /// Where events for other shares go, by share; must be set if there are others.
  void mail_to(std::span<Mailbox> boxes) noexcept { boxes_ = boxes; }
  /// When something may come out of this share for another one, at the earliest: its events before `done` have
  /// happened, and the next one is at `next`.
  Time reaches_others(Time done, Time next) { return std::min(next >= kNever ? kNever : next + to_border_, horizon_.earliest(done)); }
  std::uint32_t nodes() const noexcept { return topology_->nodes(); }
  const Topology& topology() const noexcept { return *topology_; }
  /// Tells it what links do from now on.
  void record(Recorder& recorder) noexcept {
    recorder_ = &recorder;
    recorded_ = plain_ && !recorder.draws();
    if (recorder.draws()) defers_ = false;  // spans come in the order of events
    edge_timed_ = upper_timed_ = plain_ = direct_ = false;
    if (recorder.path() == nullptr) return;
    woken_.assign(topology_->links(), {});
    packs_ = false;
  }
  /// All ranks have ended, the last one at `end`: what comes to a link afterwards counts for nothing but that it arrives. Shares hear
  /// of it in the window after, so nothing depends on it before.
  void over(Time end) noexcept { over_ = end + to_border_; }
  /// Tells it of the gaps that are open at `end`.
  void finish_record(Time end) const;

  /// Bytes of the longest message that every link carries in a time of which several can be added up.
  std::uint64_t longest_message() const noexcept;
  /// Takes message `index` on its way at `ready` (>= `now`, the clock): from its sender's node to its receiver's,
  /// which differ. Sooner or later pushes its arrival. `count` numbers the sender's messages.
  void send(std::uint32_t index, Time ready, Time now, std::uint32_t count);
  /// Whether messages that are nothing but bytes, and whose Envelope fits, are sent without a record ...
  bool sends_plain() const noexcept { return direct_ || (defers_ && packs_ && machine_.contention == Contention::full); }
  /// ... by this: as send(), `tie` has the ranks.
  void send_plain(std::uint64_t tie, std::uint32_t envelope, std::uint64_t bytes, Time ready, Time now);
  /// Messages that were sent may wait for their links to come nearer, as long as nothing else needs those: until this
  /// time, before which nothing comes of them, or until a message that was held goes on.
  Time deferred_until() const noexcept { return deferred_until_; }
  void send_deferred() {
    if (deferred_count_ != 0) walk_deferred();
  }
  /// Brings a link nearer that is about to be taken: by a message held before it, or by a sender.
  void prefetch_next(const Node& held) const noexcept {
    fetch(held.chain);
    fetch(held.second());
  }
  void fetch(std::uint32_t link) const noexcept {
    const auto* at = reinterpret_cast<const char*>(&links_[link]);
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + sizeof(Link) - 1, 1);
  }
  bool far() const noexcept { return far_; }
  void prefetch_held(std::uint32_t index) const noexcept { held_.prefetch(index); }
  void prefetch_links(std::uint32_t index, std::uint32_t target) const noexcept {
    const Held& h = held_[index];
    const std::uint32_t last = nodes() + node_of(target), after = std::min<std::uint32_t>(h.left - 1u, Held::kKept);
    fetch(h.next(after, last));
    if (far_) fetch(h.next(after == 0 ? 0 : after - 1, last));
  }
  void prefetch_card(std::uint32_t rank) const noexcept { fetch(node_of(rank)); }
  /// What tells the sender of this data that it has come.
  std::uint32_t notice_of(std::uint32_t data);
  /// A message reaches the link that it could not be taken over before.
  void hop(const Event& event);
  void pass(const Event& event);
  /// What another share has sent.
  void accept(const Mail& mail);

  /// Both links of a node, and its card, rest from `plan.begin` (now) to `plan.wake`, or until a message wakes one of
  /// them, if their rule is `planned`. A link that still rests goes on until the new end.
  void plan(std::uint32_t node, RestPlan plan) noexcept;
  /// Likewise the links between switches, and the switches, that serve a group of nodes, of which `node` has fallen silent
  /// last; kNone: nobody is there to be delayed.
  void plan_group(NodeGroup group, RestPlan plan, std::uint32_t node) noexcept;
  /// Links whose rule is `planned` and that rest wake at `at`; with `wide`, to all their lanes.
  void activate(std::uint32_t node, Time at, bool wide) noexcept;
  void activate_group(NodeGroup group, Time at) noexcept;
  /// Messages have lags from now on, those that take something at rest more.
  void keep_lags(Lags& lags) noexcept { lags_ = &lags; }
  /// Share that is left at `at` of what a node's ranks may lag by; 1 where nobody keeps account.
  double budget_left(std::uint32_t node, Time at) const noexcept {
    return silences_.empty() ? 1.0 : silences_[node].left(at, silence_, machine_.link.rest);
  }
  /// The ranks of a node lag by at most so much.
  void lags(std::uint32_t node, Time lag) noexcept {
    if (!silences_.empty()) silences_[node].lags(lag);
  }
  /// Whether messages of this size and kind are compressed.
  bool compresses(std::uint64_t bytes, bool collective) const noexcept {
    return bytes >= compress_.least_bytes && compress_.active() &&
           (compress_.what == CompressPolicy::What::all || (compress_.what == CompressPolicy::What::collectives) == collective);
  }
  /// Whether calls whose messages are not compressed want all lanes.
  bool narrows() const noexcept { return lanes_on_ != 0; }

  /// What the links of a class did up to `end`; the gaps that are still open are closed as if a message came then.
  /// Of edge links those of the first `nodes` nodes count, of all links those of this share.
  LinkTotals totals(LinkClass link_class, std::uint32_t nodes, Time end) const;
  /// The same of one link.
  LinkTotals total(std::uint32_t link, Time end) const;
  /// Of switches and cards, likewise.
  PartTotals switch_totals(std::uint32_t nodes, Time end) const;
  PartTotals card_totals(std::uint32_t nodes, Time end) const;
  /// Lanes that are on while a link is awake and no message needs more.
  std::uint32_t lanes_on() const noexcept { return lanes_on_ == 0 ? machine_.link.lanes : lanes_on_; }
  /// Whether the link's state is kept here.
  bool own(std::uint32_t link) const noexcept {
    return share_.count == 1 || Share::of(domains_.of_link(link), domains_.count(), share_.count) == share_.index;
  }
  std::size_t memory_bytes() const noexcept {
    return links_.capacity() * sizeof(Link) + more_.capacity() * sizeof(LinkMore) +
           rates_.capacity() * sizeof(std::uint32_t) + plans_.capacity() * sizeof(RestPlan) + silences_.capacity() * sizeof(Silence) +
           widths_.capacity() * sizeof(Width) + (origin_.capacity() + served_.capacity() + served_from_.capacity()) * sizeof(std::uint32_t) +
           switches_.memory_bytes() + cards_.memory_bytes() + held_.memory_bytes() + horizon_.memory_bytes();
  }

 private:
  struct Walk {
    std::uint32_t index = 0;
    Time at = 0;      // the head's
    Time tail = 0;    // when the tail has come
    std::uint64_t tie = 0;
  };
  void walk(const Walk& walk, const Path& path, Time now, bool by_event);
  struct Deferred {
    Walk walk;  // of a message without a record: without its number
    Time now = 0;
    std::uint64_t bytes = 0;
    std::uint32_t envelope = 0;
    Path path;
  };
  Deferred& defer(const Walk& walk, Time now);
  void walk_deferred();
  void set_out_plain(const Deferred& sent);
  Event hold_plain(const Deferred& sent, Time at, Time tail, std::uint32_t hop, std::uint32_t border);
  std::uint32_t made_again(std::uint64_t tie, std::uint32_t envelope, std::uint64_t bytes);
  std::uint32_t pack(std::uint32_t envelope, std::uint64_t bytes, Time behind, const Path& path, std::uint32_t hop, std::uint32_t border);
  void send_direct(std::uint64_t tie, std::uint32_t envelope, std::uint64_t bytes, Time ready, Time now);
  void end_direct(std::uint64_t tie, std::uint32_t envelope, Time at, Time tail);
  void set_out(Walk walk, const Path& path, Time now);
  void end_walk(const Walk& walk);
  void arrive_only(Walk walk, std::uint32_t links);
  void end_loggp(Walk walk, const Node& node);
  void find_way(Node& node, std::uint32_t source, std::uint32_t target, Path& path) const noexcept;
  Event hold(const Walk& walk, Node& node, const Path& path, std::uint32_t hop, std::uint32_t border);
  void unpack(std::uint32_t held, std::uint64_t tie, Time at, Time tail, std::uint32_t left, bool crosses);
  bool leaves(std::uint32_t source, std::uint32_t target) const noexcept {
    return domains_.count() > 1 && domains_.of_node(source) != domains_.of_node(target);
  }
  bool leaves(const Node& node) const noexcept { return leaves(node_of(node.peer), node_of(node.rank)); }
  void deliver(Event event, const Node& node);
  void push(const Event& event, std::uint32_t node);
  /// A message is held at `at`, and has `links` to take before it is in another domain; 0: it is not on its way there.
  void held_before(std::uint32_t links, Time at, std::uint32_t target) {
    if (share_.count > 1 && links - 1u < links_to_border_ - 1u && !here(target)) [[unlikely]] horizon_.add(at, at + links * machine_.link.latency);
  }
  /// Whether a node's events are this share's.
  bool here(std::uint32_t node) const noexcept { return share_of(node) == share_.index; }
  std::uint32_t share_of(std::uint32_t node) const noexcept { return Share::of(domains_.of_node(node), domains_.count(), share_.count); }
  void find_border();
  void send_loggp(Node& node, std::uint32_t index, Time ready, Time now, std::uint64_t tie);
  void split(Walk& walk, Node& node, std::uint64_t& bytes);
  static bool is_bulk(const Node& message) noexcept { return (message.flags & (kTrain | kData)) != 0; }
  /// What of a message's kind has a say in how links carry it.
  struct Manner {
    bool bulk = false, squeezed = false;
  };
  static Manner manner_of(const Node& message) noexcept { return {is_bulk(message), message.squeezed != 0}; }
  /// Whether more has to be known of messages than events tell.
  bool keeps_records() const noexcept { return lags_ != nullptr || (recorder_ != nullptr && recorder_->path() != nullptr); }
  Time take(std::uint32_t link, Time at, Time& tail, std::uint64_t bytes, Manner manner) noexcept;
  void tell_take(std::uint32_t link, Time at) noexcept;
  Time take_any(std::uint32_t link, Time at, Time& tail, std::uint64_t bytes, Manner manner) noexcept;
  Time slip_in(std::uint32_t number, Time at, Time& tail, Time duration) noexcept;
  void keep_long(std::uint32_t number, Time bulk) noexcept;
  Time bulk_of(std::uint32_t number) const noexcept {
    const std::uint32_t bulk = links_[number].bulk;
    return bulk != kLongBulk ? bulk : long_bulk_.at(number);
  }
  void set_bulk(std::uint32_t number, Time bulk) noexcept {
    links_[number].bulk = static_cast<std::uint32_t>(std::min<Time>(bulk, kLongBulk));
    if (bulk >= kLongBulk) [[unlikely]] keep_long(number, bulk);
  }
  // network_rest.cpp
  void prepare_rests(const NetworkPolicy& policy, std::uint32_t used);
  void prepare_silences(std::uint32_t used);
  void list_served();
  Time pass_origin(std::uint32_t link, Time at) noexcept;
  void leave_origin(std::uint32_t link) noexcept;
  /// A switch or card has held the message that is under way from `at` until `ready`.
  Time held(Time at, Time ready) const {
    if (recorder_ != nullptr && ready > at && recorder_->path() != nullptr) [[unlikely]] recorder_->path()->held(taking_, ready - at);
    if (lags_ != nullptr) lags_->message(taking_) += ready - at;
    return ready;
  }
  Time into_node(const Node& node, Time at, Time tail) noexcept;
  std::span<const std::uint32_t> served(NodeGroup group) const noexcept;
  Time at_width(std::uint32_t link, Time at, bool idle, Time& start, Time duration, bool squeezed) noexcept;
  void narrow(std::uint32_t link, Time at) noexcept;
  void widen(std::uint32_t link, Time at) noexcept;
  Time rested(std::uint32_t link) const noexcept { return links_[link].low + (more_.empty() ? 0 : more_[link].deep); }
  std::uint32_t rate(std::uint32_t link) const noexcept { return rates_.empty() ? rate_ : rates_[link]; }
  /// A link that nothing touches may have no record.
  Link state(std::uint32_t link) const noexcept { return link < links_.size() ? links_[link] : Link{}; }
  /// What a link does in a gap that goes on, or ends with a message at `arrival`.
  struct Gap {
    RestResult planned, late;  // the second after a silence, from `late_from`
    Time late_from = kNever;
    RestResult both() const noexcept;
  };
  /// Since when a node's links have been silent and awake, and what came before.
  struct Quiet {
    Time from;
    Silence::Kind kind;
  };
  /// Whether the budget of a node, if there is one, bears what a rest in this state may cost.
  bool affords(std::uint32_t node, Time at, const RestState& rest) const noexcept {
    return silences_.empty() || node == kNone || silences_[node].affords(at, silence_, rest);
  }
  Gap gap(std::uint32_t link, Time idle_from, Time arrival, bool last = false) const noexcept;
  Quiet quiet(std::uint32_t node) const noexcept;
  Time silence_begin(std::uint32_t node) const noexcept;
  void recorded_rests(std::uint32_t link, Time from, const Gap& gap) const;
  void recorded_gap(std::uint32_t link, Time from, Time at, const Gap& gap) const;
  Time wake(std::uint32_t link, Time arrival) noexcept;
  void wake_other(std::uint32_t link, Time arrival, const Gap& gap) noexcept;
  bool rests_in_silence(std::uint32_t link) const noexcept { return link < edge_links_ && !silences_.empty(); }
  Time wake_timed(std::uint32_t number, const LinkPolicy& policy, Time arrival) noexcept;
  void add_rest(std::uint32_t link, const RestResult& r, Time arrival, bool message) noexcept;
  Time until_back(std::uint32_t link, Time arrival) noexcept;
  void replan(std::uint32_t link, RestPlan plan, bool deep) noexcept;
  void rest_on(std::uint32_t link, Time begin, Time wake) noexcept;
  void hold_until(std::uint32_t link, Time ready) noexcept;
  Time serialize(std::uint64_t bytes, std::uint32_t ps_per_kib) const noexcept {
    return static_cast<Time>(TimeSum{bytes} * ps_per_kib >> 10);  // what longest_message() lets pass fits
  }
  std::uint32_t node_of(std::uint32_t rank) const noexcept { return one_per_node_ ? rank : rank / ranks_per_node_; }

  /// Lanes of a link while compressed messages pass: `since` all are on, for one that is not.
  struct Width {
    Time since = -1;  // -1: reduced
    Time ready = 0;   // when they carry data
    Time rested = 0;  // the link's rests until `since`
    Time wide = 0;    // awake with all lanes, before `since`
  };

  Machine machine_;
  LinkPolicy edge_, upper_;
  CompressPolicy compress_;
  std::unique_ptr<Topology> topology_;
  Domains domains_;
  Share share_;
  std::span<Mailbox> boxes_;
  Horizon horizon_;
  std::uint32_t links_to_border_ = 1;  // of a message that begins its way into another domain
  Time to_border_ = 0;                 // the least that any event takes to have an effect there, but for what horizon_ has
  Time over_ = kNever;                 // messages take no link from then on
  NodePool& pool_;
  EventQueue& queue_;
  HeldPool held_;
  HugeVector<Link> links_;
  std::unordered_map<std::uint32_t, Time> long_bulk_;  // of each link whose `bulk` is, or was, kLongBulk
  std::vector<LinkMore> more_;  // empty where rests are timed
  std::vector<std::uint32_t> rates_;  // ps per KiB, where they differ
  std::uint32_t rate_;
  std::vector<RestPlan> plans_;  // of edge links, or all, if their rule is `planned`
  SilencePolicy silence_;
  std::vector<Silence> silences_;  // of each node, if its links rest after silences
  std::vector<Width> widths_;    // of links that messages take; of others, and if it is empty, all lanes are always on
  Parts switches_, cards_;
  static constexpr std::uint32_t kSwitchBit = 1u << 31;
  std::vector<std::uint32_t> origin_;                // of each link, if switches rest
  std::vector<std::uint32_t> served_, served_from_;  // by group: links, and switches with kSwitchBit
  std::vector<std::uint32_t> group_offset_;          // of each level's first group
  std::uint64_t train_bytes_;
  std::uint32_t ranks_per_node_;
  std::uint32_t lanes_on_ = 0;  // with compression; 0: all
  bool one_per_node_, edge_rests_, upper_rests_, parts_rest_;
  std::uint32_t edge_links_;      // their number
  Time edge_quiet_, upper_quiet_; // gaps up to these are no rests
  bool edge_timed_, upper_timed_; // longer ones end as a timer has it, and nothing is recorded
  std::array<Deferred, 8> deferred_;
  std::size_t deferred_count_ = 0;
  Time deferred_until_ = kNever;
  bool defers_ = false;  // nothing but messages changes what links do
  bool packs_ = false;   // nothing but links and borders has a say, and there are not too many
  bool direct_ = false;  // without contention, where timers are all there is
  bool plain_ = false;   // and those rest by these timers or not at all
  bool recorded_ = false;  // plain_, but that it is recorded; nothing is drawn
  bool far_ = false;     // there are so many links that they are far from the processor
  std::array<Time, 2> timers_{kNever, kNever};  // of edge links, of upper ones
  Recorder* recorder_ = nullptr;
  Lags* lags_ = nullptr;
  struct Waking {
    Time from = 0, until = 0;
  };
  std::vector<Waking> woken_;     // each link's last way back from a rest, for the critical path; else empty
  std::uint32_t taking_ = kNone;  // the message that takes a link, for these
};

}  // namespace fallow::sim
