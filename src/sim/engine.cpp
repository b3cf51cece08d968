#include "sim/engine.hpp"

#include <cmath>
#include <string>
#include <type_traits>

#include "sim/team.hpp"

namespace fallow::sim {

using trace::CallEvent;
using trace::Op;

namespace {

const trace::TraceInfo& checked(const trace::EventSource& source, const Machine& machine) {
  const std::size_t ranks = source.info().ranks.size();
  if (ranks == 0) throw SimError("the program has no ranks");
  if (ranks > kMaxRanks) throw SimError("the program has " + std::to_string(ranks) + " ranks; at most 1048576 can be simulated");
  if (machine.node.ranks == 0) throw std::invalid_argument("a node has at least one rank");
  return source.info();
}

/// What a core that runs at another frequency does takes longer.
void at_frequency(Machine& m, const CorePolicy& core) {
  const auto slower = [](auto& value, double by) { value = static_cast<std::remove_reference_t<decltype(value)>>(std::llround(static_cast<double>(value) * by)); };
  m.node.compute_ps_per_ns *= core.slower;
  MessageSpec& s = m.message;
  for (Time* t : {&s.overhead, &s.receive_overhead, &s.unexpected, &s.call_overhead, &s.match, &s.reduce_ps_per_kib}) slower(*t, core.calls_slower);
}

/// Whether links between switches, or switches, rest by what is known of the ranks that they serve.
bool joins_groups(const Policy& policy) { return policy.upper.rule == LinkRule::planned || policy.switches.rule == LinkRule::planned; }

}  // namespace

Engine::Engine(const Machine& machine, const Policy& policy, trace::EventSource& source, Share share)
    : machine_(machine), policy_(policy), source_(source), info_(checked(source, machine)), size_(static_cast<std::uint32_t>(info_.ranks.size())),
      posted_(requests_), arrived_(pool_), network_(machine, policy, pool_, queue_, nodes_in_use(), share),
      rest_(policy.predictor || policy.marks != Marks::none ? size_ : 0, machine.node.ranks, policy.marks != Marks::none),
      cores_(policy.core, size_), longest_message_(network_.longest_message()) {
  const std::uint64_t room = std::uint64_t{network_.nodes()} * machine.node.ranks;
  if (size_ > room) {
    throw SimError("the program has " + std::to_string(size_) + " ranks; the machine has room for " + std::to_string(room));
  }
  if (policy_.core.compute == Watts{}) policy_.core = make_core_policy({}, machine.node.core);
  if (machine_.message.receive_overhead < 0) machine_.message.receive_overhead = machine_.message.overhead;
  at_frequency(machine_, policy_.core);
  if (rest_.active() && joins_groups(policy)) rest_.join_groups(network_);
  const Domains& domains = network_.domains();
  const auto first_rank = [&](std::uint32_t index) {
    const std::uint32_t node = domains.first_node(Share{index, share.count}.first_domain(domains.count()));
    return static_cast<std::uint32_t>(std::min(std::uint64_t{node} * machine.node.ranks, std::uint64_t{size_}));
  };
  if (policy.silence.rests) {
    lags_ = std::make_unique<Lags>();
    network_.keep_lags(*lags_);
  }
  const std::uint32_t first = share.count == 1 ? 0 : first_rank(share.index);
  const std::uint32_t last = share.count == 1 ? size_ : first_rank(share.index + 1);
  ranks_ = Slice<Rank>(first, last - first);
  tables_.reserve(last - first);
  if (policy.predictor) {
    entered_ = Slice<Time>(first, last - first);
    worked_ = Slice<Worked>(first, last - first);
    predictors_ = Slice<std::unique_ptr<predict::Predictor>>(first, last - first);
    for (std::uint32_t r = first; r < last; ++r) predictors_[r] = policy.predictor();
  }
}

Engine::Engine(const Machine& machine, const Policy& policy, trace::EventSource& source, unsigned threads)
    : Engine(machine, policy, source, Share{0, shares(machine, policy, source, threads)}) {
  for (std::uint32_t i = 1; i < network_.share().count; ++i) {
    others_.push_back(std::unique_ptr<Engine>(new Engine(machine, policy, source, Share{i, network_.share().count})));
  }
}

/// How many threads can replay it at a time. Where ranks of all domains decide on one rest, or have several threads, there is one.
std::uint32_t Engine::shares(const Machine& machine, const Policy& policy, const trace::EventSource& source, unsigned threads) {
  const bool parts = policy.switches.rule != LinkRule::always_on || policy.cards.rule != LinkRule::always_on;
  const auto& told = source.info().ranks;  // what all ranks wait for is known where there is one share only
  const bool turns = std::any_of(told.begin(), told.end(), [](const trace::RankInfo& r) { return r.threads > 1; });
  if (threads <= 1 || parts || joins_groups(policy) || turns) return 1;
  checked(source, machine);
  const auto topology = make_topology(machine.topology);
  const auto ranks = static_cast<std::uint32_t>(source.info().ranks.size());
  return std::min(Domains(*topology, machine, (ranks - 1) / machine.node.ranks + 1).count(), std::uint32_t{threads});
}

Result Engine::run() {
  struct WithoutTimes {
    trace::EventSource& source;
    explicit WithoutTimes(trace::EventSource& s) : source(s) { source.leave_out_times(true); }
    WithoutTimes(const WithoutTimes&) = delete;
    WithoutTimes& operator=(const WithoutTimes&) = delete;
    ~WithoutTimes() { source.leave_out_times(false); }
  } const without_times(source_);
  if (others_.empty()) {
    begin();
    do replay(kNever);
    while (let_go());
  } else {
    Team(*this).run();
  }
  each_share([this](const Engine& engine) {
    for (const Rank& rank : engine.ranks_) {
      if (rank.state != State::ended) deadlock();
    }
    engine.check_collectives();
  });
  const Result found = result();
  if (recorder_ != nullptr) network_.finish_record(found.makespan);
  return found;
}

constexpr std::uint64_t kBetweenLooks = 1 << 12;  // events between two looks at whether to go on

/// Everything of this share that happens before `end`, which is later than the beginning.
void Engine::replay(Time end) {
  if (starting_ != ranks_.last()) start_ranks();
  for (Event event;; ++events_) {
    while (!queue_.pop(event, std::min(end, network_.deferred_until()))) {
      if (network_.deferred_until() == kNever) return;
      network_.send_deferred();
    }
    if (events_ % kBetweenLooks == 0 && stop_ != nullptr && stop_->load(std::memory_order_relaxed)) [[unlikely]] throw Stopped();
    if (--until_fetch_ == 0) [[unlikely]] fetch_ahead();
    happen(event);
  }
}

/// All ranks go on at 0, without an event each in the queue: in their order, after what has a place before theirs.
void Engine::start_ranks() {
  for (; starting_ != ranks_.last(); ++events_) {
    if (network_.deferred_until() <= 0) network_.send_deferred();
    const Event start{0, tie_of(starting_, starting_, 0), starting_, EventKind::resume};
    if (Event event; queue_.pop_before(event, start)) {
      happen(event);
    } else {
      prefetch_starting();
      ++starting_;
      happen(start);
    }
  }
}

inline void Engine::happen(const Event& event) {
  clock_ = event.time;
  tie_ = event.tie;
  switch (event.kind) {
    case EventKind::resume: return run_rank(event.index);
    case EventKind::hop:
      network_.send_deferred();
      return network_.hop(event);
    case EventKind::pass:
      network_.send_deferred();
      return network_.pass(event);
    case EventKind::deliver: return deliver(event);
    case EventKind::arrive: return arrive(event);
    case EventKind::sent: return sent(event);
    case EventKind::access: return complete(event.index, event.time, lag_of_request(event.index));
  }
}

void Engine::record(Recorder& recorder) {
  if (!others_.empty()) throw std::invalid_argument("a replay that is recorded runs on one thread");
  recorder_ = &recorder;
  if (entered_.empty()) entered_ = Slice<Time>(0, size_);
  path_ = recorder.path();
  network_.record(recorder);
}

void Engine::run_rank(std::uint32_t r) {
  Rank& rank = ranks_[r];
  rank.state = State::ready;
  CallEvent call;
  while (next_call(r, call)) {
    if (!entered_.empty()) entered_[r] = rank.now;
    ++rank.calls;
    rank.op = call.op;
    rank.now += machine_.message.call_overhead + policy_.cost.call;
    if (!predictors_.empty()) rest_.enter(r, rank.now, false, network_);
    acting_ = lag_of_rank(r);
    if (!issue(r, call)) {
      rank.blocked = rank.now;
      return;
    }
    leave_call(r, call);
  }
}

/// Reads the rank's next call and computes up to it; false if it is not its time yet, or if there is none.
bool Engine::next_call(std::uint32_t r, CallEvent& call) {
  Rank& rank = ranks_[r];
  if (rank.loaded) {
    rank.loaded = false;
    source_.again(r, call);
    return policy_.marks == Marks::none || enter_marked(r, call);
  }
  if (!source_.next(r, call)) {
    rank.state = State::ended;
    ++ended_;
    last_end_ = std::max(last_end_, rank.now);
    if (network_.share().count == 1 && ended_ == size_) network_.over(last_end_);
    if (rest_.active()) rest_.leave(r, rank.now, kNever, network_);
    return false;
  }
  const double recorded = static_cast<double>(call.compute_ns) * machine_.node.compute_ps_per_ns;
  Time compute = static_cast<Time>(std::min(recorded, static_cast<double>(kNever)) + 0.5);
  if (cores_.active()) compute = cores_.stretch(r, rank.now, compute);
  if (policy_.marks != Marks::none && compute > policy_.loop_gap) rest_.leave(r, rank.now, kNever, network_);
  rank.computing += compute;
  rank.now += compute;
  if (path_ != nullptr) [[unlikely]] path_->computed(r, compute);
  if (rank.now < kNever && policy_.marks != Marks::none) return enter_marked(r, call);
  const Time looks = machine_.message.unexpected == 0 ? 0 : looks_for_messages(r, call);
  if (rank.now - clock_ <= machine_.lookahead && looks <= clock_) return true;
  if (rank.now >= kNever) [[unlikely]] {
    ++rank.calls;  // the call that it computes before
    rank.op = call.op;
    refuse(r, "more than 26 days of simulated time have passed, the most that a replay can hold; take a shorter run");
  }
  go_on_at(r, std::max(rank.now, looks));
  return false;
}

/// The rank makes the call that it has read when the clock is at `at`.
void Engine::go_on_at(std::uint32_t r, Time at) {
  Rank& rank = ranks_[r];
  rank.loaded = true;
  rank.state = State::computing;
  queue_.push({at, tie_of(r, r, rank.messages), r, EventKind::resume});
}

/// Carries out a call; false if the rank is blocked in it.
bool Engine::issue(std::uint32_t r, const CallEvent& call) {
  switch (call.op) {
    case Op::isend:
    case Op::irsend:
    case Op::send:
    case Op::rsend: return send(r, call, 0);
    case Op::issend:
    case Op::ssend: return send(r, call, kSynchronous);
    case Op::ibsend:
    case Op::bsend: return send(r, call, kBuffered);
    case Op::irecv:
    case Op::imrecv:
    case Op::recv:
    case Op::mrecv: return receive(r, call);
    case Op::sendrecv:
    case Op::sendrecv_replace:
    case Op::isendrecv:
    case Op::isendrecv_replace: return send_receive(r, call);
    case Op::wait:
    case Op::waitall:
    case Op::waitany:
    case Op::waitsome:
    case Op::test:
    case Op::testall:
    case Op::testany:
    case Op::testsome: return wait(r, call);
    case Op::send_init:
    case Op::rsend_init:
    case Op::psend_init: return make_persistent(r, call, kSends), true;
    case Op::ssend_init: return make_persistent(r, call, kSends | kSynchronous), true;
    case Op::bsend_init: return make_persistent(r, call, kSends | kBuffered), true;
    case Op::recv_init:
    case Op::precv_init: return make_persistent(r, call, 0), true;
    case Op::start:
    case Op::startall: return start(r, call), true;
    case Op::pready:
    case Op::pready_range:
    case Op::pready_list: return ready(r, call), true;
    case Op::cancel: return cancel(r, call), true;
    case Op::request_free: return release(r, call), true;
    case Op::iprobe:
    case Op::improbe:
      if ((call.flags & trace::kEventComplete) == 0) return true;
      [[fallthrough]];
    case Op::probe:
    case Op::mprobe: return probe(r, call);
    default: return collective(r, call);
  }
}

/// The present call is over: the predictor hears of it.
void Engine::leave_call(std::uint32_t r, const CallEvent& call) {
  Rank& rank = ranks_[r];
  if (recorder_ != nullptr) [[unlikely]] {
    recorder_->call(r, call.op, entered_[r], rank.now, waited_, slept_);
    waited_ = slept_ = 0;
  }
  if (predictors_.empty()) return;
  predict::Event event;
  event.enter = nanoseconds(entered_[r]);
  event.exit = nanoseconds(rank.now);
  event.wait = nanoseconds(rank.blocked >= entered_[r] ? rank.now - rank.blocked : 0);
  event.bytes = call.bytes;
  event.site = call.site;
  event.peer = call.peer;
  event.op = static_cast<std::uint16_t>(call.op);
  event.comm = static_cast<std::uint16_t>(call.comm);
  predict::Predictor& predictor = *predictors_[r];
  if (lags_ != nullptr) predictor.budget_left(network_.budget_left(r / machine_.node.ranks, rank.now));
  const predict::Answer answer = predictor.on_exit(event);
  if (recorder_ != nullptr && answer.call_expected) [[unlikely]] recorder_->expected(r);
  rest_.leave(r, rank.now, answer.rest_for.value * kNs, network_);
  if (policy_.cost.search == 0 && policy_.cost.tuning == 0) return;
  const predict::PredictorState state = predictor.state();
  Worked& worked = worked_[r];
  rank.now += static_cast<Time>(state.searches - worked.searches) * policy_.cost.search + static_cast<Time>(state.restarts - worked.restarts) * policy_.cost.tuning;
  worked = {state.searches, state.restarts};
}

/// Waits in calls of one kind are likely to last about as long.
std::uint64_t Engine::kind_of_wait(const CallEvent& call) const noexcept {
  return mix(std::uint64_t{call.site} << 32 | static_cast<std::uint32_t>(call.peer)) ^ mix(std::uint64_t{call.comm} << 16 | static_cast<std::uint64_t>(call.op));
}

void Engine::delay(std::uint32_t r, Time at, Time lag) {
  Time& mine = lags_->rank(r);
  mine = Lags::joined(ranks_[r].now, mine, at, lag);
  const std::uint32_t node = r / machine_.node.ranks, first = node * machine_.node.ranks;
  network_.lags(node, machine_.node.ranks == 1 ? mine : lags_->most(first, std::min(first + machine_.node.ranks, size_)));
}

/// Something that a blocked rank waits for is there.
void Engine::came(std::uint32_t r, Time at) {
  Rank& rank = ranks_[r];
  rank.now = std::max(rank.now, at);
  if (--rank.pending == 0 && (rank.state == State::waiting || rank.state == State::probing)) unblock(r, rank.now);
}

/// The rank goes on at `at`.
void Engine::unblock(std::uint32_t r, Time at) {
  Rank& rank = ranks_[r];
  const bool told = rank.flushing || cores_.active() || recorder_ != nullptr || !predictors_.empty();
  CallEvent call;
  if (told) source_.again(r, call);
  if (rank.flushing) [[unlikely]] at = flushed(r, call, at);
  const Time waited = at - rank.blocked;
  rank.now = at;
  if (cores_.active()) {
    const WaitOutcome o = cores_.end_wait(r, rank.blocked, waited, kind_of_wait(call));
    rank.now += o.late;
    waited_ = o.polling + o.changing;  // it draws what polling does
    slept_ = o.resting;
    if (path_ != nullptr) path_->woke(r, o.late);
  } else {
    rank.waiting += waited;
    waited_ = waited;
  }
  if (told) leave_call(r, call);
  if (rank.now - clock_ > machine_.lookahead) {
    rank.state = State::computing;
    queue_.push({rank.now, tie_of(r, r, rank.messages), r, EventKind::resume});
    return;
  }
  run_rank(r);
}

}  // namespace fallow::sim
