// Links that wake for calls, or loops of them, without a predictor.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

constexpr Time kReact = 10 * kUs;

TEST(Marks, WakeLinksForEachCallOrEachLoop) {
  Machine machine = crossbar(2);
  Program p(2);
  constexpr int kSteps = 20;
  for (int i = 0; i < kSteps; ++i) {  // a millisecond of computation, then three exchanges 5 us apart
    for (std::uint32_t r = 0; r < 2; ++r) {
      for (int k = 0; k < 3; ++k) p.compute(k == 0 ? 1'000'000 : 5'000).sendrecv(r, 1 - static_cast<std::int32_t>(r), 1 - static_cast<std::int32_t>(r), 8);
    }
  }
  const Result on = p.run(machine);
  const Result loops = p.run(machine, make_policy("loops", {}, machine));
  const Result calls = p.run(machine, make_policy("calls", {}, machine));
  EXPECT_EQ(loops.makespan, on.makespan + kSteps * kReact);  // once for each burst: both ends wake together
  EXPECT_GT(calls.makespan, loops.makespan + kSteps * kReact);
  const Time gaps = 4 * kSteps * (1 * kMs - kReact);
  EXPECT_NEAR(static_cast<double>(loops.edge.low) / static_cast<double>(gaps), 1, 0.02);
}

TEST(Marks, WakeLinksNoSoonerThanTheCallIsMade) {
  Machine machine = crossbar(2);
  machine.message.call_overhead = 100 * kUs;
  for (const char* const name : {"calls", "loops"}) {
    Program p(2);
    p.compute(1'000'000).collective(0, Op::init, 0).compute(1'000'000).p2p(0, Op::recv, 1, 0);  // it asks for its links at 1.1 ms
    p.compute(920'000).p2p(1, Op::send, 0, 1024);                                               // a message comes at 1.02 ms
    const Result r = p.run(machine, make_policy(name, {}, machine));
    EXPECT_EQ(r.edge.late, 2u) << name;
    EXPECT_EQ(r.edge.delay, 2 * kReact) << name;  // it wakes the link then
  }
}

TEST(Marks, LinksRestOnlyWhenAllRanksOfTheNodeHaveLeftTheirCalls) {
  Machine machine = crossbar(2, 2);
  machine.message.overhead = 300 * kUs;
  for (const Contention contention : {Contention::full, Contention::none}) {
    machine.contention = contention;
    Program p(4);
    for (const std::uint32_t r : {0u, 1u, 2u, 3u}) {  // all call at 1 ms; rank 0 is in its call for 300 us, and sends at the end of that
      p.compute(1'000'000);
      if (r == 0) p.p2p(r, Op::send, 2, 1024);
      else if (r == 2) p.p2p(r, Op::recv, 0, 1024);
      else p.collective(r, Op::init, 0);
      p.compute(1'000'000).collective(r, Op::init, 0);
    }
    const Result r = p.run(machine, make_policy("calls", {}, machine));
    EXPECT_EQ(r.edge.late, 0u);
    EXPECT_EQ(r.makespan, 2300 * kUs + kPerKib + kLatency);
  }
}

}  // namespace
}  // namespace fallow::sim
