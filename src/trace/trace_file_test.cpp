// Files, reader, merge and cut together.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include <gtest/gtest.h>

#include "trace/trace_test_files.hpp"

namespace fallow::trace {
namespace {

using testing::count_events;
using testing::PartOptions;
using testing::read_bytes;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_part;

TEST(TraceFile, TimesCountFromThePartThatBeganFirstWhereverItStands) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.start_wall_ns = 1'000'000'500});
  write_part(folder / "b", 1);
  TraceReader trace({folder / "a", folder / "b"});
  EXPECT_EQ(trace.info().start_wall_ns, 1'000'000'000u);
  CallEvent e;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(trace.next(rank, e));
    EXPECT_EQ(e.enter_ns, rank == 0 ? 1100u : 600u);
  }
}

TEST(TraceFile, PartsOfARunReadAsOneTrace) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0);
  write_part(folder / "b", 1, {.start_wall_ns = 1'000'000'500});
  TraceReader trace({folder / "a", folder / "b"});
  const TraceInfo& info = trace.info();
  EXPECT_TRUE(trace.problems().empty());
  EXPECT_EQ(info.start_wall_ns, 1'000'000'000u);
  EXPECT_EQ(info.program, "/usr/bin/app");
  ASSERT_EQ(info.ranks.size(), 2u);
  EXPECT_EQ(info.ranks[1].events, 40u);
  EXPECT_TRUE(info.ranks[1].complete);
  ASSERT_EQ(info.comms.size(), kFirstComm + 3u);  // each rank's own, and one that both have
  ASSERT_EQ(info.sites.size(), 5u);
  EXPECT_EQ(info.modules[info.sites[1].module], "/usr/bin/app");
  CallEvent e;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(trace.next(rank, e));
    EXPECT_EQ(e.op, Op::irecv);
    EXPECT_EQ(e.peer, 1 - static_cast<std::int32_t>(rank));
    EXPECT_EQ(e.enter_ns, 600u + 500 * rank);  // 300 ticks of 2 ns
    EXPECT_EQ(e.exit_ns, 800u + 500 * rank);
    ASSERT_EQ(e.requests.size(), 1u);
    ASSERT_TRUE(trace.next(rank, e));
    ASSERT_TRUE(trace.next(rank, e));
    EXPECT_EQ(e.op, Op::waitall);
    EXPECT_EQ(e.comm, kCommNone);
    EXPECT_EQ(e.wait_ns, 100u);
    EXPECT_EQ(e.compute_ns, 600u);
    ASSERT_EQ(e.completed.size(), 2u);
    EXPECT_EQ(e.completed[1], 1u);
    ASSERT_TRUE(trace.next(rank, e));
    EXPECT_EQ(e.op, Op::alltoallv);
    EXPECT_EQ(info.comms[e.comm].group.size(), 2u);
    EXPECT_EQ(info.comms[e.comm].ordinal, 0u);
    ASSERT_EQ(e.recv_counts.size(), 2u);
    EXPECT_EQ(e.recv_counts[1], 40u);
    trace.rewind(rank);
  }
  EXPECT_EQ(count_events(trace), 80u);
}

void expect_equal_traces(TraceReader& a, TraceReader& b) {
  CallEvent x, y;
  ASSERT_EQ(a.info().ranks.size(), b.info().ranks.size());
  for (std::uint32_t r = 0; r < a.info().ranks.size(); ++r) {
    a.rewind(r), b.rewind(r);
    while (a.next(r, x)) {
      ASSERT_TRUE(b.next(r, y));
      EXPECT_EQ(x.op, y.op);
      EXPECT_EQ(x.enter_ns, y.enter_ns);
      EXPECT_EQ(x.exit_ns, y.exit_ns);
      EXPECT_EQ(x.wait_ns, y.wait_ns);
      EXPECT_EQ(x.thread, y.thread);
      EXPECT_EQ(a.info().comms[x.comm].group, b.info().comms[y.comm].group);
      EXPECT_EQ(a.info().sites[x.site].address, b.info().sites[y.site].address);
      EXPECT_TRUE(std::equal(x.completed.begin(), x.completed.end(), y.completed.begin(), y.completed.end()));
    }
    EXPECT_FALSE(b.next(r, y));
    EXPECT_EQ(a.info().ranks[r].complete, b.info().ranks[r].complete);
  }
}

TEST(TraceFile, MergingKeepsEverything) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.threads = 3});
  write_part(folder / "b", 1, {.start_wall_ns = 2'000'000'000, .ends_well = false});
  TraceReader parts({folder / "a", folder / "b"});
  merge_trace(parts, folder / "merged");
  TraceReader merged({folder / "merged"});
  EXPECT_TRUE(merged.problems().empty());
  expect_equal_traces(parts, merged);
  merge_trace(merged, folder / "again");
  EXPECT_EQ(read_file(folder / "merged"), read_file(folder / "again"));
  write_trace(merged, folder / "rewritten");
  TraceReader rewritten({folder / "rewritten"});
  expect_equal_traces(merged, rewritten);
  EXPECT_EQ(rewritten.blocks(1).size(), 2u) << "what comes before the first wait, and all else";
}

TEST(TraceFile, ThreadsOfARankComeInOrderOfTime) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.threads = 3});
  TraceReader trace({folder / "a"});
  EXPECT_EQ(trace.info().ranks[0].threads, 3u);
  CallEvent e;
  std::uint64_t last = 0, n = 0;
  while (trace.next(0, e)) {
    EXPECT_LE(last, e.enter_ns);
    last = e.enter_ns;
    CallEvent again;
    trace.again(0, again);
    EXPECT_EQ(std::make_tuple(again.op, again.thread, again.enter_ns), std::make_tuple(e.op, e.thread, e.enter_ns));
    ++n;
  }
  EXPECT_EQ(n, 120u);
  EXPECT_FALSE(trace.next(0, e));
}

TEST(TraceFile, CuttingKeepsTheWindow) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 100});
  write_part(folder / "b", 1, {.steps = 100});
  TraceReader parts({folder / "a", folder / "b"});
  write_trace(parts, folder / "cut", {.from_ns = 10'000, .to_ns = 20'000, .ranks = {1}});
  TraceReader cut({folder / "cut"});
  CallEvent e;
  EXPECT_FALSE(cut.next(0, e));
  std::uint64_t n = 0;
  while (cut.next(1, e)) {
    EXPECT_LT(e.enter_ns, 10'000u);
    ++n;
  }
  EXPECT_NEAR(static_cast<double>(n), 10'000.0 / 806, 2);
  EXPECT_EQ(cut.info().start_wall_ns, 1'000'010'000u);
  for (std::uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(cut.info().ranks[r].left_out + cut.info().ranks[r].events, parts.info().ranks[r].events);
  }
  ASSERT_EQ(cut.problems().size(), 1u);
  write_trace(cut, folder / "again", {.from_ns = 0, .to_ns = ~std::uint64_t{0}, .ranks = {0}});
  TraceReader again({folder / "again"});
  EXPECT_EQ(again.info().ranks[1].left_out, parts.info().ranks[1].events);
}

TEST(TraceFile, CuttingThatIsEndedLeavesNothing) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 20'000});
  TraceReader parts({folder / "a"});
  int looks = 0;
  const auto look = [&looks] {
    if (++looks == 2) throw std::runtime_error("enough");  // amid the one rank's calls
  };
  EXPECT_THROW(write_trace(parts, folder / "cut", {.from_ns = 10'000, .to_ns = ~std::uint64_t{0}, .ranks = {}, .look = look}), std::runtime_error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1);
}

TEST(TraceFile, SeekStartsAtTheBlock) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 100});
  TraceReader trace({folder / "a"});
  trace.seek(0, 100'000);
  CallEvent e;
  ASSERT_TRUE(trace.next(0, e));
  EXPECT_LE(e.enter_ns, 100'000u);
  EXPECT_GT(e.enter_ns, 80'000u);
}

TEST(TraceFile, APartCutAnywhereReadsUpToItsLastWholeBlock) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0);
  const auto whole = read_file(folder / "a");
  std::uint64_t last = 0;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::vector<std::byte> bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    try {
      const auto trace = read_bytes(bytes);
      EXPECT_FALSE(trace->info().ranks[0].complete);
      const std::uint64_t events = count_events(*trace);
      EXPECT_GE(events, last);
      last = events;
    } catch (const TraceFileError& e) {
      EXPECT_NE(std::string(e.what()).find("memory: at offset "), std::string::npos) << e.what();
      EXPECT_LT(n, 200u) << e.what();  // only where head or rank are not there yet
    }
  }
  EXPECT_EQ(last, 40u);
}

TEST(TraceFile, AMergedFileWithoutItsIndexIsScanned) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0);
  write_part(folder / "b", 1);
  TraceReader parts({folder / "a", folder / "b"});
  merge_trace(parts, folder / "merged");
  auto bytes = read_file(folder / "merged");
  bytes.resize(bytes.size() - 7);
  const auto trace = read_bytes(bytes);
  EXPECT_EQ(count_events(*trace), 80u);
  EXPECT_EQ(trace->problems().size(), 1u);
}

TEST(TraceFile, TakesThePlaceOfRegularFilesOnly) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0);
  TraceReader parts({folder / "a"});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder / "to-pipe");
  std::filesystem::create_directory(folder / "directory");
  for (const char* name : {"pipe", "to-pipe", "directory"}) EXPECT_THROW(merge_trace(parts, folder / name), TraceFileError) << name;
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  std::ofstream(folder / "old") << "old";
  std::filesystem::create_symlink("old", folder / "link");
  merge_trace(parts, folder / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  TraceReader again({folder / "old"});
  EXPECT_EQ(count_events(again), 40u);
  for (const auto& file : std::filesystem::directory_iterator(folder / "")) EXPECT_NE(file.path().extension(), ".tmp");
}

TEST(TraceFile, RefusesPartsThatDoNotBelongTogether) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0);
  write_part(folder / "b", 0);
  EXPECT_THROW(TraceReader({folder / "a", folder / "b"}), TraceFileError);
  EXPECT_THROW(TraceReader({folder / "nothing"}), TraceFileError);
  EXPECT_THROW(TraceReader(std::vector<std::string>{}), TraceFileError);
}

TEST(TraceFile, AFullDiskLeavesWholeBlocks) {
  const TemporaryFolder folder;
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  write_part(folder / "a", 0, {.steps = 400});
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  TraceReader trace({folder / "a"});
  EXPECT_TRUE(trace.problems().empty());
  EXPECT_FALSE(trace.info().ranks[0].complete);
  const std::uint64_t n = count_events(trace);
  EXPECT_GT(n, 100u);
  EXPECT_LT(n, 1600u);
}

}  // namespace
}  // namespace fallow::trace
