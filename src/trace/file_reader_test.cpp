// What readers of traces say where files are damaged by a bit, do not agree, or lack events.
#include "trace/file_reader.hpp"

#include <gtest/gtest.h>

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
