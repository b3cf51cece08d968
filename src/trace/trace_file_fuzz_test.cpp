// Damages valid trace files in thousands of reproducible ways, with sums that are wrong and with sums made right
// again. Each result must be read or refused: no crash, no endless loop, no allocation out of proportion.
#include <gtest/gtest.h>

#include <random>

#include "trace/crc32c.hpp"
#include "trace/trace_walk.hpp"

namespace fallow::trace {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::walk_trace;

constexpr int kMutations = 15'000;

void damage(std::vector<std::byte>& bytes, std::size_t from, std::size_t to, std::mt19937& random) {
  if (from >= to) return;
  const std::size_t at = from + random() % (to - from);
  switch (random() % 4) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1u << random() % 8);
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(random() % 2 == 0 ? 0xff : 0);
      break;
    case 2:
      for (std::size_t i = at; i < to && i < at + 8; ++i) bytes[i] = static_cast<std::byte>(random());
      break;
    default:
      for (std::size_t i = at; i + 1 < to && i < at + 200; ++i) bytes[i] = bytes[i + 1];
  }
}

struct Place {
  std::size_t begin, end;
};

std::vector<Place> chunks_of(const std::vector<std::byte>& bytes) {
  std::vector<Place> out;
  for (std::size_t at = sizeof(FileHead); at + sizeof(ChunkHead) <= bytes.size();) {
    ChunkHead h;
    std::memcpy(&h, bytes.data() + at, sizeof h);
    if (h.magic != kChunkMagic) break;
    out.push_back({at, at + sizeof h + h.bytes});
    at = out.back().end;
  }
  return out;
}

/// Makes the sums right again, so that what is behind them is tested too.
void mend(std::vector<std::byte>& bytes, Place p) {
  ChunkHead h;
  std::memcpy(&h, bytes.data() + p.begin, sizeof h);
  const std::uint32_t covered[] = {h.type, h.bytes};
  const auto payload = std::span<const std::byte>(bytes).subspan(p.begin + sizeof h, p.end - p.begin - sizeof h);
  h.crc = crc32c(payload, crc32c(std::as_bytes(std::span(covered))));
  std::memcpy(bytes.data() + p.begin, &h, sizeof h);
}

void mend_head(std::vector<std::byte>& bytes) {
  const std::uint32_t crc = crc32c(std::span<const std::byte>(bytes).first(offsetof(FileHead, crc)));
  std::memcpy(bytes.data() + offsetof(FileHead, crc), &crc, sizeof crc);
}

void fuzz(const std::vector<std::byte>& good, std::uint32_t seed) {
  ASSERT_TRUE(walk_trace(good, false));
  const auto chunks = chunks_of(good);
  std::mt19937 random(seed);
  int refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    auto bytes = good;
    if (random() % 8 == 0) {  // anywhere, and the sum does not fit
      damage(bytes, 0, bytes.size(), random);
      if (random() % 2 == 0) bytes.resize(random() % bytes.size());
    } else if (random() % 16 == 0) {
      damage(bytes, 8, offsetof(FileHead, crc), random);
      std::uint32_t few = 0;  // huge runs are legal and slow here
      std::memcpy(&few, bytes.data() + offsetof(FileHead, world_size), sizeof few);
      few %= 5000;
      std::memcpy(bytes.data() + offsetof(FileHead, world_size), &few, sizeof few);
      mend_head(bytes);
    } else {
      for (std::size_t n = 1 + random() % 3; n > 0; --n) {
        const Place p = chunks[random() % chunks.size()];
        damage(bytes, p.begin + sizeof(ChunkHead), p.end, random);
        mend(bytes, p);
      }
    }
    refused += !walk_trace(std::move(bytes));
  }
  EXPECT_GT(refused, kMutations / 4);
}

TEST(TraceFileFuzz, EveryMutationOfAPartIsReadOrRefused) {
  const TemporaryFolder folder;
  testing::write_part(folder / "a", 0, {.steps = 30, .block_events = 50});
  fuzz(read_file(folder / "a"), 1);
}

TEST(TraceFileFuzz, EveryMutationOfAProgramThatComputesForLongIsReadOrRefused) {
  const TemporaryFolder folder;
  testing::write_part(folder / "a", 1, {.steps = 12, .block_events = 20, .computes_long = true});
  fuzz(read_file(folder / "a"), 3);
}

TEST(TraceFileFuzz, EveryMutationOfAMergedFileIsReadOrRefused) {
  const TemporaryFolder folder;
  testing::write_part(folder / "a", 0, {.threads = 2});
  testing::write_part(folder / "b", 1);
  TraceReader parts({folder / "a", folder / "b"});
  merge_trace(parts, folder / "merged");
  fuzz(read_file(folder / "merged"), 2);
}

}  // namespace
}  // namespace fallow::trace
