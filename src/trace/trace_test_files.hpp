// Small traces for the tests of readers, made through the recorder as the runtime does it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "trace/file_reader.hpp"
#include "trace/file_tools.hpp"
#include "trace/memory_bytes.hpp"
#include "trace/recorder.hpp"

namespace fallow::trace::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fallow-trace-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string s((std::istreambuf_iterator<char>(in)), {});
  const auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}

inline std::string_view name_site(void*, std::uint64_t address, std::uint64_t& offset) noexcept {
  offset = address - 0x1000;
  return "/usr/bin/app";
}

/// One step of a program of two ranks that exchange, wait and reduce, with lists of all kinds.
inline void record_step(Recorder& r, std::uint32_t comm, std::int32_t peer, std::uint64_t& tick, int step) {
  const auto take = [&](Op op) {
    RawRecord* x = r.begin();
    x->op = op;
    x->enter = tick += 300;
    x->exit = tick += 100 + static_cast<std::uint64_t>(step % 7);
    x->caller = 0x1000 + 16 * static_cast<std::uint64_t>(op);
    x->comm = kCommWorld;
    return x;
  };
  for (std::uint32_t i = 0; i < 2; ++i) {
    RawRecord* x = take(i == 0 ? Op::irecv : Op::isend);
    x->peer = peer, x->tag = 5, x->bytes = 4096;
    r.add_request(*x, i);
    r.end();
  }
  RawRecord* x = take(Op::waitall);
  x->comm = kCommNone;
  x->extra().wait = 50;
  r.add_completed(*x, 0);
  r.add_completed(*x, 1);
  r.end();
  x = take(Op::alltoallv);
  x->comm = comm;
  x->bytes = 30, x->extra().recv_bytes = 70;
  r.add_count(*x, 10);
  r.add_count(*x, 20);
  r.add_recv_count(*x, 30);
  r.add_recv_count(*x, 40);
  r.end();
}

struct PartOptions {
  int steps = 10;
  std::uint32_t block_events = 16;
  std::uint64_t start_wall_ns = 1'000'000'000;
  bool ends_well = true;
  int threads = 1;
  std::uint32_t world_size = 2;
  bool computes_long = false;  ///< before some steps for longer than most programs, for days before others
};

/// A rank's part of a run, of two if not told otherwise.
inline void write_part(const std::string& path, std::uint32_t rank, const PartOptions& o = {}) {
  FileWriter w;
  std::string problem;
  ASSERT_EQ(w.open(path.c_str(), {.world_size = o.world_size, .start_wall_ns = o.start_wall_ns}, problem), Status::ok) << problem;
  w.define_rank(rank, {"node1", "/usr/bin/app", "Some MPI 4.0"});
  const std::uint32_t self_made = w.define_comm(rank, Group::contiguous(static_cast<std::int32_t>(rank), 1), {});
  EXPECT_EQ(self_made, kFirstComm);
  const std::uint32_t both = w.define_comm(rank, Group::contiguous(0, 2), {});
  RecorderOptions options;
  options.encoder.max_events = o.block_events;
  options.ring_records = 64;
  for (int thread = 0; thread < o.threads; ++thread) {
    const TraceClock clock({1000, 0, 2.0});
    Recorder r(w, rank, static_cast<std::uint16_t>(thread), clock, {&name_site, nullptr}, options);
    std::uint64_t tick = 1000 + 17 * static_cast<std::uint64_t>(thread);
    for (int i = 0; i < o.steps; ++i) {
      if (o.computes_long) tick += std::array<std::uint64_t, 3>{0, 500'000, std::uint64_t{1} << 49}[static_cast<std::size_t>(i) % 3];
      record_step(r, both, 1 - static_cast<std::int32_t>(rank), tick, i);
      r.pump(64, 0);
    }
    r.flush();
  }
  if (o.ends_well) w.end_rank(rank, 0);
}

inline std::unique_ptr<TraceReader> read_bytes(std::vector<std::byte> bytes) {
  std::vector<std::unique_ptr<ChunkFile>> files;
  files.push_back(std::make_unique<ChunkFile>(std::make_unique<MemoryBytes>(std::move(bytes)), "memory"));
  return std::make_unique<TraceReader>(std::move(files));
}

inline std::uint64_t count_events(EventSource& source) {
  std::uint64_t n = 0;
  CallEvent e;
  for (std::uint32_t r = 0; r < source.info().ranks.size(); ++r) {
    while (source.next(r, e)) ++n;
  }
  return n;
}

}  // namespace fallow::trace::testing
