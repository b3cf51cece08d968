// What readers of traces say where files are damaged by a bit, do not agree, or lack events.
#include "trace/file_reader.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <vector>

#include "trace/file_tools.hpp"
#include "trace/stream_writer.hpp"
#include "trace/trace_test_files.hpp"

namespace fallow::trace {
namespace {

using testing::count_events;
using testing::read_bytes;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_part;

/// Everything that is read of a trace, in a form that can be compared.
std::string content(TraceReader& trace) {
  std::string out = std::to_string(trace.info().comms.size()) + " communicators, " + std::to_string(trace.info().sites.size()) + " sites";
  CallEvent e;
  for (std::uint32_t r = 0; r < trace.info().ranks.size(); ++r) {
    out += "\nrank " + std::to_string(r) + (trace.info().ranks[r].complete ? "" : " ends early");
    while (trace.next(r, e)) {
      for (const std::uint64_t n : {std::uint64_t{e.comm}, std::uint64_t{e.site}, e.bytes, e.enter_ns, e.exit_ns}) out += ' ' + std::to_string(n);
    }
  }
  return out;
}

/// As MPI has it: who makes two communicators of the same members from different ones, or some of them by themselves, may do so in
/// another order than its peers.
TEST(TraceReader, CommunicatorsAreKnownByWhatTheyWereMadeFrom) {
  const TemporaryFolder folder;
  const Group both = Group::contiguous(0, 2);
  constexpr CommOrigin kWorld{.parent = kCommWorld}, kApart{.parent = kCommWorld, .tag = 7};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    FileWriter w;
    std::string problem;
    ASSERT_EQ(w.open((folder / std::to_string(rank)).c_str(), {.world_size = 2}, problem), Status::ok) << problem;
    w.define_rank(rank, {"node1", "/usr/bin/app", "Some MPI 4.0"});
    const std::uint32_t first = w.define_comm(rank, both, {}, rank == 0 ? kApart : kWorld);
    const std::uint32_t second = w.define_comm(rank, both, {}, rank == 0 ? kWorld : kApart);
    w.define_comm(rank, both, {}, {.parent = rank == 0 ? first : second});
    w.define_comm(rank, both, {}, {.parent = rank == 0 ? second : first});
    w.define_comm(rank, both, {}, kWorld);
    const TraceClock clock({1000, 0, 2.0});
    Recorder r(w, rank, 0, clock, {&testing::name_site, nullptr}, {});
    for (std::uint32_t comm = kFirstComm; comm < kFirstComm + 5; ++comm) {
      RawRecord* const x = r.begin();
      x->op = Op::barrier;
      x->enter = x->exit = 1000 + comm;
      x->comm = comm;
      r.end();
    }
    r.flush();
    w.end_rank(rank, 0);
  }
  TraceReader trace({folder / "0", folder / "1"});
  EXPECT_EQ(trace.info().comms.size(), kFirstComm + 5u);
  const std::vector<std::vector<std::uint32_t>> expected = {{3, 4, 5, 6, 7}, {4, 3, 5, 6, 7}};
  CallEvent e;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (const std::uint32_t comm : expected[rank]) {
      ASSERT_TRUE(trace.next(rank, e));
      EXPECT_EQ(e.comm, comm) << "of rank " << rank;
    }
  }
  write_trace(trace, folder / "rewritten");
  const TraceReader rewritten({folder / "rewritten"});
  const std::vector<std::uint32_t> parents = {kCommWorld, kCommWorld, 3, 4, kCommWorld};
  ASSERT_EQ(rewritten.info().comms.size(), kFirstComm + parents.size());
  for (std::uint32_t c = 0; c < parents.size(); ++c) {
    EXPECT_EQ(trace.info().comms[kFirstComm + c].parent, parents[c]);
    EXPECT_EQ(rewritten.info().comms[kFirstComm + c].parent, parents[c]);
  }
}

TEST(TraceReader, LeavesOutACommunicatorMadeFromALaterOne) {
  const TemporaryFolder folder;
  FileWriter w;
  std::string problem;
  ASSERT_EQ(w.open((folder / "a").c_str(), {.world_size = 1}, problem), Status::ok) << problem;
  w.define_rank(0, {"node1", "/usr/bin/app", "Some MPI 4.0"});
  EXPECT_EQ(w.define_comm(0, Group::contiguous(0, 1), {}, {.parent = kFirstComm}), kFirstComm);
  w.close();
  const TraceReader trace({folder / "a"});
  ASSERT_EQ(trace.problems().size(), 1u);
  EXPECT_NE(trace.problems()[0].find("communicator 3 is made from one that comes later"), std::string::npos) << trace.problems()[0];
}

/// What is damaged in a part may be left out, as at the end of a killed rank, but never without a word.
TEST(TraceReader, NoDamagedBitGoesUnnoticed) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 4});
  write_part(folder / "b", 1, {.steps = 4});
  TraceReader parts({folder / "a", folder / "b"});
  merge_trace(parts, folder / "merged");
  for (const char* name : {"a", "merged"}) {
    auto bytes = read_file(folder / name);
    const std::string good = content(*read_bytes(bytes));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      const auto flip = static_cast<std::byte>(1u << bit % 8);
      bytes[bit / 8] ^= flip;
      try {
        const auto trace = read_bytes(bytes);
        const std::string read = content(*trace);
        EXPECT_TRUE(read == good || !trace->problems().empty()) << name << ": bit " << bit % 8 << " of byte " << bit / 8;
      } catch (const TraceFileError& e) {
        EXPECT_NE(std::string(e.what()).find("memory: at offset "), std::string::npos) << e.what();
      }
      bytes[bit / 8] ^= flip;
    }
  }
}

TEST(TraceReader, PartsByDifferentClocksAreSaidToBe) {
  const TemporaryFolder folder;
  for (std::uint32_t r = 0; r < 2; ++r) {
    FileWriter w;
    std::string problem;
    const ComputeClock clock = r == 0 ? ComputeClock::wall : ComputeClock::cpu;
    ASSERT_EQ(w.open((folder / std::to_string(r)).c_str(), {.world_size = 2, .clock = clock}, problem), Status::ok) << problem;
    w.define_rank(r, {"node", "app", "MPI"});
    w.end_rank(r, 0);
  }
  for (const bool turned : {false, true}) {
    const TraceReader both({folder / (turned ? "1" : "0"), folder / (turned ? "0" : "1")});
    EXPECT_EQ(both.info().clock, ComputeClock::cpu);  // of which there is none in common
    ASSERT_EQ(both.problems().size(), 1u);
    EXPECT_NE(both.problems()[0].find(turned ? "0: computation by wall clock, unlike that of " : "1: computation by CPU clock, unlike that of "), std::string::npos);
  }
}

/// Runs of thousands of ranks leave as many parts, and a process usually may open 1024 files.
TEST(TraceReader, ReadsMorePartsThanItMayOpen) {
  constexpr std::uint32_t kParts = 100;
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (std::uint32_t r = 0; r < kParts; ++r) {
    paths.push_back(folder / std::to_string(r));
    write_part(paths.back(), r, {.world_size = kParts});
  }
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{kParts / 2, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  TraceReader parts(paths);
  TraceReader at_the_same_time(paths);
  merge_trace(parts, folder / "merged");
  EXPECT_GT(count_events(at_the_same_time), kParts);
  setrlimit(RLIMIT_NOFILE, &before);
  TraceReader merged({folder / "merged"});
  EXPECT_EQ(content(parts), content(merged));
}

/// Two blocks with a loss before each, and one at the end.
void write_with_losses(const std::string& path) {
  FileWriter w;
  std::string problem;
  ASSERT_EQ(w.open(path.c_str(), {.world_size = 1}, problem), Status::ok) << problem;
  w.define_rank(0, {"node", "app", "MPI"});
  BlockEncoder encoder(0, 0, {});
  for (std::uint64_t block = 0; block < 2; ++block) {
    encoder.note_dropped(block == 0 ? 1 : 10);
    for (std::uint64_t i = 0; i < 3; ++i) {
      CallEvent e;
      e.enter_ns = 1000 * (10 * block + i + 1);
      e.exit_ns = e.enter_ns + 500;
      ASSERT_TRUE(encoder.add(e));
    }
    ASSERT_EQ(w.write_block(encoder.finish()), Status::ok);
  }
  w.end_rank(0, 100);
}

TEST(CutTrace, OfTheEventsThatWereLostThoseOfTheWindowCount) {
  const TemporaryFolder folder;
  write_with_losses(folder / "whole");
  TraceReader whole({folder / "whole"});
  ASSERT_EQ(whole.info().ranks[0].dropped, 111u);
  const auto dropped = [&](std::uint64_t from, std::uint64_t to) {
    write_trace(whole, folder / "cut", {.from_ns = from, .to_ns = to, .ranks = {}});
    return TraceReader({folder / "cut"}).info().ranks[0].dropped;
  };
  EXPECT_EQ(dropped(0, ~std::uint64_t{0}), 111u);
  EXPECT_EQ(dropped(0, 3'200), 1u);       // before any is lost again
  EXPECT_EQ(dropped(0, 12'000), 11u);
  EXPECT_EQ(dropped(2'000, 12'000), 10u);
  EXPECT_EQ(dropped(11'500, 12'500), 0u);
  EXPECT_EQ(dropped(12'000, 20'000), 100u);
}

}  // namespace
}  // namespace fallow::trace
