// Speed of the simulator: MPI operations per CPU second and bytes per rank on the 3-D stencil (six 8 KB neighbours,
// one wait, one 8-byte all-reduce, 1 ms of computation).
//
//   sim_speed [RANKS [ITERATIONS [jitter [policy [lookahead-ns [none|full]]]]]]
#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sim/engine.hpp"
#include "sim/synth.hpp"

namespace {

using namespace fallow;

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Case {
  std::uint32_t ranks;
  std::uint32_t iterations;
  double jitter = 0;
  sim::Contention contention = sim::Contention::full;
  std::string policy = "hardware";
  sim::Time lookahead = 1 * sim::kUs;
};

void measure(const Case& c) {
  sim::SynthOptions options;
  options.ranks = c.ranks;
  options.iterations = c.iterations;
  options.jitter = c.jitter;
  sim::Machine machine;
  machine.topology = sim::full_fat_tree(c.ranks, 3);
  machine.contention = c.contention;
  machine.lookahead = c.lookahead;
  const double before = cpu_seconds();
  const auto source = sim::synthesize("stencil3d", options);
  sim::Engine engine(machine, sim::make_policy(c.policy, {}, machine), *source);
  const sim::Result result = engine.run();
  const double cpu = cpu_seconds() - before;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%8u %5u %5.2f %-4s %-10s %8.2f %9.2f %8.0f %10.1f %12.6f %9.4f\n", c.ranks, c.iterations, c.jitter,
              c.contention == sim::Contention::full ? "full" : "none", c.policy.c_str(), static_cast<double>(result.calls) / cpu * 1e-6,
              static_cast<double>(result.events) / static_cast<double>(result.calls),
              static_cast<double>(result.memory_bytes) / c.ranks, static_cast<double>(usage.ru_maxrss) / 1024,
              sim::seconds(result.makespan).value, cpu);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("%8s %5s %5s %-4s %-10s %8s %9s %8s %10s %12s %9s\n", "ranks", "iter", "jitt", "net", "policy", "Mops/cpu", "events/op",
              "B/rank", "peak MiB", "simulated s", "cpu s");
  if (argc > 1) {
    Case c{static_cast<std::uint32_t>(std::atoi(argv[1])), argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 100u};
    if (argc > 3) c.jitter = std::atof(argv[3]);
    if (argc > 4) c.policy = argv[4];
    if (argc > 5) c.lookahead = std::atoll(argv[5]) * sim::kNs;
    if (argc > 6 && std::strcmp(argv[6], "none") == 0) c.contention = sim::Contention::none;
    measure(c);
    return 0;
  }
  constexpr std::uint32_t kSizes[][2] = {{64, 1000}, {512, 200}, {4096, 40}, {32768, 8}};
  for (const auto& [ranks, iterations] : kSizes) {
    for (const double jitter : {0.0, 0.05}) {
      measure({ranks, iterations, jitter, sim::Contention::none, "always-on"});
      measure({ranks, iterations, jitter, sim::Contention::full, "hardware"});
    }
  }
}
