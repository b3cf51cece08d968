// What readers of traces say where files are damaged by a bit, do not agree, or lack events.
#include "trace/file_reader.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "trace/crc32c.hpp"
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

/// Why a trace of these bytes is not read, or what is wrong with it; "" if nothing is.
std::string problem_of(std::vector<std::byte> bytes) {
  try {
    const auto trace = read_bytes(std::move(bytes));
    count_events(*trace);
    return trace->problems().empty() ? "" : trace->problems()[0];
  } catch (const TraceFileError& e) {
    return e.what();
  }
}

/// What stands at any offset, in a copy.
template <class T>
T at(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void change(std::vector<std::byte>& bytes, std::size_t offset, auto&& how) {
  T value = at<T>(bytes, offset);
  how(value);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

void seal_chunk(std::vector<std::byte>& bytes, std::size_t offset) {
  const std::span<const std::byte> all(bytes);
  change<ChunkHead>(bytes, offset, [&](ChunkHead& h) {
    h.crc = crc32c(all.subspan(offset + sizeof h, h.bytes), crc32c(all.subspan(offset + offsetof(ChunkHead, type), 8)));
  });
}

TEST(TraceReader, SaysWhatIsDamaged) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 4});
  const auto good = read_file(folder / "a");
  constexpr std::size_t kFirst = sizeof(FileHead);  // the rank's chunk
  const std::size_t second = kFirst + sizeof(ChunkHead) + at<ChunkHead>(good, kFirst).bytes;
  const auto after = [&good](auto&& damage) {
    auto bytes = good;
    damage(bytes);
    return problem_of(bytes);
  };
  const std::string where = "memory: at offset " + std::to_string(second), kind = "memory: at offset " + std::to_string(second + 4);
  EXPECT_EQ(after([](auto&) {}), "");
  EXPECT_EQ(after([&](auto& b) { b.resize(kFirst); }), "") << "a rank that was killed as it began";
  EXPECT_EQ(after([&](auto& b) { b.resize(kFirst - 1); }), "memory: at offset 47: the file ends before its head; it is no Fallow trace");
  EXPECT_TRUE(after([&](auto& b) { change<ChunkHead>(b, second, [](ChunkHead& h) { ++h.magic; }); }).starts_with(where + ": no chunk begins here"));
  EXPECT_TRUE(after([&](auto& b) { change<ChunkHead>(b, second, [](ChunkHead& h) { h.type = 0; }); }).starts_with(kind + ": unknown kind of chunk 0"));
  EXPECT_TRUE(after([&](auto& b) { change<ChunkHead>(b, second, [](ChunkHead& h) { h.type = 7; }); }).starts_with(kind + ": unknown kind of chunk 7"));
  EXPECT_TRUE(after([&](auto& b) { change<ChunkHead>(b, second, [](ChunkHead& h) { ++h.crc; }); }).starts_with(where + ": the chunk's checksum is wrong"));
  const auto head = [&](auto&& how) {
    return after([&](auto& b) {
      change<FileHead>(b, 0, how);
      const std::uint32_t crc = crc32c(std::span<const std::byte>(b).first(offsetof(FileHead, crc)));
      change<FileHead>(b, 0, [crc](FileHead& h) { h.crc = crc; });
    });
  };
  EXPECT_EQ(head([](FileHead& h) { ++h.version; }), "memory: at offset 8: version 2; this Fallow reads version 1");
  EXPECT_EQ(head([](FileHead& h) { ++h.head_bytes; }), "memory: at offset 12: unknown size of the head");
  EXPECT_EQ(head([](FileHead& h) { h.world_size = 0; }), "memory: at offset 16: impossible number of ranks");
  EXPECT_EQ(head([](FileHead& h) { h.world_size = kMaxRanks + 1; }), "memory: at offset 16: impossible number of ranks");
}

TEST(TraceReader, BelievesNoIndexThatIsWrong) {
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 20});
  TraceReader part({folder / "a"});
  merge_trace(part, folder / "merged");
  auto bytes = read_file(folder / "merged");
  const std::size_t index = at<FileTail>(bytes, bytes.size() - sizeof(FileTail)).index_offset;
  const std::size_t first = index + sizeof(ChunkHead), there = at<IndexEntry>(bytes, first).offset;
  const auto refused = [&](std::size_t offset) {
    change<IndexEntry>(bytes, first, [offset](IndexEntry& e) { e.offset = offset; });
    seal_chunk(bytes, index);
    return problem_of(bytes);
  };
  EXPECT_EQ(refused(there), "");
  EXPECT_EQ(refused(there + 1), "memory: at offset " + std::to_string(there + 1) + ": no chunk begins here");
  EXPECT_EQ(refused(sizeof(FileHead)), "memory: at offset 48: the index names a block that is not there");
  EXPECT_EQ(refused(index), "memory: at offset " + std::to_string(index) + ": the index names a block that is not there");
  change<ChunkHead>(bytes, index, [](ChunkHead& h) { h.type = static_cast<std::uint32_t>(ChunkType::events); });
  EXPECT_EQ(refused(there), "memory: at offset " + std::to_string(index) + ": the index is damaged");
}

/// Each rank has the side that it is in first. The trace has the one with the lowest rank first, and one communicator for all.
TEST(TraceReader, AnIntercommunicatorIsTheSameSeenFromBothSides) {
  const TemporaryFolder folder;
  Group even = Group::contiguous(0, 1), odd = Group::contiguous(1, 1), all = Group::contiguous(0, 1);
  even.append(2, 1, 1);
  all.append(2, 1, 1), all.append(1, 1, 1);  // the members of both, in their order
  std::vector<std::string> parts;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    parts.push_back(folder / std::to_string(rank));
    FileWriter w;
    std::string problem;
    ASSERT_EQ(w.open(parts.back().c_str(), {.world_size = 3}, problem), Status::ok) << problem;
    w.define_rank(rank, {"node1", "/usr/bin/app", "Some MPI 4.0"});
    if (rank != 2) w.define_comm(rank, all, {});  // one that rank 2 has not made yet
    w.define_comm(rank, rank == 1 ? odd : even, rank == 1 ? even : odd);
    w.end_rank(rank, 0);
  }
  for (int first = 0; first < 3; ++first) {
    const TraceReader trace(parts);
    const CommGroups& comms = trace.info().comms;
    ASSERT_EQ(comms.size(), kFirstComm + 2u);
    const Comm& inter = comms[kFirstComm + (first == 2 ? 0 : 1)];
    const Comm& intra = comms[kFirstComm + (first == 2 ? 1 : 0)];
    EXPECT_EQ(intra.group, all);
    EXPECT_EQ(intra.remote.size(), 0u);
    EXPECT_EQ(inter.group, even);
    EXPECT_EQ(inter.remote, odd);
    std::rotate(parts.begin(), parts.begin() + 1, parts.end());
  }
}

TEST(TraceReader, RefusesDefinitionsOfRanksThatAreNotThere) {
  const TemporaryFolder folder;
  using Define = void (*)(FileWriter&, std::uint32_t);
  const Define of[] = {[](FileWriter& w, std::uint32_t r) { w.define_rank(r, {}); },
                       [](FileWriter& w, std::uint32_t r) { w.define_comm(r, Group::contiguous(0, 1), {}); },
                       [](FileWriter& w, std::uint32_t r) { w.define_site(r, "/bin/app", 1, {}); },
                       [](FileWriter& w, std::uint32_t r) { w.end_rank(r, 0); }};
  for (const Define define : of) {
    for (const std::uint32_t rank : {1u, 2u, kEveryRank - 1}) {
      FileWriter w;
      std::string problem;
      ASSERT_EQ(w.open((folder / "a").c_str(), {.world_size = 2}, problem), Status::ok) << problem;
      w.define_rank(0, {"node1", "/usr/bin/app", "Some MPI 4.0"});
      define(w, rank);
      w.close();
      const std::string said = problem_of(read_file(folder / "a"));
      const std::string expected = "rank " + std::to_string(rank) + " is not in this trace; the rest of the file is left out";
      EXPECT_EQ(said.find(expected) != std::string::npos, rank >= 2) << said;
    }
  }
}

TEST(TraceReader, CallSitesThatLieInNoFileHaveLabels) {
  const TemporaryFolder folder;
  TraceInfo info;
  info.ranks.resize(1);
  info.comms = CommGroups(1);
  info.modules = {"", "/bin/app"};
  info.sites = {{}, {7, 1, {}}, {7, 0, "loop"}, {7, 0, "end"}};
  StreamWriter(folder / "a", info).finish();
  const TraceReader trace({folder / "a"});
  ASSERT_EQ(trace.info().sites.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(trace.info().modules[trace.info().sites[i].module], info.modules[info.sites[i].module]);
    EXPECT_EQ(trace.info().sites[i].address, 7u);
    EXPECT_EQ(trace.info().sites[i].label, info.sites[i].label);
  }
}

/// Of older files, whose communicators do not say what they were made from.
TEST(TraceReader, ACommunicatorWithoutOriginIsRead) {
  const TemporaryFolder folder;
  FileWriter w;
  std::string problem;
  ASSERT_EQ(w.open((folder / "a").c_str(), {.world_size = 2}, problem), Status::ok) << problem;
  w.define_rank(0, {"node1", "/usr/bin/app", "Some MPI 4.0"});
  const std::uint8_t definition[] = {0, kFirstComm, 0, 1, 0, 2, 2};  // of rank 0; intra; one run: from 0 on, stride 1, 2 members
  ASSERT_EQ(w.write_chunk(ChunkType::comm, std::as_bytes(std::span(definition))), Status::ok);
  w.close();
  const TraceReader trace({folder / "a"});
  EXPECT_TRUE(trace.problems().empty());
  ASSERT_EQ(trace.info().comms.size(), kFirstComm + 1u);
  EXPECT_EQ(trace.info().comms[kFirstComm].group, Group::contiguous(0, 2));
  EXPECT_EQ(trace.info().comms[kFirstComm].parent, kCommNone);
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
    EXPECT_TRUE(both.problems()[0].ends_with(turned ? "/1" : "/0")) << both.problems()[0];
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

TEST(TraceReader, RefusesBlocksThatDoNotFollowEachOther) {
  const TemporaryFolder folder;
  struct Block {
    std::uint64_t first_event, from_ns;  // of three calls in 3000 ns
  };
  const auto problem = [&](std::initializer_list<Block> blocks) {
    FileWriter w;
    std::string why;
    EXPECT_EQ(w.open((folder / "a").c_str(), {.world_size = 1}, why), Status::ok) << why;
    w.define_rank(0, {"node", "app", "MPI"});
    for (const Block& block : blocks) {
      BlockEncoder encoder(0, 0, {});
      for (std::uint64_t i = 0; i < 3; ++i) {
        CallEvent e;
        e.enter_ns = block.from_ns + 1000 * i, e.exit_ns = e.enter_ns + 1000;
        EXPECT_TRUE(encoder.add(e));
      }
      const auto packed = encoder.finish();
      std::vector<std::byte> bytes(packed.begin(), packed.end());
      change<BlockHead>(bytes, 0, [&block](BlockHead& h) { h.first_event = block.first_event; });
      w.write_block(bytes);
    }
    w.close();
    return problem_of(read_file(folder / "a"));
  };
  EXPECT_EQ(problem({{0, 1000}, {3, 4000}, {6, 8000}}), "");
  EXPECT_EQ(problem({{3, 4000}, {0, 1000}}), "") << "in any order";
  const std::string why = ": the blocks of rank 0 do not follow each other";
  EXPECT_TRUE(problem({{0, 1000}, {4, 4000}}).ends_with(why)) << "one call is not there";
  EXPECT_TRUE(problem({{0, 1000}, {2, 4000}}).ends_with(why));
  EXPECT_TRUE(problem({{0, 1000}, {3, 3999}}).ends_with(why)) << "before the last one has ended";
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

TEST(CutTrace, HasTheCallsThatBeginInItsWindow) {
  const TemporaryFolder folder;
  write_with_losses(folder / "whole");
  TraceReader whole({folder / "whole"});
  const auto events = [&](std::uint64_t from, std::uint64_t to) {
    write_trace(whole, folder / "cut", {.from_ns = from, .to_ns = to, .ranks = {}});
    return TraceReader({folder / "cut"}).info().ranks[0].events;
  };
  EXPECT_EQ(events(1'000, 3'000), 2u);
  EXPECT_EQ(events(1'001, 3'001), 2u);
  EXPECT_EQ(events(1'001, 3'000), 1u);
}

}  // namespace
}  // namespace fallow::trace
