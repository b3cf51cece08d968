#include "sim/synth.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

#include "sim/engine.hpp"

namespace fallow::sim {
namespace {

using trace::CallEvent;

/// Sends minus receives per (source, destination, tag).
std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> balance(trace::EventSource& source) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> open;
  CallEvent call;
  for (std::uint32_t r = 0; r < source.info().ranks.size(); ++r) {
    const auto me = static_cast<std::int32_t>(r);
    while (source.next(r, call)) {
      if (call.op == trace::Op::irecv) --open[{call.peer, me, call.tag}];
      if (trace::has(call.op, trace::kOpSends)) ++open[{me, call.peer, call.tag}];
    }
  }
  return open;
}

TEST(Synth, WhatNoTraceCouldHoldIsRefused) {
  SynthOptions options;
  options.compute = Nanoseconds(1'000'000'000'000'000'000);  // 32 years
  options.iterations = 4;
  EXPECT_NO_THROW(synthesize("cg", options));
  options.iterations = 5;
  EXPECT_THROW(synthesize("cg", options), std::invalid_argument);
}

TEST(Synth, EveryMessageHasItsReceiveForAnyNumberOfRanks) {
  for (const SynthInfo& info : synth_programs()) {
    for (const std::uint32_t ranks : {1u, 2u, 3u, 7u, 24u, 64u, 100u}) {
      SynthOptions options;
      options.ranks = ranks;
      options.iterations = 3;
      const auto source = synthesize(info.name, options);
      for (const auto& [ends, left] : balance(*source)) EXPECT_EQ(left, 0) << info.name << " " << ranks;
      for (std::uint32_t r = 0; r < ranks; ++r) source->rewind(r);
      Machine machine;
      machine.topology.nodes = ranks;
      EXPECT_EQ(Engine(machine, {}, *source).run().calls, source->info().ranks[0].events * ranks) << info.name << " " << ranks;
    }
  }
}

TEST(Synth, CallSitesAreNamedSoThatTracesHaveThem) {
  for (const SynthInfo& info : synth_programs()) {
    const auto source = synthesize(info.name, {.ranks = 4, .iterations = 2});
    const auto& sites = source->info().sites;
    std::set<std::string> labels;
    CallEvent call;
    while (source->next(1, call)) {
      ASSERT_TRUE(call.site > 0 && call.site < sites.size()) << info.name;
      labels.insert(sites[call.site].label);
    }
    EXPECT_EQ(labels.size(), sites.size() - 1) << info.name;
  }
}

TEST(Synth, CallsSayWhatOthersOfTheirKindSay) {
  for (const SynthInfo& info : synth_programs()) {
    const auto source = synthesize(info.name, {.ranks = 4, .iterations = 2});
    CallEvent call;
    while (source->next(1, call)) {
      const bool message = call.op == trace::Op::irecv || trace::has(call.op, trace::kOpSends);
      EXPECT_EQ(call.peer != trace::kNoPeer && call.tag != trace::kNoTag, message) << info.name << " " << trace::op_name(call.op);
      EXPECT_EQ(call.bytes == 0, trace::has(call.op, trace::kOpCompletes)) << info.name << " " << trace::op_name(call.op);
      EXPECT_EQ(call.recv_bytes, call.op == trace::Op::alltoall ? call.bytes : 0) << info.name << " " << trace::op_name(call.op);
      EXPECT_EQ(call.root, trace::kNoPeer) << info.name << " " << trace::op_name(call.op);
    }
  }
}

TEST(Synth, JitterVariesEvenlyAndRepeats) {
  SynthOptions options;
  options.ranks = 50;
  options.iterations = 100;
  options.jitter = 0.05;
  double sum = 0;
  for (int round = 0; round < 2; ++round) {
    const auto source = synthesize("alltoall", options);
    CallEvent call;
    double total = 0;
    for (std::uint32_t r = 0; r < 50; ++r) {
      while (source->next(r, call)) {
        EXPECT_GE(call.compute_ns, 950'000u);
        EXPECT_LE(call.compute_ns, 1'050'000u);
        total += static_cast<double>(call.compute_ns);
      }
    }
    EXPECT_NEAR(total / 5000, 1e6, 2e3);
    if (round == 1) {
      EXPECT_EQ(total, sum);
    }
    sum = total;
  }
}

TEST(Synth, RefusesWhatItCannotDo) {
  EXPECT_THROW(synthesize("weather", {}), std::invalid_argument);
  EXPECT_THROW(synthesize("cg", {.ranks = 0}), std::invalid_argument);
  EXPECT_THROW(synthesize("cg", {.ranks = (1u << 20) + 1}), std::invalid_argument);
  EXPECT_THROW(synthesize("cg", {.jitter = 1}), std::invalid_argument);
}

}  // namespace
}  // namespace fallow::sim
