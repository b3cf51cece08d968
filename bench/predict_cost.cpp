// Cost of the predictors per event, side by side in one run: each round times every predictor once over the same
// stream, so that a busy neighbour disturbs all alike; medians over the rounds are compared.
//
//   predict_cost [rounds] [stream]      (51 rounds and all streams by default)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "predict/registry.hpp"
#include "predict/test_streams.hpp"
#include "predict/wait_model.hpp"

namespace {

using namespace fallow;
using namespace fallow::predict;
using Clock = std::chrono::steady_clock;

constexpr int kDefaultRounds = 51;
constexpr std::string_view kCompared[] = {"adaptive", "pps", "spps", "last"};
constexpr std::size_t kCount = std::size(kCompared);
constexpr double kPublishedPerCall = 1300.0;  // ns, Dickov 2015, Table 5.4, mean over programs

/// Times one pass over the stream, ns per event. Streams repeat with their times moved on.
double pass(Predictor& predictor, const std::vector<Event>& stream, Nanoseconds shift, std::int64_t& sink) {
  const auto begin = Clock::now();
  for (Event event : stream) {
    event.enter += shift;
    event.exit += shift;
    sink += predictor.on_enter(event).median.value;
    sink += predictor.on_exit(event).rest_for.value;
  }
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  return took.count() / static_cast<double>(stream.size());
}

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

void measure(const streams::Named& stream, int rounds, std::int64_t& sink) {
  PredictorOptions options;
  std::vector<std::unique_ptr<Predictor>> predictors;
  for (const auto name : kCompared) predictors.push_back(make_predictor(name, options));
  std::vector<double> times[kCount];
  const Nanoseconds length = stream.events.back().exit - stream.events.front().enter + Nanoseconds(1000);
  for (int r = 0; r < rounds; ++r)
    for (std::size_t p = 0; p < kCount; ++p)
      times[p].push_back(pass(*predictors[p], stream.events, length * r, sink));
  double m[kCount];
  std::printf("%-14s", stream.name.c_str());
  for (std::size_t p = 0; p < kCount; ++p) {
    m[p] = median(times[p]);
    std::printf(" %9.1f", m[p]);
  }
  std::printf(" %10.2f %10.2f %12.3f\n", m[0] / m[1], m[0] / m[3], m[0] / kPublishedPerCall);
}

void measure_waits(int rounds, std::int64_t& sink) {
  constexpr unsigned kEach = 20000, kKeys = 16;
  std::vector<std::byte> arena(WaitModel::kBytesPerKey * 64 + 64);
  WaitModel model(arena);
  std::vector<double> observe, plan;
  for (int r = 0; r < rounds; ++r) {
    const auto begin = Clock::now();
    for (unsigned i = 0; i < kEach; ++i) model.observe(i % kKeys, Nanoseconds(1'000'000 + i * 7919 % 40'000));
    const auto between = Clock::now();
    const WaitCosts costs{Nanoseconds(20'000), Nanoseconds(40'000), false, Nanoseconds(0)};
    for (unsigned i = 0; i < kEach; ++i) sink += model.plan(i % kKeys, Nanoseconds(0), costs, 20.0).sleep_for.value;
    const auto end = Clock::now();
    observe.push_back(std::chrono::duration<double, std::nano>(between - begin).count() / kEach);
    plan.push_back(std::chrono::duration<double, std::nano>(end - between).count() / kEach);
  }
  std::printf("wait model: observe %.1f ns, plan %.1f ns\n", median(observe), median(plan));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : kDefaultRounds;
  const char* only = argc > 2 ? argv[2] : "";
  std::int64_t sink = 0;
  std::printf("ns per event, medians of %d rounds; published: pps %.0f ns per call\n", rounds, kPublishedPerCall);
  std::printf("%-14s %9s %9s %9s %9s %10s %10s %12s\n", "stream", "adaptive", "pps", "spps", "last", "/ pps", "/ last",
              "/ published");
  for (const streams::Named& stream : streams::all())
    if (std::strstr(stream.name.c_str(), only) != nullptr) measure(stream, rounds, sink);
  measure_waits(rounds, sink);
  return sink == 42 ? 1 : 0;  // keeps the work from being optimized away
}
