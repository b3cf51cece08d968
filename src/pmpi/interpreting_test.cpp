#include "pmpi/interpreting.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

/// The same without a byte code.
std::uint32_t directly(std::uint32_t value) {
  for (int round = 0; round < 12; ++round) {
    value = (value + 13) ^ 2654435761u * value;
    if (value % 2 != 0) value += 7;
  }
  return value;
}

TEST(Interpreting, ComputesWhatItsProgramSays) {
  for (const std::uint32_t seed : {0u, 1u, 7u, 0x80000000u, 0xffffffffu, 123456789u}) EXPECT_EQ(interpret(seed), directly(seed)) << seed;
}

TEST(Interpreting, IsNeverTakenForFasterThanWhereLimitsWereMeasured) {
  const TickClock clock;
  for (int k = 0; k < 100; ++k) EXPECT_GE(slowness_of_interpreting(clock), 1.0);
}

}  // namespace
}  // namespace fallow::pmpi
