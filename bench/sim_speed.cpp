// Speed of the simulator: MPI operations per CPU second and bytes per rank on the 3-D stencil (six 8 KB neighbours,
// one wait, one 8-byte all-reduce, 1 ms of computation), from a trace that is decoded meanwhile or made up as it goes;
// each beside its goal. Of three runs of each the one in the middle is shown; those with one and with two threads are made
// in turns, and must give the same bytes.
//
//   sim_speed [RANKS [ITERATIONS [jitter [policy [lookahead-ns [none|full [trace|synth [threads [sums|path]]]]]]]]]
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/synth.hpp"
#include "trace/file_reader.hpp"
#include "trace/stream_writer.hpp"

namespace {

using namespace fallow;

double seconds_of(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Case {
  std::uint32_t ranks;
  std::uint32_t iterations;
  double jitter = 0;
  sim::Contention contention = sim::Contention::full;
  std::string policy = "hardware";
  sim::Time lookahead = 1 * sim::kUs;
  bool from_trace = true;
  unsigned threads = 1;
  bool path = false;  ///< with the critical path and the idle times of links, as `fallow sim` shows them
};

/// Million operations per CPU second that are asked for; 0: none.
double goal_of(const Case& c) {
  if (c.path) return 0;
  if (c.contention == sim::Contention::none) return c.ranks == 4096 ? 5.0 : 0;
  return c.ranks == 4096 ? 3.0 : c.ranks == 32768 ? 1.5 : 0;
}

/// A file that goes away with its owner.
class Scratch {
 public:
  Scratch() : path_("/tmp/fallow-sim-speed-" + std::to_string(getpid()) + ".trace") {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }
  double bytes() const {
    struct stat found {};
    return stat(path_.c_str(), &found) == 0 ? static_cast<double>(found.st_size) : 0;
  }

 private:
  std::string path_;
};

struct Measured {
  sim::Result result;
  unsigned threads = 1;
  double bytes = 0;  ///< of the trace
  double cpu = 0, wall = 0;
};

Measured run(const Case& c) {
  sim::SynthOptions options;
  options.ranks = c.ranks;
  options.iterations = c.iterations;
  options.jitter = c.jitter;
  sim::Machine machine;
  machine.topology = sim::full_fat_tree(c.ranks, 3);
  machine.contention = c.contention;
  machine.lookahead = c.lookahead;
  std::unique_ptr<trace::EventSource> source = sim::synthesize("stencil3d", options);
  const Scratch scratch;
  if (c.from_trace) {
    trace::write_program(*source, scratch.path());
    source = std::make_unique<trace::TraceReader>(std::vector<std::string>{scratch.path()});
  }
  const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID), began = seconds_of(CLOCK_MONOTONIC);
  sim::Engine engine(machine, sim::make_policy(c.policy, {}, machine), *source, c.threads);
  sim::Recorder recorder(c.ranks, 1, nullptr, c.path);
  if (c.path) engine.record(recorder);
  Measured m;
  m.result = engine.run();
  m.cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before;
  m.wall = seconds_of(CLOCK_MONOTONIC) - began;
  m.threads = engine.threads();
  m.bytes = scratch.bytes();
  return m;
}

/// The run of which half took less CPU time.
const Measured& middle(std::vector<Measured>& runs) {
  const auto at = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), at, runs.end(), [](const Measured& a, const Measured& b) { return a.cpu < b.cpu; });
  return *at;
}

void show(const Case& c, const Measured& m) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto calls = static_cast<double>(m.result.calls);
  char goal[16] = "-";
  if (goal_of(c) > 0) std::snprintf(goal, sizeof goal, "%.2f", calls / m.cpu * 1e-6 / goal_of(c));
  std::printf("%8u %5u %5.2f %-4s %-10s %-5s %-4s %2u %8.2f %7s %9.2f %8.0f %7.2f %9.1f %11.6f %8.3f %8.3f\n", c.ranks, c.iterations, c.jitter,
              c.contention == sim::Contention::full ? "full" : "none", c.policy.c_str(), c.from_trace ? "trace" : "synth", c.path ? "path" : "sums", m.threads,
              calls / m.cpu * 1e-6, goal, static_cast<double>(m.result.events) / calls, static_cast<double>(m.result.memory_bytes) / c.ranks,
              m.bytes / calls, static_cast<double>(usage.ru_maxrss) / 1024, sim::seconds(m.result.makespan).value, m.cpu, m.wall);
  std::fflush(stdout);
}

constexpr int kRepeats = 3;

void measure(const Case& c, int repeats = kRepeats) {
  std::vector<Measured> runs;
  for (int i = 0; i < repeats; ++i) runs.push_back(run(c));
  show(c, middle(runs));
}

/// The same work on one and on two threads.
bool compare_threads(Case c) {
  std::vector<Measured> one, two;
  std::vector<double> faster;
  bool same = true;
  for (int i = 0; i < kRepeats; ++i) {
    c.threads = 1;
    one.push_back(run(c));
    c.threads = 2;
    two.push_back(run(c));
    faster.push_back(one.back().wall / two.back().wall);
    same = sim::to_json(one.back().result) == sim::to_json(two.back().result) && same;
  }
  c.threads = 1;
  show(c, middle(one));
  c.threads = 2;
  show(c, middle(two));
  std::sort(faster.begin(), faster.end());
  std::printf("         a second thread: %.2f times as fast (goal 1.5), bytes %s\n", faster[kRepeats / 2], same ? "the same" : "DIFFER");
  std::fflush(stdout);
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("%8s %5s %5s %-4s %-10s %-5s %-4s %2s %8s %7s %9s %8s %7s %9s %11s %8s %8s\n", "ranks", "iter", "jitt", "net", "policy", "from", "of", "th",
              "Mops/cpu", "of goal", "events/op", "B/rank", "B/op", "peak MiB", "simulated s", "cpu s", "wall s");
  if (argc > 1) {
    Case c{static_cast<std::uint32_t>(std::atoi(argv[1])), argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 100u};
    if (argc > 3) c.jitter = std::atof(argv[3]);
    if (argc > 4) c.policy = argv[4];
    if (argc > 5) c.lookahead = std::atoll(argv[5]) * sim::kNs;
    if (argc > 6 && std::strcmp(argv[6], "none") == 0) c.contention = sim::Contention::none;
    if (argc > 7 && std::strcmp(argv[7], "synth") == 0) c.from_trace = false;
    if (argc > 8) c.threads = static_cast<unsigned>(std::atoi(argv[8]));
    c.path = argc > 9 && std::strcmp(argv[9], "path") == 0;
    measure(c, 1);
    return 0;
  }
  constexpr std::uint32_t kSizes[][2] = {{64, 1000}, {512, 200}, {4096, 100}, {32768, 16}};
  bool same = true;
  for (const auto& [ranks, iterations] : kSizes) {
    for (const double jitter : {0.0, 0.05}) {
      measure({ranks, iterations, jitter, sim::Contention::none, "always-on"});
      if (ranks < 4096) {
        measure({ranks, iterations, jitter});
      } else {
        if (ranks == 4096) measure({.ranks = ranks, .iterations = iterations, .jitter = jitter, .path = true});
        same = compare_threads({ranks, iterations, jitter}) && same;
      }
    }
  }
  measure({.ranks = 1u << 20, .iterations = 10, .from_trace = false}, 1);
  return same ? 0 : 1;
}
