// Post, start, complete and wait; access to files.
#include <gtest/gtest.h>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

constexpr std::uint64_t kMib = 1 << 20;

CallEvent on(Op op, const std::vector<std::uint64_t>& members = {}) {
  CallEvent call;
  call.op = op;
  call.counts = members;
  return call;
}

std::string error_of(Program& p, std::uint32_t nodes) {
  try {
    p.run(crossbar(nodes));
  } catch (const SimError& e) {
    return e.what();
  }
  return {};
}

TEST(Epochs, AStartWaitsForThePostAndAWaitForTheComplete) {
  Program p(2);
  const std::vector<std::uint64_t> zero{0}, one{1};
  p.compute(3000).add(1, on(Op::win_post, zero)).add(1, on(Op::win_wait));
  p.add(0, on(Op::win_start, one)).p2p(0, Op::put, 1, 64 * 1024).add(0, on(Op::win_complete));
  // The post, the data, and the word that it is complete.
  EXPECT_EQ(p.run(crossbar(2)).makespan, 3 * kUs + 3 * kLatency + 64 * kPerKib);
}

TEST(Epochs, AWaitDoesNotTakeAPostForAComplete) {
  Program p(2);
  const std::vector<std::uint64_t> zero{0}, one{1};
  p.add(0, on(Op::win_post, one)).add(0, on(Op::win_wait)).add(0, on(Op::win_start, one)).add(0, on(Op::win_complete));
  p.add(1, on(Op::win_post, zero)).compute(3000).add(1, on(Op::win_start, zero)).add(1, on(Op::win_complete)).add(1, on(Op::win_wait));
  // Rank 1's post is there long before its complete, which rank 0 waits for; then rank 0's complete.
  EXPECT_EQ(p.run(crossbar(2)).makespan, 3 * kUs + 2 * kLatency);
}

/// Rank 0 exposes two windows to different ranks, of which the second begins when the first has ended.
TEST(Epochs, OfTwoWindowsOfOneCommunicatorEndInTheirOrder) {
  Program p(3);
  const std::vector<std::uint64_t> zero{0}, one{1}, two{2};
  p.add(0, on(Op::win_post, one)).add(0, on(Op::win_post, two)).add(0, on(Op::win_wait)).p2p(0, Op::send, 2, 0).add(0, on(Op::win_wait));
  p.compute(3000).add(1, on(Op::win_start, zero)).add(1, on(Op::win_complete));
  p.p2p(2, Op::recv, 0, 0).add(2, on(Op::win_start, zero)).add(2, on(Op::win_complete));
  EXPECT_EQ(p.run(crossbar(3)).makespan, 3 * kUs + 3 * kLatency);
  Program q(3);  // two of them accessed at a time
  q.add(0, on(Op::win_start, one)).add(0, on(Op::win_start, two)).add(0, on(Op::win_complete)).add(0, on(Op::win_complete));
  q.add(1, on(Op::win_post, zero)).add(1, on(Op::win_wait)).add(2, on(Op::win_post, zero)).add(2, on(Op::win_wait));
  EXPECT_EQ(q.run(crossbar(3)).unreceived.count, 0u);
}

TEST(Epochs, OneTargetOfManyOrigins) {
  Program p(5);
  const std::vector<std::uint64_t> zero{0}, rest{1, 2, 3, 4};
  for (int i = 0; i < 3; ++i) {
    p.add(0, on(Op::win_post, rest)).add(0, on(Op::win_wait));
    for (std::uint32_t r = 1; r < 5; ++r) p.add(r, on(Op::win_start, zero)).p2p(r, Op::put, 0, 1024).add(r, on(Op::win_complete));
  }
  // The fourth KiB through the target's link is the last; posts and completes are nothing but latency.
  EXPECT_EQ(p.run(crossbar(5)).makespan, 3 * (3 * kLatency + 4 * kPerKib));
}

TEST(Epochs, ATestThatFindsNothingDoesNotWait) {
  Program p(2);
  const std::vector<std::uint64_t> zero{0}, one{1};
  CallEvent found = on(Op::win_test);
  found.flags = trace::kEventComplete;
  p.add(1, on(Op::win_post, zero)).add(1, on(Op::win_test)).add(1, found);
  p.add(0, on(Op::win_start, one)).add(0, on(Op::win_complete));
  EXPECT_EQ(p.run(crossbar(2)).makespan, 2 * kLatency);
}

TEST(Epochs, TracesWithoutGroupsGoOn) {
  Program p(2);
  p.add(1, on(Op::win_post)).add(1, on(Op::win_wait));
  p.add(0, on(Op::win_start)).p2p(0, Op::put, 1, 1024).add(0, on(Op::win_complete));
  EXPECT_EQ(p.run(crossbar(2)).makespan, kLatency + kPerKib);
}

TEST(Epochs, WhoNeverPostsOrCompletesIsNamed) {
  Program p(3);
  const std::vector<std::uint64_t> zero{0}, others{1, 2};
  p.add(0, on(Op::win_start, others));
  p.add(1, on(Op::win_post, zero)).add(1, on(Op::win_wait));
  const std::string text = error_of(p, 3);
  EXPECT_NE(text.find("rank 0 in MPI_Win_start (call 1) for MPI_Win_post of world rank 2, windows of communicator 1"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 in MPI_Win_wait (call 2) for MPI_Win_complete of world rank 0"), std::string::npos) << text;
  Program q(2);
  const std::vector<std::uint64_t> far{9};
  q.add(0, on(Op::win_post, far));
  EXPECT_NE(error_of(q, 2).find("names world rank 9"), std::string::npos);
}

CallEvent file_call(Op op, std::uint64_t bytes) {
  CallEvent call;
  call.op = op;
  call.bytes = bytes;
  return call;
}

constexpr Time kAccess = 500 * kUs, kMibTime = 1024 * 1024 * kNs;  // latency; 1 MiB at 1 GB/s

TEST(Files, LatencyAndTheNodesRate) {
  Program p(1);
  p.add(0, file_call(Op::file_write_at, kMib)).compute(1000).add(0, file_call(Op::file_read, 2 * kMib));
  EXPECT_EQ(p.run(crossbar(1)).makespan, 2 * kAccess + 3 * kMibTime + kUs);
  Machine fast = crossbar(1);
  fast.storage = {0, 512000, 0};
  EXPECT_EQ(p.run(fast).makespan, 3 * kMibTime / 2 + kUs);
}

TEST(Files, ANodesAccessesTakeTurns) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, file_call(Op::file_write_shared, kMib));
  EXPECT_EQ(p.run(crossbar(2, 2)).makespan, kAccess + 2 * kMibTime);
  EXPECT_EQ(p.run(crossbar(4)).makespan, kAccess + kMibTime);
  EXPECT_EQ(p.run(crossbar(2, 2), {}, 2).makespan, kAccess + 2 * kMibTime);
}

TEST(Files, AllNodesShareTheFileSystem) {
  Program p(4);
  for (std::uint32_t r = 0; r < 4; ++r) p.add(r, file_call(Op::file_write, kMib));
  Machine slow = crossbar(4);
  slow.storage.ps_per_kib = 512000;  // 2 GB/s in all: half of one each
  EXPECT_EQ(p.run(slow).makespan, kAccess + 2 * kMibTime);
}

TEST(Files, NonBlockingGoesOnBesideComputation) {
  Program p(1);
  const std::uint32_t one = 1;
  CallEvent call = file_call(Op::file_iwrite, kMib);
  call.requests = {&one, 1};
  p.add(0, call).compute(1'000'000).wait(0, Op::wait, {1});
  EXPECT_EQ(p.run(crossbar(1)).makespan, kAccess + kMibTime);
  Program q(1);
  q.add(0, call).compute(5'000'000).wait(0, Op::wait, {1});
  EXPECT_EQ(q.run(crossbar(1)).makespan, 5 * kMs);
  Program split(1);
  split.add(0, file_call(Op::file_write_all_begin, kMib)).compute(1'000'000).add(0, file_call(Op::file_write_all_end, 0));
  EXPECT_EQ(split.run(crossbar(1)).makespan, kAccess + kMibTime);
}

TEST(Files, AccessesToTwoFilesOfOneCommunicatorEndEachByItself) {
  for (const Op large : {Op::file_write_all_begin, Op::file_read_all_begin}) {
    const Op end_of_large = large == Op::file_read_all_begin ? Op::file_read_all_end : Op::file_write_all_end;
    Program p(1);
    p.add(0, file_call(Op::file_read_all_begin, 0)).add(0, file_call(large, kMib)).add(0, file_call(Op::file_read_all_end, 0));
    p.compute(5'000'000).add(0, file_call(end_of_large, 0));  // beside it the larger one goes on
    EXPECT_EQ(p.run(crossbar(1)).makespan, kAccess + 5 * kMs);
  }
}

TEST(Files, ACollectiveAccessEndsWhenAllHaveCome) {
  Program p(2);
  p.compute(9'000'000).add(0, file_call(Op::file_open, 0));
  p.add(1, file_call(Op::file_open, 0));
  p.add(0, file_call(Op::file_write_all, 0)).add(1, file_call(Op::file_write_all, kMib));
  const Result result = p.run(crossbar(2));
  // Both open at 9 ms: rank 1 has had its latency by then. Rank 0 opens with its own.
  const Time opened = 9 * kMs + kAccess;
  EXPECT_GE(result.makespan, opened + kMibTime);
  EXPECT_LE(result.makespan, opened + kAccess + kMibTime + 2 * kLatency);
  Program alone(2);
  alone.add(0, file_call(Op::file_open, 0));
  EXPECT_NE(error_of(alone, 2).find("rank 0 in MPI_File_open (call 1) on communicator 1"), std::string::npos);
}

TEST(Files, CallsThatOnlySayWhereTakeNoTime) {
  Program p(1);
  for (const Op op : {Op::file_seek, Op::file_get_size, Op::file_set_view}) p.add(0, file_call(op, 0));
  EXPECT_EQ(p.run(crossbar(1)).makespan, 0);
}

}  // namespace
}  // namespace fallow::sim
