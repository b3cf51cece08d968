// The replay engine: discrete events over the calls that a source gives for each rank. A rank runs until a call of
// its blocks or its computation goes beyond Machine::lookahead; messages go through the network; collectives are
// carried out message by message as fallow::coll has them. Deterministic: the same input gives the same result.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "coll/schedule.hpp"
#include "sim/cores.hpp"
#include "sim/details.hpp"
#include "sim/event_queue.hpp"
#include "sim/machine.hpp"
#include "sim/lags.hpp"
#include "sim/match.hpp"
#include "sim/network.hpp"
#include "sim/node_pool.hpp"
#include "sim/node_rest.hpp"
#include "sim/policy.hpp"
#include "sim/recorder.hpp"
#include "sim/request_table.hpp"
#include "sim/result.hpp"
#include "sim/side_tables.hpp"
#include "sim/size_check.hpp"
#include "sim/slice.hpp"
#include "trace/event.hpp"

namespace fallow::sim {

/// Somebody had it stopped.
class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("the simulation was stopped") {}
};

/// The program cannot be replayed: what() names ranks, calls and their positions.
class SimError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Engine {
 public:
  /// `source` is read from its first events on and must outlive the engine; with several threads, each rank by one
  /// of them. The result does not depend on `threads`: the machine is cut into domains whatever it is. Throws SimError
  /// or std::invalid_argument if program and machine do not fit.
  Engine(const Machine& machine, const Policy& policy, trace::EventSource& source, unsigned threads = 1);

  /// Replays all. Once per engine. Throws SimError on a deadlock or a call that makes no sense.
  Result run();
  /// How many threads run() uses: at most as many as there are domains.
  unsigned threads() const noexcept { return static_cast<unsigned>(1 + others_.size()); }

  /// Before run(): tells it what happens.
  /// It runs on one thread then; throws std::invalid_argument if it was made for more.
  void record(Recorder& recorder);

  /// Before run(): it throws Stopped soon after `stop` is set, by whatever thread, also amid a call of many messages.
  void stop_by(const std::atomic<bool>& stop) noexcept {
    stop_ = &stop;
    for (const auto& other : others_) other->stop_ = &stop;
  }

  /// By rank and by link, after run(). Of links between switches those that carried anything.
  Details details() const;

 private:
  friend class Team;
  Engine(const Machine& machine, const Policy& policy, trace::EventSource& source, Share share);

  enum class State : std::uint8_t { ready, computing, waiting, probing, ended };

  struct alignas(32) Rank {
    Time now = 0;
    Time blocked = 0;      // since when it waits
    Time computing = 0, waiting = 0;
    std::uint64_t calls = 0;
    MatchQueue posted, unexpected;
    std::uint32_t pending = 0;     // what it waits for
    std::uint32_t messages = 0;    // sent, for the order of events
    std::uint32_t collectives = 0; // on the world, for their tags
    std::uint32_t one_sided = 0;   // operations under way
    std::uint32_t spare = kNone;   // its own free requests
    RequestTables::Table requests;
    trace::Op op = trace::Op::other;  // of its present call
    State state = State::ready;
    bool loaded : 1 = false;       // its next call has been read
    bool flushing : 1 = false;     // `pending` counts one-sided operations as well
    bool entered : 1 = false;      // with marks: what serves it wakes for that call
  };
  static_assert(sizeof(Rank) == 96);

  /// A collective under way.
  struct alignas(64) Collective {
    Time now = 0;
    Time reduce = 0;               // combining due when what is pending has come
    std::uint64_t bytes = 0;       // of its shape
    std::uint32_t member = 0;      // its rank in the communicator
    std::uint32_t size = 1;
    std::uint32_t root_or_plan = 0;
    std::uint32_t rank = 0;
    std::uint32_t comm = 0;
    std::uint32_t step = 0, steps = 0;
    std::uint32_t tag = 0;
    std::uint32_t request = kNone; // kNone: the rank is blocked in it
    std::uint32_t pending : 24 = 0;
    std::uint32_t issuing : 1 = 0;
    std::uint32_t planned : 1 = 0; // its steps are a plan's, not those of `algorithm`
    std::uint32_t algorithm : 6 = 0;
  };
  static_assert(sizeof(Collective) == 64 && coll::kAlgorithms < 1 << 6 && 2 * kMaxRanks < 1 << 24);
  coll::Step step_of(const Collective& c, std::uint32_t step) const noexcept;
  void drop_plan(const Collective& c) {
    if (c.planned != 0) [[unlikely]] side_.drop(c.root_or_plan);
  }

  /// Some of the events that come next, by what they are about. What is behind the counts may be anything.
  struct Upcoming {
    static constexpr std::size_t kMost = 8;
    std::uint32_t passes = 0, deliveries = 0, others = 0;
    std::array<std::uint32_t, kMost> held{}, targets{};  // of messages that pass on
    std::array<std::uint32_t, kMost> receivers{};
    std::array<ShortEvent, kMost> other{};
  };

  static constexpr std::uint32_t kTogether = 6;            // requests of one rank side by side: whole cache lines
  static constexpr std::uint32_t kCompleted = 0xfffffffe;  // a request that needs no record any more

  // engine.cpp: the loop, one rank's progress
  void begin() noexcept { starting_ = ranks_.first(); }
  Time next_time() { return starting_ != ranks_.last() ? 0 : queue_.next_time(); }
  void replay(Time end);
  /// When the last of this share's ranks has ended; kNever: one has not.
  Time ended_at() const noexcept { return ended_ == ranks_.last() - ranks_.first() ? last_end_ : kNever; }
  void start_ranks();
  void happen(const Event& event);
  static std::uint32_t shares(const Machine& machine, const Policy& policy, const trace::EventSource& source, unsigned threads);
  void run_rank(std::uint32_t r);
  bool next_call(std::uint32_t r, trace::CallEvent& call);
  void go_on_at(std::uint32_t r, Time at);
  bool issue(std::uint32_t r, const trace::CallEvent& call);
  void leave_call(std::uint32_t r, const trace::CallEvent& call);
  void unblock(std::uint32_t r, Time at);
  void came(std::uint32_t r, Time at);
  /// What `rank` is to wait for is there at `at` and lags by `lag`.
  void delay(std::uint32_t r, Time at, Time lag);
  /// The rank would have gone on at `since`; what has come holds it until `at`.
  void adopt(std::uint32_t r, Time at, Time since) {
    if (cause_ != nullptr && at > since) [[unlikely]] path_->adopt(*cause_, r, at);
  }

  /// While it lives, the message is what adopt() adopts: its record may be used again meanwhile.
  class Told {
   public:
    Told(Engine& engine, std::uint32_t message) {
      if (engine.path_ == nullptr) [[likely]] return;
      engine_ = &engine;
      before_ = engine.cause_;
      message_ = engine.path_->receive(message);
      engine.cause_ = &*message_;
    }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    ~Told() {
      if (engine_ == nullptr) [[likely]] return;
      engine_->path_->forget();
      engine_->cause_ = before_;
    }

   private:
    Engine* engine_ = nullptr;
    const PathMessage* before_ = nullptr;
    std::optional<PathMessage> message_;
  };
  std::uint64_t kind_of_wait(const trace::CallEvent& call) const noexcept;
  // engine_ahead.cpp
  void fetch_ahead() noexcept;
  void sort_out(Upcoming& upcoming) const noexcept;
  void fetch_first(const ShortEvent& event) const noexcept;
  void fetch_second(const ShortEvent& event) const noexcept;
  void fetch_third(const ShortEvent& event) const noexcept;
  void fetch_receive(std::uint32_t r) const noexcept;
  void fetch_end(std::uint32_t r) const noexcept;
  void fetch_start(std::uint32_t r) const noexcept;
  void prefetch_starting() const noexcept;

  // engine_marks.cpp
  bool enter_marked(std::uint32_t r, const trace::CallEvent& call);
  bool wants_all_lanes(const trace::CallEvent& call) const noexcept;

  // engine_p2p.cpp
  bool send(std::uint32_t r, const trace::CallEvent& call, std::uint16_t flags);
  bool receive(std::uint32_t r, const trace::CallEvent& call);
  bool send_receive(std::uint32_t r, const trace::CallEvent& call);
  void start_send_receive(std::uint32_t r, const trace::CallEvent& call);
  bool block_on(std::uint32_t r, std::uint32_t node);
  bool probe(std::uint32_t r, const trace::CallEvent& call);
  void check_length(std::uint32_t r, std::uint64_t bytes) const;
  std::uint32_t start_send(std::uint32_t r, std::uint32_t request, std::uint64_t key, std::int32_t tag, std::uint32_t to,
                           std::uint64_t bytes, std::uint16_t flags, Time& now);
  Time looks_for_messages(std::uint32_t r, const trace::CallEvent& call) const noexcept;
  bool post(std::uint32_t request, Time& now);
  /// A step of a collective may be posted ahead of the clock, and so of what has come before it.
  void came_before(Request& receive, Time at) const noexcept {
    if (at < receive.time) receive.time += machine_.message.unexpected;
  }
  void arrive(const Event& event);
  void deliver(const Event& event);
  void unexpected(std::uint32_t message, Time at);
  void sent(const Event& event);
  void match(std::uint32_t receive, std::uint32_t message, Time at);
  void complete(std::uint32_t request, Time at, Time lag);
  void transmit(std::uint32_t message, Time at);
  void one_sided(std::uint32_t r, const trace::CallEvent& call);
  void one_sided_arrived(std::uint32_t message, Time at);
  bool flush(std::uint32_t r);

  // engine_requests.cpp
  bool wait(std::uint32_t r, const trace::CallEvent& call);
  void keep(std::uint32_t r, const trace::CallEvent& call, std::uint32_t what);
  void make_persistent(std::uint32_t r, const trace::CallEvent& call, std::uint16_t flags);
  void aim(std::uint32_t r, Request& n, const Persistent& made, std::uint64_t outcome, std::uint64_t tag);
  void start(std::uint32_t r, const trace::CallEvent& call);
  void ready(std::uint32_t r, const trace::CallEvent& call);
  void cancel(std::uint32_t r, const trace::CallEvent& call);
  void release(std::uint32_t r, const trace::CallEvent& call);
  std::uint32_t& request(std::uint32_t r, std::uint32_t number);
  /// A fresh request of this rank. Each rank keeps its own, which lie side by side, so that its queue does too.
  std::uint32_t take_request(std::uint32_t r);
  std::uint32_t rank_of(std::uint32_t request) const noexcept { return rows_[request / kTogether]; }
  void give_request(std::uint32_t request);

  // engine_stalls.cpp
  std::vector<std::uint32_t> requests_of(std::uint32_t r) const;
  bool only_sends(std::uint32_t r, std::uint32_t request) const;
  bool may_go_on(std::uint32_t r, bool receives) const;
  bool let_go();
  void check_let_go() const;

  // engine_coll.cpp
  bool collective(std::uint32_t r, const trace::CallEvent& call);
  void pass(std::uint32_t r, const trace::CallEvent& call);
  bool synchronize(std::uint32_t r, const trace::CallEvent& call);
  bool nothing_for(const Collective& c, const trace::CallEvent& call) const noexcept;
  std::uint32_t prepare(std::uint32_t r, coll::Operation operation, const trace::CallEvent& call);
  bool begin(std::uint32_t r, std::uint32_t index);
  bool launch(std::uint32_t r, std::uint32_t index);
  bool advance(std::uint32_t index);
  void exchange(Collective& c, std::uint32_t index, const coll::Step& step);
  bool exchange_counts(std::uint32_t index, const trace::CallEvent& call);
  void collective_part_done(std::uint32_t index, Time at, Time lag);
  bool begun(std::uint32_t r, std::uint32_t index, bool done);
  void finish(std::uint32_t index);
  std::uint32_t next_tag(std::uint32_t r, std::uint32_t comm, std::uint32_t kind);
  std::uint32_t collectives_of(std::uint32_t r, std::uint32_t comm) const;
  void add_unreceived(Unreceived& left, std::uint32_t r) const;
  bool may_take(std::uint32_t r, const Node& m, std::uint32_t made) const;
  std::string differing() const;
  void check_collectives() const;
  std::string collective_partner(std::uint32_t r) const;

  // engine_plans.cpp: collectives along neighbours and between two groups
  std::uint32_t planned(std::uint32_t r, const trace::CallEvent& call);
  void learn_neighbors(std::uint32_t r, const trace::CallEvent& call);
  const Neighbors* neighbors_on(std::uint32_t r, std::uint32_t comm) const;
  bool neighbor_steps(std::uint32_t r, const trace::CallEvent& call, Plan& plan);

  // engine_epochs.cpp: post, start, complete and wait
  bool epoch(std::uint32_t r, const trace::CallEvent& call);
  void notify(std::uint32_t r, std::uint32_t comm, std::uint32_t to, std::int32_t tag, Time& now);
  bool await(std::uint32_t r, std::uint32_t comm, const std::vector<std::uint32_t>& from, std::int32_t tag);
  Time flushed(std::uint32_t r, const trace::CallEvent& call, Time at);

  // engine_files.cpp
  bool file(std::uint32_t r, const trace::CallEvent& call);
  std::uint32_t access(std::uint32_t r, std::uint64_t bytes);

  // engine_report.cpp
  Result result() const;
  [[noreturn]] void refuse(std::uint32_t r, const std::string& what) const;
  std::string describe_stall() const;
  [[noreturn]] void deadlock() const;
  void add_to(Result& result) const;
  void add_to(Details& details) const;
  void add_link(Details& details, std::uint32_t link, Time end) const;
  /// Calls `f` with the engine of each share, in order of their ranks.
  template <class F>
  void each_share(F&& f) const {
    f(*this);
    for (const auto& other : others_) f(*other);
  }
  std::string describe(std::uint32_t r, const Engine& all) const;
  std::string untaken(const Engine& share, std::uint32_t r) const;

  /// Waits for what will be there at `at`, within the lookahead.
  void catch_up(std::uint32_t r, Time at, Time lag) {
    Rank& rank = ranks_[r];
    if (lags_ != nullptr) [[unlikely]] delay(r, at, lag);
    if (at <= rank.now) return;
    rank.waiting += at - rank.now;
    if (recorder_ != nullptr) [[unlikely]] recorder_->caught_up(r, at - rank.now);
    rank.now = at;
  }
  Time lag_of_rank(std::uint32_t r) { return lags_ != nullptr ? lags_->rank(r) : 0; }
  Time lag_of_message(std::uint32_t m) { return lags_ != nullptr ? lags_->message(m) : 0; }
  Time lag_of_request(std::uint32_t n) { return lags_ != nullptr ? lags_->request(n) : 0; }
  /// Where a call is counted that is replayed without its messages.
  std::uint64_t& left_out(const trace::CallEvent& call) noexcept {
    return (call.flags & trace::kEventFailed) != 0 ? refused_ : unplaced_;
  }
  std::uint32_t context(const trace::CallEvent& call) const noexcept {
    return call.comm == trace::kCommNone ? trace::kCommWorld : call.comm;
  }
  std::uint32_t world(std::uint32_t r, std::uint32_t comm, std::int32_t peer) const {
    if (comm == trace::kCommWorld && static_cast<std::uint32_t>(peer) < size_) [[likely]] return static_cast<std::uint32_t>(peer);
    return world_of(r, comm, peer);
  }
  std::uint32_t world_of(std::uint32_t r, std::uint32_t comm, std::int32_t peer) const;
  std::uint32_t source_of(std::uint32_t r, std::uint32_t comm, std::int32_t peer) const {
    return peer < 0 ? kAnySource : world(r, comm, peer);
  }
  static std::int32_t tag_of(std::int32_t tag) noexcept { return tag < 0 ? kAnyTag : tag; }
  std::uint32_t nodes_in_use() const noexcept { return (size_ - 1) / machine_.node.ranks + 1; }
  bool same_node(std::uint32_t a, std::uint32_t b) const noexcept {
    return a == b || (machine_.node.ranks > 1 && a / machine_.node.ranks == b / machine_.node.ranks);
  }

  Machine machine_;
  Policy policy_;
  trace::EventSource& source_;
  const trace::TraceInfo& info_;
  std::uint32_t size_;  // of the world
  NodePool pool_;
  RequestPool requests_;
  HugeVector<std::uint32_t> rows_;  // of each kTogether requests side by side, the rank
  EventQueue queue_;
  Matcher<Request> posted_;
  Matcher<Node> arrived_;
  Network network_;
  NodeRest rest_;
  Cores cores_;
  RequestTables tables_;
  Pool<Collective> collectives_;
  Slice<Rank> ranks_;
  Slice<Time> entered_;      // when the present call began, for whom has to be told
  Slice<Time> memory_free_;  // when the last message inside its node is through; empty: there was none
  Slice<std::unique_ptr<predict::Predictor>> predictors_;
  struct Worked {
    std::uint64_t searches = 0, restarts = 0;
  };
  Slice<Worked> worked_;  // by each predictor, as far as it has been charged
  SideTables side_;
  std::unordered_map<std::uint64_t, std::uint32_t> tags_;  // (rank, communicator) -> collectives so far
  Recorder* recorder_ = nullptr;
  CriticalPath* path_ = nullptr;
  const PathMessage* cause_ = nullptr;  // the message whose coming is being told
  std::unique_ptr<Lags> lags_;  // where a budget of delay is kept
  Time acting_ = 0;              // lag of who sends or posts
  Time slept_ = 0, waited_ = 0;  // in the call that is being left, for the recorder
  std::uint32_t starting_ = 0;          // the next rank that has not begun
  std::uint32_t ended_ = 0;             // ranks that have ...
  Time last_end_ = 0;                   // ... the last of them then
  Time clock_ = 0;
  std::uint64_t tie_ = 0;  // of the present event
  std::uint64_t events_ = 0, messages_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
  std::uint64_t unplaced_ = 0;          // calls on communicators whose ranks, or whose ranks' neighbors, are not known
  std::string stall_;                   // what all ranks waited for when one that receives was let go first
  std::uint64_t let_go_ = 0;            // calls that a rank has left although what they wait for has not come
  std::uint64_t refused_ = 0;           // calls that returned an error, of which the trace has no more
  TooShort too_short_;                  // where messages are followed one by one
  SizeCheck sizes_;                     // likewise
  std::uint64_t longest_message_;
  std::array<Upcoming, 3> upcoming_;
  std::size_t newest_ = 0;                // of them
  std::uint32_t until_fetch_ = 1;         // events until some more of those that come are looked at
  bool any_source_ = false, cancelled_ = false;  // the trace leaves open which messages some receives have taken
  std::vector<std::unique_ptr<Engine>> others_;  // which replay the other shares
};

}  // namespace fallow::sim
