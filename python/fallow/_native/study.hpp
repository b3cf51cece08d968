// Predictors over the ranks of a trace: streams each rank through many of them at once, in threads of its own, so
// that whoever asked can show how far it is, or give up. Memory does not grow with the length of the trace.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "predict/evaluate.hpp"
#include "predict/gap_histogram.hpp"
#include "predict/node_link.hpp"
#include "predict/registry.hpp"
#include "trace/file_reader.hpp"

namespace fallow::study {

/// One predictor with its options. Its `options.future` is set by the study.
struct Way {
  std::string predictor;
  predict::PredictorOptions options;
};

/// A rank's calls as predictors see them.
///
/// A rank is one stream, whatever its threads: calls that overlap are moved so that a gap is time in which no
/// thread of the rank is in MPI. Where computation was measured as CPU time the clock is rebuilt from it, because
/// all other times tell of the cores that the ranks shared: gaps are computation, and calls last what they lasted
/// less what they waited, but at most what a fast network would take (2 us and 5 GB/s). What a thread has computed counts as
/// far as it is more than what the others have since its last call: they compute at the same time. So the run time is a
/// lower bound, and shares of it, like that of delay, are upper bounds.
class RankCalls {
 public:
  RankCalls(trace::EventSource& source, std::uint32_t rank);
  bool next(predict::Event& event);

 private:
  /// CPU time that the rank has computed before the call that was read, beyond what it had before the last one.
  std::int64_t computed();

  trace::EventSource& source_;
  std::uint32_t rank_;
  trace::CallEvent raw_;
  std::int64_t exit_ = 0;
  std::int64_t computed_ = 0;               ///< by the rank since its first call
  std::vector<std::int64_t> computed_then_; ///< by thread: the same at its last call
  bool first_ = true;
};

struct RankResult {
  std::uint32_t rank = 0;
  predict::GapHistogram gaps;
  std::vector<predict::Evaluation> ways;
};

struct NodeResult {
  std::vector<std::uint32_t> ranks;
  std::vector<predict::NodeEvaluation> ways;
};

struct Cost {
  double ns = 0;             ///< per call, median of the rounds' means
  std::uint64_t calls = 0;   ///< that each round had
};

/// What was and what was predicted, call by call. Times as recorded (not moved by delays), ns.
struct Timeline {
  std::vector<std::int64_t> enter, exit;
  std::vector<std::uint16_t> op;
  struct Row {
    std::vector<std::int64_t> rest, expected;  ///< after each call; 0: none
    std::vector<std::int64_t> silence;         ///< after which a rest begins that lasts until the next call; 0: none does
  };
  std::vector<Row> ways;
};

class Study {
 public:
  explicit Study(std::vector<std::string> paths);  ///< throws TraceFileError
  ~Study();
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  [[nodiscard]] trace::TraceReader& reader() noexcept { return reader_; }

  // One of these at a time; the result is there when wait() has returned true. `threads` 0: as many as processors.
  void start_ranks(std::vector<Way> ways, std::vector<std::uint32_t> ranks, unsigned threads);
  void start_nodes(std::vector<Way> ways, std::vector<std::vector<std::uint32_t>> nodes, unsigned threads);
  void start_costs(std::vector<Way> ways, std::uint32_t rank, std::uint64_t most_calls);
  void start_timeline(std::vector<Way> ways, std::uint32_t rank, std::uint64_t from_ns, std::uint64_t most_calls);

  /// Waits for the end, at most so long. Throws what the work has thrown (TraceFileError).
  bool wait(std::chrono::milliseconds most);
  /// Share of the work that is done, 0 to 1.
  [[nodiscard]] double progress() const noexcept;
  /// Makes the work end soon, without a result.
  void cancel() noexcept { cancelled_ = true; }

  [[nodiscard]] const std::vector<RankResult>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::vector<NodeResult>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<Cost>& costs() const noexcept { return costs_; }
  [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }

 private:
  using Job = std::function<void(trace::TraceReader&)>;
  void start(std::vector<Job> jobs, std::uint64_t work, unsigned threads);
  void work_off();
  void evaluate_rank(trace::TraceReader& reader, RankResult& into, std::size_t first, std::size_t count);
  void evaluate_node(trace::TraceReader& reader, NodeResult& into, std::size_t way);
  void measure(trace::TraceReader& reader, std::uint32_t rank, std::uint64_t most_calls);
  void draw(trace::TraceReader& reader, std::uint32_t rank, std::uint64_t from_ns, std::uint64_t most_calls);
  [[nodiscard]] std::uint64_t events_of(std::uint32_t rank) const;

  std::vector<std::string> paths_;
  trace::TraceReader reader_;
  std::vector<Way> ways_;
  std::vector<RankResult> ranks_;
  std::vector<NodeResult> nodes_;
  std::vector<Cost> costs_;
  Timeline timeline_;

  std::vector<Job> jobs_;
  std::atomic<std::size_t> next_job_{0};
  std::atomic<std::uint64_t> done_{0};
  std::uint64_t work_ = 0;
  std::atomic<bool> cancelled_{false};
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace fallow::study
