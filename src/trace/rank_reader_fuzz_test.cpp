// Damages a valid rank file in thousands of reproducible ways. Each result must be read or refused: no crash,
// no endless loop, no allocation out of proportion (the sanitizer builds watch for the rest).
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "trace/rank_test_writer.hpp"

namespace fallow::trace {
namespace {

using testing::read_bytes;
using testing::TestFile;

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

/// Reads everything there is; the sum keeps the reads from being optimized away.
double read_all(std::vector<std::byte> bytes) {
  const RankReader reader = read_bytes(std::move(bytes));
  double sum = static_cast<double>(field_text(reader.header().program).size());
  for (const auto& op : reader.header().ops) sum += static_cast<double>(field_text(op.name).size());
  for (std::uint32_t i = 0; i < reader.block_count(); ++i) {
    const ThreadBlock block = reader.block(i);
    sum += reader.seconds(block.counters().computing).value;
    for (const auto& op : block.ops()) sum += static_cast<double>(op.calls);
    for (const auto& site : block.sites()) {
      EXPECT_LT(site.stats.op, reader.header().op_slots);
      sum += reader.seconds(site.stats.ticks).value;
    }
    std::uint64_t last = 0;
    for (const auto& event : block.events(1U << 20)) {
      EXPECT_LE(last, event.enter);
      last = event.exit;
      sum += static_cast<double>(reader.wall_time(event.enter).value);
    }
  }
  return sum;
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
      EXPECT_TRUE(std::isfinite(read_all(std::move(bytes))));
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
