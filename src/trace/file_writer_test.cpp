// Threads of a rank that share a writer.
#include "trace/file_writer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "trace/stream_writer.hpp"
#include "trace/trace_test_files.hpp"

namespace fallow::trace {
namespace {

TEST(FileWriter, ThreadsDefineCallSitesAndCommunicatorsAtOnce) {
  constexpr std::uint32_t kThreads = 4, kEach = 500;
  const testing::TemporaryFolder folder;
  const std::string path = folder / "a.ftr";
  FileWriter writer;
  FileOptions options;
  options.world_size = 1;
  std::string problem;
  ASSERT_EQ(writer.open(path.c_str(), options, problem), Status::ok) << problem;
  ASSERT_EQ(writer.define_rank(0, {"host", "program", "mpi"}), Status::ok);
  std::atomic<std::uint32_t> waiting{kThreads};
  std::array<std::vector<std::uint32_t>, kThreads> sites, comms;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (--waiting; waiting.load() != 0;) std::this_thread::yield();
      for (std::uint32_t i = 0; i < kEach; ++i) {
        sites[t].push_back(writer.define_site(0, "/bin/app", t * kEach + i, {}));
        comms[t].push_back(writer.define_comm(0, Group::contiguous(0, 1), Group{}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(writer.end_rank(0, 0), Status::ok);
  writer.close();
  const TraceReader trace({path});
  const TraceInfo& info = trace.info();
  ASSERT_EQ(info.sites.size(), 1 + kThreads * kEach);
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    for (std::uint32_t i = 0; i < kEach; ++i) {
      ASSERT_LT(sites[t][i], info.sites.size());
      EXPECT_EQ(info.sites[sites[t][i]].address, t * kEach + i);
      EXPECT_GE(comms[t][i], kFirstComm);
    }
  }
}

/// Takes every descriptor that the process may still have.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &old_);
    const rlimit few{64, old_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken_.push_back(fd);
  }
  ~NoDescriptors() {
    for (const int fd : taken_) ::close(fd);
    setrlimit(RLIMIT_NOFILE, &old_);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit old_{};
  std::vector<int> taken_;
};

TEST(FileWriter, WaitsForADescriptor) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "a.ftr";
  FileWriter writer;
  std::string problem;
  ASSERT_EQ(writer.open(path.c_str(), {.world_size = 1, .keep_open = false}, problem), Status::ok) << problem;
  ASSERT_EQ(writer.define_rank(0, {"host", "program", "mpi"}), Status::ok);
  {
    const NoDescriptors none;
    EXPECT_EQ(writer.define_site(0, "/bin/app", 1, {}), 1U);
    EXPECT_EQ(writer.define_site(0, "/bin/app", 2, {}), 2U);
  }
  EXPECT_EQ(writer.define_site(0, "/bin/app", 3, {}), 3U);
  EXPECT_EQ(writer.end_rank(0, 0), Status::ok);
  EXPECT_EQ(writer.flush(), Status::ok);
  writer.close();
  const TraceReader trace({path});
  ASSERT_EQ(trace.info().sites.size(), 4U);
  for (std::uint32_t i = 1; i < 4; ++i) EXPECT_EQ(trace.info().sites[i].address, i);
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST(FileWriter, KeepsADescriptorOnlyIfItMay) {
  const testing::TemporaryFolder folder;
  const std::ptrdiff_t before = open_descriptors();
  for (const bool keep : {false, true}) {
    FileWriter writer;
    std::string problem;
    ASSERT_EQ(writer.open((folder / "a.ftr").c_str(), {.world_size = 1, .keep_open = keep}, problem), Status::ok) << problem;
    EXPECT_EQ(open_descriptors(), before + keep);
    ASSERT_EQ(writer.define_rank(0, {"host", "program", "mpi"}), Status::ok);
    EXPECT_EQ(open_descriptors(), before + keep);
    EXPECT_EQ(writer.flush(), Status::ok);
    EXPECT_EQ(open_descriptors(), before + keep);
    writer.close();
    EXPECT_EQ(open_descriptors(), before);
  }
}

TEST(FileWriter, NothingIsLeftOfAnOlderFile) {
  const testing::TemporaryFolder folder;
  testing::write_part(folder / "a.ftr", 0, {.steps = 100});
  testing::write_part(folder / "a.ftr", 0, {.steps = 1});
  TraceReader trace({folder / "a.ftr"});
  EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0];
  EXPECT_EQ(trace.info().ranks[0].events, 4U);
}

TEST(FileWriter, SaysThatNoDescriptorWasLeftToTheEnd) {
  const testing::TemporaryFolder folder;
  FileWriter writer;
  std::string problem;
  ASSERT_EQ(writer.open((folder / "a.ftr").c_str(), {.world_size = 1, .keep_open = false}, problem), Status::ok) << problem;
  const NoDescriptors none;
  EXPECT_EQ(writer.end_rank(0, 0), Status::ok);
  EXPECT_TRUE(writer.ok());
  EXPECT_EQ(writer.flush(), Status::failed);
  EXPECT_EQ(writer.problem(), EMFILE);
}

TEST(StreamWriter, LeavesNothingWhereNotEvenTheRanksFit) {
  const testing::TemporaryFolder folder;
  TraceInfo info;
  info.ranks.resize(1000);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(StreamWriter(folder / "a.ftr", info), TraceFileError);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

/// As two commands do that were told the same name.
TEST(StreamWriter, OneDoesNotDisturbAnotherOfTheSameTrace) {
  const testing::TemporaryFolder folder;
  TraceInfo info;
  info.ranks.resize(1);
  const auto add = [](StreamWriter& writer, int events, std::uint64_t from) {
    for (int i = 0; i < events; ++i) {
      CallEvent event;
      event.enter_ns = from + 1000 * static_cast<std::uint64_t>(i);
      event.exit_ns = event.enter_ns + 10;
      writer.add(0, event);
    }
    writer.end_rank(0, 0);
  };
  StreamWriter one(folder / "a.ftr", info);
  add(one, 20'000, 0);
  StreamWriter two(folder / "a.ftr", info);
  add(two, 3, 7);
  one.finish();
  EXPECT_EQ(TraceReader({folder / "a.ftr"}).info().ranks[0].events, 20'000U);
  two.finish();
  EXPECT_EQ(TraceReader({folder / "a.ftr"}).info().ranks[0].events, 3U);
}

}  // namespace
}  // namespace fallow::trace
