#include "study.hpp"

#include <algorithm>
#include <stdexcept>

namespace fallow::study {
namespace {

using predict::Evaluator;
using predict::Event;
using predict::OraclePredictor;
using predict::Predictor;

constexpr std::size_t kChunk = 4096;     // calls between two looks at the clock, and at whether to go on
constexpr std::size_t kWaysAtOnce = 8;   // predictors that are fed side by side; each has megabytes
constexpr std::size_t kRounds = 5;       // of a measurement
constexpr double kLatencyNs = 2000.0;    // of a call where its own time means nothing: what a fast network takes ...
constexpr double kBytesPerNs = 5.0;      // ... and adds by size

/// A predictor, and the oracle's view if it is one.
struct Fed {
  std::unique_ptr<Predictor> predictor;
  OraclePredictor* oracle = nullptr;
};

Fed make(const Way& way) {
  Fed fed{predict::make_predictor(way.predictor, way.options), nullptr};
  if (fed.predictor == nullptr) throw std::invalid_argument("there is no predictor '" + way.predictor + "'");
  fed.oracle = dynamic_cast<OraclePredictor*>(fed.predictor.get());
  return fed;
}

predict::EvaluateParams params_of(const Way& way) {
  predict::EvaluateParams params;
  params.react = way.options.react;
  params.start_up = way.options.adaptive.start_up;
  return params;
}

/// Reads in chunks, each with one call to look ahead.
class Chunks {
 public:
  Chunks(trace::EventSource& source, std::uint32_t rank) : calls_(source, rank) {
    buffer_.reserve(kChunk + 1);
    Event event;
    if (calls_.next(event)) buffer_.push_back(event);
  }
  /// The calls now to be fed; empty at the end.
  std::span<const Event> next() {
    if (fed_ > 0) buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(fed_));
    Event event;
    while (buffer_.size() <= kChunk && calls_.next(event)) buffer_.push_back(event);
    fed_ = std::min(buffer_.size(), kChunk);
    return {buffer_.data(), fed_};
  }
  /// The same, and the call after them if there is one.
  [[nodiscard]] std::span<const Event> ahead() const noexcept { return buffer_; }

 private:
  RankCalls calls_;
  std::vector<Event> buffer_;
  std::size_t fed_ = 0;
};

/// The ranks of a node for evaluate_node(), each with a view of its next call for the oracle.
class NodeCalls final : public predict::RankEvents {
 public:
  NodeCalls(trace::EventSource& source, const std::vector<std::uint32_t>& ranks, std::vector<Fed>& fed,
            std::function<void(std::uint64_t)> tell)
      : fed_(fed), tell_(std::move(tell)), windows_(ranks.size()) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      calls_.emplace_back(source, ranks[i]);
      windows_[i].ahead = calls_[i].next(windows_[i].events[1]);
    }
  }
  bool next(std::size_t rank, Event& event) override {
    Window& w = windows_[rank];
    if (!w.ahead) return false;
    w.events[0] = event = w.events[1];
    w.ahead = calls_[rank].next(w.events[1]);
    if (fed_[rank].oracle != nullptr) fed_[rank].oracle->look_at({w.events.data(), w.ahead ? 2U : 1U});
    if (++untold_ == kChunk) {
      tell_(untold_);
      untold_ = 0;
    }
    return true;
  }

 private:
  struct Window {
    std::array<Event, 2> events;
    bool ahead = false;
  };
  std::vector<Fed>& fed_;
  std::function<void(std::uint64_t)> tell_;
  std::vector<RankCalls> calls_;
  std::vector<Window> windows_;
  std::uint64_t untold_ = 0;
};

struct Cancelled {};

}  // namespace

RankCalls::RankCalls(trace::EventSource& source, std::uint32_t rank) : source_(source), rank_(rank) { source.rewind(rank); }

std::int64_t RankCalls::computed() {
  if (raw_.thread >= computed_then_.size()) computed_then_.resize(std::size_t{raw_.thread} + 1);
  std::int64_t& then = computed_then_[raw_.thread];
  const std::int64_t by_others = computed_ - then;
  const std::int64_t more = first_ ? 0 : std::max<std::int64_t>(0, static_cast<std::int64_t>(raw_.compute_ns) - by_others);
  then = computed_ += more;
  return more;
}

bool RankCalls::next(Event& event) {
  if (!source_.next(rank_, raw_)) return false;
  const auto enter = static_cast<std::int64_t>(raw_.enter_ns), exit = static_cast<std::int64_t>(raw_.exit_ns);
  auto wait = static_cast<std::int64_t>(raw_.wait_ns);
  if ((raw_.flags & trace::kEventCpuTime) != 0) {
    if (first_) exit_ = enter;
    event.enter = Nanoseconds(exit_ + computed());
    const auto network = static_cast<std::int64_t>(kLatencyNs + static_cast<double>(raw_.bytes + raw_.recv_bytes) / kBytesPerNs);
    event.exit = event.enter + Nanoseconds(std::clamp<std::int64_t>(exit - enter - wait, 0, network));
    wait = 0;
  } else {
    if (first_) exit_ = enter;
    event.enter = Nanoseconds(std::max(enter, exit_));
    event.exit = Nanoseconds(std::max(exit, event.enter.value));
  }
  event.wait = Nanoseconds(std::min(wait, (event.exit - event.enter).value));
  event.op = static_cast<std::uint16_t>(raw_.op);
  event.comm = static_cast<std::uint16_t>(raw_.comm);
  event.peer = raw_.peer;
  event.bytes = raw_.bytes;
  event.site = raw_.site;
  exit_ = event.exit.value;
  first_ = false;
  return true;
}

Study::Study(std::vector<std::string> paths) : paths_(std::move(paths)), reader_(paths_) {}

Study::~Study() {
  cancel();
  for (std::thread& t : threads_) t.join();
}

std::uint64_t Study::events_of(std::uint32_t rank) const {
  if (rank >= reader_.info().ranks.size()) throw std::out_of_range("rank " + std::to_string(rank) + " is not in this trace");
  return reader_.info().ranks[rank].events;
}

void Study::start(std::vector<Job> jobs, std::uint64_t work, unsigned threads) {
  if (!threads_.empty()) throw std::logic_error("the last work has not been waited for");
  jobs_ = std::move(jobs);
  next_job_ = 0;
  done_ = 0;
  work_ = work;
  cancelled_ = false;
  failure_ = nullptr;
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  running_ = std::clamp<std::size_t>(jobs_.size(), 1, threads);
  const std::size_t n = running_;
  for (std::size_t i = 0; i < n; ++i) threads_.emplace_back([this] { work_off(); });
}

void Study::work_off() {
  try {
    trace::TraceReader own(paths_);  // a reader is for one thread
    for (std::size_t i = next_job_++; i < jobs_.size() && !cancelled_; i = next_job_++) jobs_[i](own);
  } catch (const Cancelled&) {
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
    cancelled_ = true;
  }
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) ended_.notify_all();
}

bool Study::wait(std::chrono::milliseconds most) {
  {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, most, [this] { return running_ == 0; })) return false;
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (cancelled_) throw std::runtime_error("cancelled");
  return true;
}

double Study::progress() const noexcept {
  return work_ == 0 ? 1.0 : std::min(1.0, static_cast<double>(done_.load()) / static_cast<double>(work_));
}

void Study::start_ranks(std::vector<Way> ways, std::vector<std::uint32_t> ranks, unsigned threads) {
  ways_ = std::move(ways);
  for (const Way& way : ways_) make(way);  // what is wrong with one is better said here than by a thread
  ranks_.assign(ranks.size(), {});
  std::vector<Job> jobs;
  std::uint64_t work = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks_[r].rank = ranks[r];
    ranks_[r].ways.resize(ways_.size());
    work += events_of(ranks[r]) * std::max<std::size_t>(ways_.size(), 1);
    for (std::size_t first = 0; first == 0 || first < ways_.size(); first += kWaysAtOnce) {
      const std::size_t count = std::min(kWaysAtOnce, ways_.size() - first);
      jobs.push_back([this, r, first, count](trace::TraceReader& own) { evaluate_rank(own, ranks_[r], first, count); });
    }
  }
  start(std::move(jobs), work, threads);
}

void Study::evaluate_rank(trace::TraceReader& reader, RankResult& into, std::size_t first, std::size_t count) {
  std::vector<Fed> fed;
  std::vector<Evaluator> evaluators;
  for (std::size_t i = 0; i < count; ++i) {
    fed.push_back(make(ways_[first + i]));
    evaluators.emplace_back(*fed.back().predictor, params_of(ways_[first + i]));
  }
  Chunks chunks(reader, into.rank);
  bool any = false;
  Nanoseconds last;
  for (auto events = chunks.next(); !events.empty(); events = chunks.next()) {
    for (std::size_t i = 0; i < count; ++i) {
      if (fed[i].oracle != nullptr) fed[i].oracle->look_at(chunks.ahead());
      for (const Event& event : events) evaluators[i].feed(event);
    }
    for (std::size_t i = 0; first == 0 && i < events.size(); ++i) {
      if (any) into.gaps.add(events[i].enter - last);
      last = events[i].exit;
      any = true;
    }
    done_ += events.size() * std::max<std::size_t>(count, 1);
    if (cancelled_) throw Cancelled();
  }
  for (std::size_t i = 0; i < count; ++i) into.ways[first + i] = evaluators[i].result();
}

void Study::start_nodes(std::vector<Way> ways, std::vector<std::vector<std::uint32_t>> nodes, unsigned threads) {
  ways_ = std::move(ways);
  for (Way& way : ways_) {
    way.options.adaptive.silence = 0;  // a node's link rests in windows that all its ranks know beforehand
    make(way);
  }
  nodes_.assign(nodes.size(), {});
  std::vector<Job> jobs;
  std::uint64_t work = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    nodes_[n].ranks = std::move(nodes[n]);
    nodes_[n].ways.resize(ways_.size());
    for (const std::uint32_t rank : nodes_[n].ranks) work += events_of(rank) * ways_.size();
    for (std::size_t w = 0; w < ways_.size(); ++w) {
      jobs.push_back([this, n, w](trace::TraceReader& own) { evaluate_node(own, nodes_[n], w); });
    }
  }
  start(std::move(jobs), work, threads);
}

void Study::evaluate_node(trace::TraceReader& reader, NodeResult& into, std::size_t way) {
  std::vector<Fed> fed;
  std::vector<Predictor*> predictors;
  for (std::size_t i = 0; i < into.ranks.size(); ++i) {
    fed.push_back(make(ways_[way]));
    predictors.push_back(fed.back().predictor.get());
  }
  NodeCalls calls(reader, into.ranks, fed, [this](std::uint64_t events) {
    done_ += events;
    if (cancelled_) throw Cancelled();
  });
  into.ways[way] = predict::evaluate_node(calls, predictors, params_of(ways_[way]));
}

void Study::start_costs(std::vector<Way> ways, std::uint32_t rank, std::uint64_t most_calls) {
  ways_ = std::move(ways);
  for (const Way& way : ways_) make(way);
  const std::uint64_t calls = std::min(events_of(rank), most_calls);
  start({[this, rank, most_calls](trace::TraceReader& own) { measure(own, rank, most_calls); }}, calls * ways_.size() * kRounds, 1);
}

/// Side by side: each round feeds every predictor anew, one chunk after the other. What a chunk takes is the median of the
/// rounds, which all do the same in it: an interruption is longer than many chunks, and would be in most sums of them.
void Study::measure(trace::TraceReader& reader, std::uint32_t rank, std::uint64_t most_calls) {
  std::vector<Event> events;
  RankCalls calls(reader, rank);
  for (Event event; events.size() < most_calls && calls.next(event);) events.push_back(event);
  costs_.assign(ways_.size(), {0, events.size()});
  if (events.empty()) return;
  const std::size_t chunks = (events.size() + kChunk - 1) / kChunk;
  std::vector<std::array<double, kRounds>> took(ways_.size() * chunks);
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<Fed> fed;
    for (const Way& way : ways_) {
      fed.push_back(make(way));
      if (fed.back().oracle != nullptr) fed.back().oracle->look_at(events);
    }
    for (std::size_t c = 0; c < chunks; ++c) {
      const auto chunk = std::span(events).subspan(c * kChunk, std::min(kChunk, events.size() - c * kChunk));
      for (std::size_t w = 0; w < ways_.size(); ++w) {
        const auto begin = std::chrono::steady_clock::now();
        for (const Event& event : chunk) {
          fed[w].predictor->on_enter(event);
          fed[w].predictor->on_exit(event);
        }
        took[w * chunks + c][round] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
      }
      done_ += chunk.size() * ways_.size();
      if (cancelled_) throw Cancelled();
    }
  }
  for (std::size_t i = 0; i < took.size(); ++i) {
    std::nth_element(took[i].begin(), took[i].begin() + kRounds / 2, took[i].end());
    costs_[i / chunks].ns += took[i][kRounds / 2] / static_cast<double>(events.size());
  }
}

void Study::start_timeline(std::vector<Way> ways, std::uint32_t rank, std::uint64_t from_ns, std::uint64_t most_calls) {
  ways_ = std::move(ways);
  for (const Way& way : ways_) make(way);
  timeline_ = {};
  timeline_.ways.resize(ways_.size());
  start({[this, rank, from_ns, most_calls](trace::TraceReader& own) { draw(own, rank, from_ns, most_calls); }},
        events_of(rank), 1);
}

/// Feeds everything up to the window, so that what is shown is what was known by then.
void Study::draw(trace::TraceReader& reader, std::uint32_t rank, std::uint64_t from_ns, std::uint64_t most_calls) {
  std::vector<Fed> fed;
  std::vector<Evaluator> evaluators;
  for (const Way& way : ways_) {
    fed.push_back(make(way));
    evaluators.emplace_back(*fed.back().predictor, params_of(way));
  }
  Chunks chunks(reader, rank);
  for (auto events = chunks.next(); !events.empty() && timeline_.enter.size() < most_calls; events = chunks.next()) {
    const std::size_t before = timeline_.enter.size();
    for (const Event& event : events) {
      if (event.exit.value < static_cast<std::int64_t>(from_ns) || timeline_.enter.size() >= most_calls) continue;
      timeline_.enter.push_back(event.enter.value);
      timeline_.exit.push_back(event.exit.value);
      timeline_.op.push_back(event.op);
    }
    const std::size_t shown = timeline_.enter.size() - before;
    const auto starts = std::find_if(events.begin(), events.end(), [from_ns](const Event& event) {
      return event.exit.value >= static_cast<std::int64_t>(from_ns);
    }) - events.begin();
    for (std::size_t w = 0; w < ways_.size(); ++w) {
      if (fed[w].oracle != nullptr) fed[w].oracle->look_at(chunks.ahead());
      for (std::size_t i = 0; i < events.size(); ++i) {
        const predict::Answer& answer = evaluators[w].feed(events[i]);
        if (i < static_cast<std::size_t>(starts) || i - static_cast<std::size_t>(starts) >= shown) continue;
        timeline_.ways[w].rest.push_back(answer.rest_for.value);
        timeline_.ways[w].expected.push_back(answer.expected_gap.value);
        timeline_.ways[w].silence.push_back(answer.rest_after.value);
      }
    }
    done_ += events.size();
    if (cancelled_) throw Cancelled();
  }
}

}  // namespace fallow::study
