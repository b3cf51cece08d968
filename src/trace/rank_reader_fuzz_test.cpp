// Damages a valid rank file in thousands of reproducible ways. Each result must be read or refused: no crash,
// no endless loop, no allocation out of proportion (the sanitizer builds watch for the rest).
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "trace/rank_test_writer.hpp"
#include "trace/rank_walk.hpp"

namespace fallow::trace {
namespace {

using testing::TestFile;
using testing::walk_rank;

constexpr int kMutations = 20'000;
constexpr unsigned kSeed = 20'260'101;

/// Values that break careless arithmetic.
constexpr std::uint64_t kHostile[] = {0, 1, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff,
                                      0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff,
                                      0x7ff0000000000000 /* inf */, 0x7ff8000000000000 /* nan */};

void mutate(std::vector<std::byte>& bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  // The fields before the strings decide most; the rest of the file gets its share too.
  const std::size_t reach = below(3) == 0 ? bytes.size() : offsetof(RankHeader, host);
  switch (below(4)) {
    case 0:
      bytes[below(reach)] ^= static_cast<std::byte>(1U << below(8));
      break;
    case 1: {
      const std::uint64_t value = kHostile[below(std::size(kHostile))];
      const std::size_t width = below(2) == 0 ? 4 : 8;
      std::memcpy(bytes.data() + below((reach - 8) / 4) * 4, &value, width);
      break;
    }
    case 2:
      bytes.resize(below(bytes.size()) + 1);
      break;
    default: {
      const std::size_t at = below(reach - 8);
      const std::size_t length = std::min(bytes.size() - at, 1 + below(64));
      for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<std::byte>(below(256));
    }
  }
}

TEST(RankReaderFuzz, EveryMutationIsReadOrRefused) {
  const auto good = TestFile{.blocks = 2}.build();
  std::mt19937 random(kSeed);
  int read = 0, refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    auto bytes = good;
    for (std::size_t n = 1 + random() % 3; n > 0 && bytes.size() > sizeof(RankHeader) + 16; --n) {
      mutate(bytes, random);
    }
    try {
      EXPECT_TRUE(std::isfinite(walk_rank(std::move(bytes))));
      ++read;
    } catch (const RankFileError& e) {
      EXPECT_FALSE(e.reason().empty());
      ++refused;
    }
  }
  EXPECT_GT(read, kMutations / 20);
  EXPECT_GT(refused, kMutations / 20);
}

}  // namespace
}  // namespace fallow::trace
