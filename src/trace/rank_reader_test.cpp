#include "trace/rank_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "trace/rank_test_writer.hpp"

namespace fallow::trace {
namespace {

using testing::read_rank;
using testing::TestFile;

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

/// The offset named by the refusal of `bytes`; fails the test if they are accepted.
std::uint64_t refused_at(std::vector<std::byte> bytes) {
  try {
    read_rank(std::move(bytes));
  } catch (const RankFileError& e) {
    EXPECT_EQ(std::string(e.what()),
              "test: at offset " + std::to_string(e.offset()) + ": " + e.reason());
    return e.offset();
  }
  ADD_FAILURE() << "accepted";
  return ~0ULL;
}

TEST(RankReader, ReadsWhatWasWritten) {
  const auto reader = read_rank(TestFile{}.build());
  EXPECT_EQ(reader.header().world_rank, 1);
  EXPECT_EQ(field_text(reader.header().host), "node");
  const auto block = reader.block(0);
  EXPECT_EQ(block.counters().thread_id, 4711U);
  EXPECT_EQ(block.ops()[1].calls, 20U);
  ASSERT_EQ(block.sites().size(), 1U);
  EXPECT_EQ(block.sites()[0].slot, 3U);
  EXPECT_EQ(block.sites()[0].stats.address, 0x400123U);
  EXPECT_DOUBLE_EQ(reader.seconds(2'000'000'000).value, 2.0);
  EXPECT_EQ(reader.wall_time(TestFile::kStart + 5'000).value, 1'700'000'000'000'005'000);
}

TEST(RankReader, GivesTheLastEventsOldestFirst) {
  const auto block = read_rank(TestFile{}.build()).block(0);
  const auto events = block.events(1000);
  ASSERT_EQ(events.size(), 16U);
  EXPECT_EQ(events.front().bytes, 4U);
  EXPECT_EQ(events.back().bytes, 19U);
  EXPECT_EQ(block.events(3).front().bytes, 17U);
  EXPECT_EQ(block.events_skipped(), 0U);
  EXPECT_TRUE(block.events(0).empty());
}

TEST(RankReader, LeavesOutAnEventThatIsBeingOverwritten) {
  auto bytes = TestFile{}.build();
  const std::size_t ring = bytes.size() - 16 * sizeof(Event);
  put<std::uint64_t>(bytes, ring + 4 * sizeof(Event) + offsetof(Event, exit), 1ULL << 40);  // the oldest
  const auto block = read_rank(bytes).block(0);
  EXPECT_EQ(block.events(1000).size(), 15U);
  EXPECT_EQ(block.events_skipped(), 1U);
}

TEST(RankReader, LeavesOutAnEventFromBeforeTheStart) {
  auto bytes = TestFile{}.build();
  const std::size_t ring = bytes.size() - 16 * sizeof(Event);
  put<std::uint64_t>(bytes, ring + 4 * sizeof(Event) + offsetof(Event, enter), TestFile::kStart - 1);  // the oldest
  const auto block = read_rank(bytes).block(0);
  EXPECT_EQ(block.events(1000).front().bytes, 5U);
  EXPECT_EQ(block.events_skipped(), 1U);
}

TEST(RankReader, LeavesOutIndicesThatPointNowhere) {
  auto bytes = TestFile{}.build();
  const std::size_t sites = kHeaderBytes + sizeof(ThreadCounters) + 4 * sizeof(OpStats);
  put<std::uint32_t>(bytes, sites + 3 * sizeof(SiteStats) + offsetof(SiteStats, module), 1);
  EXPECT_EQ(read_rank(bytes).block(0).sites()[0].stats.module, kNoModule);
  put<std::uint32_t>(bytes, sites + 3 * sizeof(SiteStats) + offsetof(SiteStats, op), 4);
  EXPECT_TRUE(read_rank(bytes).block(0).sites().empty());
}

TEST(RankReader, NamesTheOffsetOfWhatIsWrong) {
  const auto good = TestFile{}.build();
  auto bad = good;
  put<char>(bad, 0, 'X');
  EXPECT_EQ(refused_at(bad), 0U);
  bad = good;
  put<std::uint32_t>(bad, offsetof(RankHeader, version), kRankVersion - 1);
  EXPECT_EQ(refused_at(bad), offsetof(RankHeader, version));
  bad = good;
  put<std::uint32_t>(bad, offsetof(RankHeader, ring_events), 0xffffffffU);
  EXPECT_EQ(refused_at(bad), offsetof(RankHeader, ring_events));
  bad = good;
  put<std::uint64_t>(bad, offsetof(RankHeader, block_bytes), ~0ULL);
  EXPECT_EQ(refused_at(bad), offsetof(RankHeader, block_bytes));
  bad = good;
  for (const double rate : {std::nan(""), 0.0, 1e12}) {
    put<double>(bad, offsetof(RankHeader, tick_hz), rate);
    EXPECT_EQ(refused_at(bad), offsetof(RankHeader, tick_hz)) << rate;
  }
  bad = good;
  put<std::int32_t>(bad, offsetof(RankHeader, world_rank), 4);
  EXPECT_EQ(refused_at(bad), offsetof(RankHeader, world_rank));
}

TEST(RankReader, NamesEachSizeThatIsNotItsOwn) {  // an operation or a module too many would be read behind their tables
  const auto good = TestFile{}.build();
  const auto refused_with = [&](std::size_t offset, std::uint32_t value) {
    auto bad = good;
    put<std::uint32_t>(bad, offset, value);
    EXPECT_EQ(refused_at(bad), offset) << value;
  };
  for (const std::size_t offset :
       {offsetof(RankHeader, header_bytes), offsetof(RankHeader, bins), offsetof(RankHeader, op_info_bytes), offsetof(RankHeader, counters_bytes),
        offsetof(RankHeader, op_stats_bytes), offsetof(RankHeader, site_stats_bytes), offsetof(RankHeader, event_bytes)}) {
    std::uint32_t own = 0;
    std::memcpy(&own, good.data() + offset, sizeof own);
    refused_with(offset, own - 1);
    refused_with(offset, own + 1);
  }
  refused_with(offsetof(RankHeader, op_slots), kMaxOps + 1);
  refused_with(offsetof(RankHeader, site_slots), (1U << 20) + 1);
  refused_with(offsetof(RankHeader, ring_events), (1U << 24) + 1);
  refused_with(offsetof(RankHeader, blocks_used), kMaxBlocks + 1);
  refused_with(offsetof(RankHeader, modules_used), kMaxModules + 1);
}

TEST(RankReader, RefusesTruncationAtItsEnd) {
  auto bytes = TestFile{}.build();
  bytes.resize(bytes.size() - 1);
  EXPECT_EQ(refused_at(bytes), bytes.size());
  bytes.resize(kHeaderBytes - 1);
  EXPECT_EQ(refused_at(bytes), bytes.size());
  EXPECT_EQ(refused_at({}), 0U);
}

TEST(RankReader, OpensFilesAndNothingElse) {
  const auto dir = std::filesystem::temp_directory_path();
  const auto path = dir / ("rank_reader_test." + std::to_string(::getpid()));
  const auto bytes = TestFile{}.build();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()),
                                              static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(RankReader::open(path).block(0).counters().events, 20U);
  std::filesystem::remove(path);
  EXPECT_THROW(RankReader::open(path), RankFileError);
  EXPECT_THROW(RankReader::open(dir), RankFileError);
  EXPECT_THROW(RankReader::open("/dev/null"), RankFileError);
}

TEST(RankReader, TimesOfDamagedTicksStayFinite) {
  auto bytes = TestFile{}.build();
  put<std::uint64_t>(bytes, offsetof(RankHeader, wall_start_ns), ~0ULL);
  const auto reader = read_rank(bytes);
  EXPECT_GT(reader.wall_time(~0ULL).value, reader.wall_time(0).value);
}

}  // namespace
}  // namespace fallow::trace
