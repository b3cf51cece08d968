// What links, cards and lanes come to where rests, calls and the end of the run meet.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

TEST(Busy, IsWhatWasSentAlsoWhereALinkIsOnItsWayBackAtTheEnd) {
  constexpr std::uint64_t kBytes = 1024;
  Machine machine = crossbar(2);
  Program p(2);
  p.compute(100'000).p2p(0, Op::send, 1, kBytes).p2p(1, Op::recv, 0, kBytes);
  for (std::uint32_t r : {0u, 1u}) p.compute(500'000).collective(r, Op::init, 0);  // wakes the links, and is the last
  for (const Time deep_timer : {kNever, 50 * kUs}) {
    PolicyOptions options;
    options.deep_timer = deep_timer;
    EXPECT_EQ(p.run(machine, make_policy("calls", options, machine)).edge.busy, 2 * kPerKib);
  }
}

TEST(Busy, LeavesOutWhatIsSentAfterTheEndAloneWhereALinkWakesForIt) {
  Machine machine = crossbar(2);
  Program p(2);
  p.p2p(0, Op::send, 1, 1024).p2p(1, Op::recv, 0, 1024);
  p.compute(500'000).p2p(0, Op::send, 1, 32768).compute(1'000).collective(1, Op::init, 0);  // nobody receives it
  PolicyOptions options;
  options.deep_timer = 50 * kUs;
  EXPECT_EQ(p.run(machine, make_policy("hardware", options, machine)).edge.busy, 2 * kPerKib);
}

}  // namespace
}  // namespace fallow::sim
